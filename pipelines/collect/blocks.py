"""Blocks of trials of one task: trained once, kept as small files, found again by what made them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from functools import cached_property
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from hyperbo.errors import InvalidInputError
from hyperbo.files import write_atomically
from pipelines.collect.plan import Block, block_points
from pipelines.collect.preset import Preset
from pipelines.collect.records import trial_rows
from pipelines.collect.tasks import dataset_of, trainer_of
from pipelines.collect.trainer import Trainer

LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "scikit-learn", "scikit-image", "river")


class TrainedBlock(NamedTuple):
    """A block that is finished.

    Attributes:
      rows: one per trial, in the layout of the release's files.
      seconds: wall time of its training, compilation aside.
    """

    rows: list[dict[str, Any]]
    seconds: float

    @property
    def good(self) -> int:
        """How many of its trials did not diverge."""
        return sum(row["status"] == "done" for row in self.rows)


class TaskBlocks:
    """The blocks of one task: those that are finished, and how others become so.

    Args:
      preset: the collection.
      number: of the task in the preset.
      work_folder: where finished blocks are kept.

    Attributes:
      task: the task.
      dataset: its task dataset.
      folder: where its finished blocks are.

    Raises:
      InvalidInputError: model or batch size do not fit the task dataset.
      NotAvailableError: the library that brings the task dataset is not installed.
    """

    def __init__(self, preset: Preset, number: int, work_folder: Path) -> None:
        self.preset, self.task = preset, preset.tasks[number]
        self.dataset = dataset_of(preset, self.task)
        self.folder = work_folder / f"{self.task.study}-{self._fingerprint()}"

    def finished(self, block: Block) -> TrainedBlock | None:
        """Read a block back, if it is finished.

        Raises:
          InvalidInputError: its file is damaged.
        """
        file = self._file(block)
        try:
            document = json.loads(file.read_bytes())
            trained = TrainedBlock(document["rows"], document["seconds"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInputError(
                f"a finished block cannot be read: {error}",
                where=str(file),
                fix="delete it to have it trained anew",
            ) from error
        return trained if len(trained.rows) == block.trials else None

    def train(self, block: Block) -> TrainedBlock:
        """Train a block, and keep it."""
        points = block_points(self.preset, block)
        # One compiled program serves all blocks: a short one is filled up, and the filling thrown away.
        filling = np.repeat(points[:1], self.preset.block_size - block.trials, axis=0)
        curves = self._trainer.train(np.concatenate([points, filling]))
        rows = trial_rows(self.preset, self.task, self.dataset, block, points, curves)
        trained = TrainedBlock(rows, curves.seconds)
        content = json.dumps(trained._asdict(), allow_nan=False, separators=(",", ":"))
        write_atomically(self._file(block), content.encode())
        return trained

    def _file(self, block: Block) -> Path:
        # By the points it is trained at: other points are another block.
        points = np.ascontiguousarray(block_points(self.preset, block), "<f8")
        digest = hashlib.sha256(points.tobytes()).hexdigest()[:8]
        name = f"{block.split}-phase{block.phase}-{block.first:05d}-{block.trials}-{digest}.json"
        return self.folder / name

    @cached_property
    def _trainer(self) -> Trainer:
        return trainer_of(self.preset, self.task, self.dataset, self.preset.block_size)

    def _fingerprint(self) -> str:
        """Identify all that a task's blocks are made from: settings, data, library versions, our code."""
        preset = self.preset
        made_from = {
            "collection": [preset.name, preset.version, preset.seed, preset.block_size, preset.evaluations],
            # The number of matched points is no part: more of them go on with the same sequence.
            "task": dataclasses.asdict(self.task),
            "dataset": self.dataset.sha256,
            "libraries": library_versions(),
            "backend": jax.default_backend(),
            "sources": _sources(resources.files("pipelines.collect")),
        }
        return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:16]


def _sources(folder: Traversable) -> dict[str, str]:
    """A hash of every module that trials are made by: blocks that other code made are not taken over."""
    found: dict[str, str] = {}
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            found |= {f"{entry.name}/{name}": digest for name, digest in _sources(entry).items()}
        elif entry.name.endswith(".py"):
            found[entry.name] = hashlib.sha256(entry.read_bytes()).hexdigest()
    return found


def library_versions() -> dict[str, str]:
    """Versions of the libraries that results depend on."""
    return {name: metadata.version(name) for name in LIBRARIES}
