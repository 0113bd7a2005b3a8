"""Blocks of trials of one task: each is trained once, kept as a small file, and found again by its inputs."""

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
from hyperbo.storage.atomic import write_atomically
from hyperbo_pipelines.collect.plan import TrialBlock, block_points, dataset_of, trainer_of
from hyperbo_pipelines.collect.preset import Preset
from hyperbo_pipelines.collect.rows import trial_rows
from hyperbo_pipelines.collect.trainer import Trainer

# Modules that decide no result: after a change there, finished blocks are still used.
_WITHOUT_RESULTS = ("__init__.py", "objective.py", "preset.py", "sweep.py", "train.py")
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
    """The blocks of one task: reads finished ones, trains others.

    Args:
      preset: the collection.
      number: of the task in the preset.
      work_folder: where finished blocks are kept.

    Attributes:
      task: the task.
      dataset: its task dataset.
      folder: where its finished blocks are.

    Raises:
      InvalidInputError: the model or the batch size does not fit the task dataset.
      NotAvailableError: the library with the task dataset is not installed.
    """

    def __init__(self, preset: Preset, number: int, work_folder: Path) -> None:
        self.preset, self.task = preset, preset.tasks[number]
        self.dataset = dataset_of(preset, self.task)
        self.folder = work_folder / f"{self.task.study}-{self._fingerprint()}"

    def finished(self, block: TrialBlock) -> TrainedBlock | None:
        """Read a finished block; None if it is not finished.

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

    def train(self, block: TrialBlock) -> TrainedBlock:
        """Train a block and write its file."""
        points = block_points(self.preset, block)
        curves = self._trainer.train(points)
        rows = trial_rows(self.preset, self.task, self.dataset, block.places, points, curves)
        trained = TrainedBlock(rows, curves.seconds)
        content = json.dumps(trained._asdict(), allow_nan=False, separators=(",", ":"))
        write_atomically(self._file(block), content.encode())
        return trained

    def _file(self, block: TrialBlock) -> Path:
        # The name holds a hash of the points: other points are another block.
        points = np.ascontiguousarray(block_points(self.preset, block), "<f8")
        digest = hashlib.sha256(points.tobytes()).hexdigest()[:8]
        name = f"{block.split}-phase{block.phase}-{block.first:05d}-{block.trials}-{digest}.json"
        return self.folder / name

    @cached_property
    def _trainer(self) -> Trainer:
        return trainer_of(self.preset, self.task, self.dataset, self.preset.block_size)

    def _fingerprint(self) -> str:
        """A hash over all that decides a task's blocks: settings, data, library versions, our code."""
        preset = self.preset
        made_from = {
            "collection": [preset.name, preset.version, preset.seed, preset.block_size, preset.evaluations],
            # Without the number of matched points: more points continue the same sequence.
            "task": dataclasses.asdict(self.task),
            "dataset": self.dataset.sha256,
            "libraries": library_versions(),
            "backend": jax.default_backend(),
            "sources": {
                name: digest
                for name, digest in _sources(resources.files("hyperbo_pipelines.collect")).items()
                if name not in _WITHOUT_RESULTS
            },
        }
        return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:16]


def _sources(folder: Traversable) -> dict[str, str]:
    """A hash of every module of a package, by its path in the package."""
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
