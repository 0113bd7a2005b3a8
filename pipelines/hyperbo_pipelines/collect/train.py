"""The pipeline that trains a collection: first the matched blocks, then as many unmatched ones as needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam

from hyperbo_pipelines.collect.blocks import TaskBlocks
from hyperbo_pipelines.collect.plan import TrialBlock, matched_blocks, unmatched_blocks
from hyperbo_pipelines.collect.preset import Preset

# The numbers of a task and a phase.
_Wave = tuple[int, int]


class TrainCollection(beam.PTransform):
    """Train every block of a collection that is not finished yet.

    Finished blocks are files of the work folder, which every worker sees; only names of blocks and counts of
    trials pass between the workers. If a worker dies, only the block that it was training is lost.
    """

    def __init__(self, preset: Preset, work_folder: Path) -> None:
        super().__init__()
        self._preset, self._work_folder = preset, work_folder

    def expand(self, input_or_inputs: Any) -> Any:
        """Train the matched blocks, then the unmatched ones."""
        preset = self._preset
        blocks = [
            block
            for number in range(len(preset.tasks))
            for phase in range(preset.phases)
            for block in matched_blocks(preset, number, phase)
        ]
        matched = (
            input_or_inputs
            | "Matched blocks" >> beam.Create(blocks)
            | "Spread matched blocks" >> beam.Reshuffle()
            | "Train matched blocks" >> beam.ParDo(_Train(preset, self._work_folder))
        )
        return (
            matched
            | "Collect good trials" >> beam.CombinePerKey(sum)
            | "Unmatched blocks" >> beam.FlatMap(_unmatched, preset)
            | "Spread unmatched blocks" >> beam.Reshuffle()
            | "Train unmatched blocks" >> beam.ParDo(_Train(preset, self._work_folder))
        )


def _unmatched(good: tuple[_Wave, int], preset: Preset) -> Iterable[TrialBlock]:
    (number, phase), count = good
    return unmatched_blocks(preset, number, phase, count)


class _Train(beam.DoFn):
    """TrialBlock -> ((task, phase), number of its trials that did not diverge)."""

    def __init__(self, preset: Preset, work_folder: Path) -> None:
        self._preset, self._work_folder = preset, work_folder
        self._tasks: dict[int, TaskBlocks] = {}

    def process(self, element: TrialBlock) -> Iterator[tuple[_Wave, int]]:
        """Train a block, unless it is finished."""
        if element.task not in self._tasks:
            self._tasks[element.task] = TaskBlocks(self._preset, element.task, self._work_folder)
        blocks = self._tasks[element.task]
        trained = blocks.finished(element) or blocks.train(element)
        yield (element.task, element.phase), trained.good
