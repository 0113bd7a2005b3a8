"""The summary of a curation, small enough for memory, written as one file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam import pvalue

from hyperbo.storage.atomic import write_atomically
from hyperbo_pipelines.curate.elements import Block, Reject


@dataclass(frozen=True)
class Summary:
    """Summary of a curation, in an order that does not depend on the runner.

    Attributes:
      tables: names of the files of `spill_table`.
      rejects: rows that did not become records.
      repeated: sources of the rejects that are in the tables, because their id was not unique.
      duplicates: for a trial whose task ran its input more than once, the ids of the other trials.
      blocks: the matched blocks.
    """

    tables: tuple[str, ...]
    rejects: tuple[Reject, ...]
    repeated: tuple[str, ...]
    duplicates: dict[str, tuple[str, ...]]
    blocks: tuple[Block, ...]


def summarize(collections: tuple[Any, ...], path: Path) -> Any:
    """Write (tables, rejects, repeated, duplicates, blocks) as a file that `read_summary` reads."""
    once = collections[0].pipeline | "Once" >> beam.Create([None])
    return once | "Summarize" >> beam.Map(_write, path, *map(pvalue.AsIter, collections))


def _write(
    _: None,
    path: Path,
    tables: Iterable[str],
    rejects: Iterable[Reject],
    repeated: Iterable[tuple[str, str]],
    duplicates: Iterable[tuple[str, tuple[str, ...]]],
    blocks: Iterable[Block],
) -> None:
    summary = {
        "tables": sorted(tables),
        "rejects": [asdict(each) for each in sorted(rejects, key=lambda each: (each.file, each.line))],
        "repeated": sorted(source for source, _ in repeated),
        "duplicates": dict(sorted(duplicates)),
        "blocks": sorted(blocks),
    }
    write_atomically(path, json.dumps(summary).encode())


def read_summary(path: Path) -> Summary:
    """Read what `summarize` wrote."""
    fields = json.loads(path.read_text(encoding="utf-8"))
    return Summary(
        tables=tuple(fields["tables"]),
        rejects=tuple(Reject(**each) for each in fields["rejects"]),
        repeated=tuple(fields["repeated"]),
        duplicates={trial: tuple(others) for trial, others in fields["duplicates"].items()},
        blocks=tuple(
            Block(block_id, phase, tuple(tasks), inputs, tuple(trial_ids))
            for block_id, phase, tasks, inputs, trial_ids in fields["blocks"]
        ),
    )
