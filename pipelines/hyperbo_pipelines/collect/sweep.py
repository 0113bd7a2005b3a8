"""A collection: all trials of a preset, resumable by block, into files of the PD1 release's layout."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import json
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from hyperbo.errors import HyperBOError
from hyperbo.storage.atomic import write_atomically
from hyperbo_pipelines.collect.blocks import TaskBlocks, TrainedBlock, library_versions
from hyperbo_pipelines.collect.plan import (
    SPLITS,
    TrialBlock,
    TrialSplit,
    expected_trials,
    matched_blocks,
    unmatched_blocks,
)
from hyperbo_pipelines.collect.preset import Preset
from hyperbo_pipelines.collect.rows import timing_rows, to_json_lines
from hyperbo_pipelines.run.execution import Execution

DESCRIPTION = "collection.json"
TIMINGS = "timings.jsonl.gz"
_SECONDS_BETWEEN_REPORTS = 1.0

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Collection:
    """The result of `collect`.

    Attributes:
      folder: where the files are.
      trials: number of trials of each split.
      trained: number of trials that this call trained; the others were finished in the work folder.
    """

    folder: Path
    trials: dict[TrialSplit, int]
    trained: int


def file_name(split: TrialSplit, phase: int) -> str:
    """The file of a split and phase, named as in the release.

    >>> file_name("matched", 1)
    'pd1_matched_phase1_results.jsonl.gz'
    """
    return f"pd1_{split}_phase{phase}_results.jsonl.gz"


def collect(
    preset: Preset,
    out_folder: Path,
    *,
    work_folder: Path | None = None,
    execution: Execution | None = None,
    progress: Progress | None = None,
) -> Collection:
    """Train all trials of a preset and write them as files of the PD1 release's layout.

    Finished blocks of trials stay in the work folder; a run that was interrupted continues from there. The
    same preset gives the same trials on the same platform with the same library versions, with any number of
    workers; only the file of timings differs.

    Args:
      preset: what to collect.
      out_folder: gets one file per split and phase, `timings.jsonl.gz` with the wall time of every trial, and
        `collection.json`, which describes them.
      work_folder: where finished blocks are kept; `<out_folder>.work` by default. All workers must see it.
      execution: where Beam runs the training; None: in this process.
      progress: called every second with the numbers of trials finished and expected.

    Raises:
      InvalidInputError: the preset does not fit a task dataset, or nearly all trials of a task diverge.
      NotAvailableError: a library with a task dataset is not installed.
      HyperBOError: a worker died; the same call continues from the finished blocks.
    """
    from hyperbo_pipelines.collect.train import TrainCollection

    work_folder = work_folder or out_folder.with_name(out_folder.name + ".work")
    # Made before the training, so that a task that cannot be trained is refused at once.
    tasks = [TaskBlocks(preset, number, work_folder) for number in range(len(preset.tasks))]
    before = _finished_trials(tasks)
    with _reporting(tasks, expected_trials(preset), progress):
        (execution or Execution()).run(lambda pipeline: pipeline | TrainCollection(preset, work_folder))
    trained = _finished_trials(tasks) - before
    trials = dict.fromkeys(SPLITS, 0)
    contents: dict[str, bytes] = {}
    timings: list[bytes] = []
    for phase in range(preset.phases):
        found = [_blocks_of(preset, tasks, number, phase) for number in range(len(tasks))]
        for split in SPLITS:
            blocks = [(block, done) for of_task in found for block, done in of_task if block.split == split]
            trials[split] += sum(block.trials for block, _ in blocks)
            contents[file_name(split, phase)] = _compress(
                b"".join(to_json_lines(done.rows) for _, done in blocks)
            )
            timings += [to_json_lines(timing_rows(done.rows, done.seconds)) for _, done in blocks]
    contents[DESCRIPTION] = _describe(preset, tasks, contents, trials)
    contents[TIMINGS] = _compress(b"".join(timings))
    for name, data in contents.items():
        write_atomically(out_folder / name, data)
    return Collection(out_folder, trials, trained)


def _blocks_of(
    preset: Preset, tasks: list[TaskBlocks], number: int, phase: int
) -> list[tuple[TrialBlock, TrainedBlock]]:
    """Read all blocks of a task and phase, in order."""

    def read(block: TrialBlock) -> tuple[TrialBlock, TrainedBlock]:
        trained = tasks[number].finished(block)
        if trained is None:
            raise HyperBOError(
                f"{tasks[number].folder}: block {block} is missing though it was trained: "
                "do all workers see the work folder?"
            )
        return block, trained

    matched = [read(block) for block in matched_blocks(preset, number, phase)]
    good = sum(trained.good for _, trained in matched)
    return matched + [read(block) for block in unmatched_blocks(preset, number, phase, good)]


def _finished_trials(tasks: list[TaskBlocks]) -> int:
    """Number of trials in finished blocks, by the names of their files."""
    return sum(int(file.name.split("-")[3]) for task in tasks for file in task.folder.glob("*matched-*.json"))


@contextmanager
def _reporting(tasks: list[TaskBlocks], expected: int, progress: Progress | None) -> Iterator[None]:
    """Report progress from a thread, by the number of files in the work folder."""
    if progress is None:
        yield
        return
    ended = threading.Event()

    def report() -> None:
        while True:
            finished = _finished_trials(tasks)
            progress(finished, max(finished, expected))
            if ended.wait(_SECONDS_BETWEEN_REPORTS):
                return

    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield
    finally:
        ended.set()
        reporter.join()
    finished = _finished_trials(tasks)
    progress(finished, finished)


def _compress(data: bytes) -> bytes:
    """Compress with gzip, without name or time, so that the same data give the same bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as stream:
        stream.write(data)
    return buffer.getvalue()


def _describe(
    preset: Preset, tasks: list[TaskBlocks], contents: dict[str, bytes], trials: dict[TrialSplit, int]
) -> bytes:
    """The text of `collection.json`."""
    description: dict[str, Any] = {
        "name": preset.name,
        "version": preset.version,
        "command": f"hyperbo collect --preset {preset.name}",
        "seed": preset.seed,
        "preset_sha256": preset.sha256,
        "preset": dataclasses.asdict(preset),
        "task_datasets_sha256": {blocks.task.dataset: blocks.dataset.sha256 for blocks in tasks},
        "libraries": {"python": platform.python_version()} | library_versions(),
        "platform": f"{platform.system()} {platform.machine()} {jax.default_backend()}",
        "trials": trials,
        "files_sha256": {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()},
    }
    return (json.dumps(description, indent=2) + "\n").encode()
