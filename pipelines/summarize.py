"""Summarize: what a curation found, small enough to be held in one place, written as one file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam import pvalue

from hyperbo.files import write_atomically
from pipelines.records import Block, Reject


@dataclass(frozen=True)
class Summary:
    """What a curation found, in an order that does not depend on the runner.

    Attributes:
      tables: names of the files of `SpillTables`.
      rejects: rows that became no record.
      repeated: sources of those among them that are in the tables, for their id was not unique.
      duplicates: for a trial whose task ran its input more than once, the ids of the others.
      blocks: the matched blocks.
    """

    tables: tuple[str, ...]
    rejects: tuple[Reject, ...]
    repeated: tuple[str, ...]
    duplicates: dict[str, tuple[str, ...]]
    blocks: tuple[Block, ...]


class Summarize(beam.PTransform):
    """(tables, rejects, repeated, duplicates, blocks) -> a file that `read_summary` reads.

    Args:
      path: the file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def expand(self, input_or_inputs: Any) -> Any:
        """Bring the five collections to one place."""
        gathered = [pvalue.AsIter(collection) for collection in input_or_inputs]
        return (
            input_or_inputs[0].pipeline
            | "Once" >> beam.Create([None])
            | "Write" >> beam.Map(_write, self._path, *gathered)
        )


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
    """Read what `Summarize` wrote."""
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
