"""FindMatchedBlocks: inputs of one phase that were run on the same set of tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from typing import Any

import apache_beam as beam

from pipelines.records import Block

Cell = tuple[str, str]  # task, trial id


class FindMatchedBlocks(beam.PTransform):
    """PCollection[TrialKey] -> PCollection[Block].

    In PD1 only trials of the split `matched` take part: the collector meant those inputs to be shared, the
    data say which tasks really share them. An input that a task lacks, say for a rejected row, falls into the
    block of the tasks that have it. Where a task ran an input twice in a phase, the smaller trial id stands
    for it. One task alone is no block.

    Args:
      splits: splits whose trials take part.
    """

    def __init__(self, splits: Collection[str]) -> None:
        super().__init__()
        self._splits = frozenset(splits)

    def expand(self, input_or_inputs: Any) -> Any:
        """Group trials by input, then inputs by their set of tasks."""
        return (
            input_or_inputs
            | "Matched" >> beam.Filter(lambda key, splits: key.split in splits, self._splits)
            | "KeyByInput" >> beam.Map(lambda key: ((key.phase, key.input_id), (key.task, key.trial_id)))
            | "GroupByInput" >> beam.GroupByKey()
            | "KeyByTasks" >> beam.FlatMapTuple(_key_by_tasks)
            | "GroupByTasks" >> beam.GroupByKey()
            | "Block" >> beam.MapTuple(_block)
        )


def _key_by_tasks(
    shared: tuple[int, str], cells: Iterable[Cell]
) -> Iterable[tuple[tuple[int, tuple[str, ...]], tuple[str, ...]]]:
    phase, _ = shared
    chosen: dict[str, str] = {}
    for task, trial_id in cells:
        chosen[task] = min(trial_id, chosen.get(task, trial_id))
    if len(chosen) >= 2:
        tasks = tuple(sorted(chosen))
        yield (phase, tasks), tuple(chosen[task] for task in tasks)


def _block(shared: tuple[int, tuple[str, ...]], rows: Iterable[tuple[str, ...]]) -> Block:
    phase, tasks = shared
    ordered = sorted(rows)
    trial_ids = tuple(trial_id for row in ordered for trial_id in row)
    return Block(block_id(phase, tasks), phase, tasks, len(ordered), trial_ids)


def block_id(phase: int, tasks: tuple[str, ...]) -> str:
    """Name a block by its phase and its set of tasks.

    >>> block_id(1, ("a-cnn-64", "b-mlp-32"))
    'phase1-43617d6e'
    """
    return f"phase{phase}-{hashlib.sha256(json.dumps(tasks).encode()).hexdigest()[:8]}"
