"""A collection: all trials of a preset, resumable by block, into files of the PD1 release's layout."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from hyperbo.errors import InvalidInputError
from hyperbo.files import write_atomically
from pipelines.collect.blocks import TaskBlocks, TrialSplit, library_versions
from pipelines.collect.points import matched_points, unmatched_points
from pipelines.collect.preset import Preset
from pipelines.collect.records import to_json_lines

FILES: dict[TrialSplit, str] = {
    "matched": "pd1_matched_phase1_results.jsonl.gz",
    "unmatched": "pd1_unmatched_phase1_results.jsonl.gz",
}
DESCRIPTION = "collection.json"
# A task of which more than 4 in 5 trials diverge says little, and would be sampled for ever.
MOST_TRIALS_PER_GOOD_ONE = 5


@dataclass(frozen=True)
class Progress:
    """How far a collection is.

    Attributes:
      study: the task at work.
      split: `matched` or `unmatched`.
      finished: trials finished, of those that count towards `total`.
      total: trials asked for: all matched ones, and of the unmatched ones those that did not diverge.
    """

    study: str
    split: TrialSplit
    finished: int
    total: int


@dataclass(frozen=True)
class Collection:
    """What `collect` made.

    Attributes:
      folder: where the files are.
      rows: number of trials in the file of each split.
      trained: number of trials trained by this call, not found finished in the work folder.
    """

    folder: Path
    rows: dict[TrialSplit, int]
    trained: int


def collect(
    preset: Preset,
    out_folder: Path,
    *,
    work_folder: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Collection:
    """Train all trials of a preset and write them as files of the PD1 release's layout.

    Finished blocks of trials stay in the work folder; a run that was broken off goes on from there. The
    same preset gives the same bytes on the same platform with the same library versions.

    Args:
      preset: what to collect.
      out_folder: gets one file per split, and `collection.json`, which describes them.
      work_folder: where finished blocks are kept; `<out_folder>.work` by default.
      progress: called before a task's first block and after every block.

    Raises:
      InvalidInputError: the preset does not fit a task dataset, or nearly all trials of a task diverge.
    """
    work_folder = work_folder or out_folder.with_name(out_folder.name + ".work")
    tasks = [TaskBlocks(preset, task, work_folder) for task in preset.tasks]
    total = len(tasks) * (preset.matched + preset.unmatched)
    lines: dict[TrialSplit, list[bytes]] = {"matched": [], "unmatched": []}
    finished = 0

    def report(blocks: TaskBlocks, split: TrialSplit) -> None:
        if progress is not None:
            progress(Progress(blocks.task.study, split, finished, total))

    for blocks in tasks:
        report(blocks, "matched")
        for split, rows, counted in _trials(blocks):
            lines[split] += [to_json_lines(rows)]
            finished += counted
            report(blocks, split)
    trained = sum(blocks.trained for blocks in tasks)
    counts: dict[TrialSplit, int] = {
        split: sum(part.count(b"\n") for part in parts) for split, parts in lines.items()
    }
    contents = {FILES[split]: _compress(b"".join(parts)) for split, parts in lines.items()}
    contents[DESCRIPTION] = _describe(preset, tasks, contents, counts)
    for name, data in contents.items():
        write_atomically(out_folder / name, data)
    return Collection(out_folder, counts, trained)


def _trials(blocks: TaskBlocks) -> Iterator[tuple[TrialSplit, list[dict[str, Any]], int]]:
    """A task's trials by blocks: split, rows, and how many of them count towards the number asked for."""
    preset = blocks.preset
    size = preset.block_size
    points = matched_points(preset)
    for first in range(0, len(points), size):
        rows = blocks.rows("matched", first, points[first : first + size])
        yield "matched", rows, len(rows)

    # Unmatched trials go on until as many as asked for did not diverge: tasks end with equal numbers.
    good = 0
    points = unmatched_points(preset, blocks.task, MOST_TRIALS_PER_GOOD_ONE * preset.unmatched)
    for first in range(0, len(points), size):
        rows, missing = blocks.rows("unmatched", first, points[first : first + size]), preset.unmatched - good
        done = [number for number, row in enumerate(rows, start=1) if row["status"] == "done"]
        if len(done) >= missing:
            yield "unmatched", rows[: done[missing - 1]], missing
            return
        good += len(done)
        yield "unmatched", rows, len(done)
    raise InvalidInputError(
        f"of {len(points)} unmatched trials only {good} did not diverge",
        where=f"preset {preset.name!r}: task {blocks.task.study}",
        fix="make the task easier to train, or leave it out",
    )


def _compress(data: bytes) -> bytes:
    """Gzip without name or time, so that the same data give the same bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as stream:
        stream.write(data)
    return buffer.getvalue()


def _describe(
    preset: Preset, tasks: list[TaskBlocks], contents: dict[str, bytes], rows: dict[TrialSplit, int]
) -> bytes:
    """What the files were made from and by."""
    description = {
        "name": preset.name,
        "version": preset.version,
        "command": f"hyperbo collect --preset {preset.name}",
        "seed": preset.seed,
        "preset_sha256": preset.sha256,
        "preset": dataclasses.asdict(preset),
        "task_datasets_sha256": {blocks.dataset.name: blocks.dataset.sha256 for blocks in tasks},
        "libraries": {"python": platform.python_version()} | library_versions(),
        "platform": f"{platform.system()} {platform.machine()} {jax.default_backend()}",
        "files": {
            name: {"rows": rows[split], "sha256": hashlib.sha256(contents[name]).hexdigest()}
            for split, name in FILES.items()
        },
    }
    return (json.dumps(description, indent=2) + "\n").encode()
