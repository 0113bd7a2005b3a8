"""Summarize: how many records there are of each split, task and status; rejects and blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam import pvalue

from pipelines.records import Block

Group = tuple[str, str, str]  # split, task, status


@dataclass(frozen=True)
class Summary:
    """What a build found.

    Attributes:
      counts: records by split, task and status.
      rejects: rows that became no record.
      duplicates: records whose task ran the same input more than once.
      blocks: the matched blocks: id, phase, tasks, number of inputs.
    """

    counts: dict[str, dict[str, dict[str, int]]]
    rejects: int
    duplicates: int
    blocks: list[dict[str, Any]]

    def records(self, split: str | None = None) -> int:
        """Number of records, of one split or of all."""
        chosen = self.counts.values() if split is None else [self.counts.get(split, {})]
        return sum(count for tasks in chosen for statuses in tasks.values() for count in statuses.values())


class Summarize(beam.PTransform):
    """(PCollection[Record], PCollection[Reject], PCollection[Block]) -> PCollection of one Summary."""

    def expand(self, input_or_inputs: Any) -> Any:
        """Count each collection and put the counts together."""
        records, rejects, blocks = input_or_inputs
        groups = (
            records
            | "Group" >> beam.Map(lambda r: (r.trial.split, r.trial.task, r.trial.status))
            | "CountGroups" >> beam.combiners.Count.PerElement()
        )
        duplicates = (
            records
            | "Duplicates" >> beam.Filter(lambda r: bool(r.duplicates))
            | "CountDuplicates" >> beam.combiners.Count.Globally()
        )
        return (
            records.pipeline
            | "Once" >> beam.Create([None])
            | "Summary"
            >> beam.Map(
                _summary,
                pvalue.AsIter(groups),
                pvalue.AsSingleton(rejects | "CountRejects" >> beam.combiners.Count.Globally()),
                pvalue.AsSingleton(duplicates),
                pvalue.AsIter(blocks),
            )
        )


def _summary(
    _: None, groups: Iterable[tuple[Group, int]], rejects: int, duplicates: int, blocks: Iterable[Block]
) -> Summary:
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for (split, task, status), count in sorted(groups):
        counts.setdefault(split, {}).setdefault(task, {})[status] = count
    listed = [
        {"id": block.block_id, "phase": block.phase, "tasks": list(block.tasks), "inputs": block.inputs}
        for block in sorted(blocks)
    ]
    return Summary(counts, rejects, duplicates, listed)
