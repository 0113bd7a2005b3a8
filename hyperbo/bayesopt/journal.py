"""The journal of online runs: each trial is a line of a file, written before the next trial is proposed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hyperbo.compute.checkpoints import differences
from hyperbo.errors import InvalidInputError, VersionConflictError
from hyperbo.storage.atomic import write_atomically
from hyperbo.storage.validation import validated

IDENTITY_NAME, TRIALS_NAME = "runs.json", "trials.jsonl"


class RunName(NamedTuple):
    """The name of a run.

    Attributes:
      method: label of the method in the comparison.
      task: name of the task.
      seed: of the run.
    """

    method: str
    task: str
    seed: int


@dataclass(frozen=True)
class OnlineTrial:
    """One trial of an online run.

    Attributes:
      run: which run it belongs to.
      iteration: 1, 2, ...
      point: raw hyperparameters, in the order of the search space.
      objective: raw objective, in its own unit; None where the trial was infeasible.
      row: the trial as a raw record of its task, plain values.
    """

    run: RunName
    iteration: int
    point: tuple[float, ...]
    objective: float | None
    row: Mapping[str, Any]


class Journal:
    """The trials of runs in a folder. One process opens it and appends to it.

    A line counts once it is complete. So a killed process loses only the trials that were running.

    Args:
      folder: of the journal; it is created if it is missing.
      identity: all settings that the trials depend on, beside run and iteration, as JSON.

    Attributes:
      trials: in the order in which they were written.

    Raises:
      VersionConflictError: the folder's trials have another identity. The message says what differs.
      InvalidInputError: the journal is damaged.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self._path = folder / TRIALS_NAME
        _claim(folder / IDENTITY_NAME, json.loads(json.dumps(identity)))
        self.trials = _read(self._path)

    def append(self, trials: Sequence[OnlineTrial]) -> None:
        """Write trials; when this returns they are on the disk."""
        lines = [json.dumps(_plain(trial), allow_nan=False, separators=(",", ":")) + "\n" for trial in trials]
        with self._path.open("ab") as file:
            file.write("".join(lines).encode())
            file.flush()
            os.fsync(file.fileno())
        self.trials.extend(trials)


def _claim(path: Path, identity: Mapping[str, Any]) -> None:
    if not path.exists():
        write_atomically(path, json.dumps(identity, indent=1).encode())
        return
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise InvalidInputError(
            f"cannot be read: {error}", where=str(path), fix="use another folder"
        ) from error
    different = differences(found, identity)
    if different:
        raise VersionConflictError(
            f"{path.parent}: its trials have other settings: {'; '.join(different)}; use another folder"
        )


def _read(path: Path) -> list[OnlineTrial]:
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        # The process was killed while it wrote. What it wrote is cut off.
        with path.open("r+b") as file:
            file.truncate(whole)
    trials: list[OnlineTrial] = []
    counts: dict[RunName, int] = {}
    for number, line in enumerate(content[:whole].splitlines(), start=1):
        where = f"{path}:{number}"
        try:
            trial = validated(OnlineTrial, json.loads(line), "")
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(
                f"this line is no trial: {error}", where=where, fix="remove the file to begin anew"
            ) from error
        counts[trial.run] = counts.get(trial.run, 0) + 1
        if trial.iteration != counts[trial.run]:
            raise InvalidInputError(
                f"iteration {trial.iteration} of {'/'.join(map(str, trial.run))} stands where "
                f"{counts[trial.run]} is expected",
                where=where,
                fix="remove the file to begin anew",
            )
        trials.append(trial)
    return trials


def _plain(trial: OnlineTrial) -> dict[str, Any]:
    return asdict(trial) | {"run": trial.run._asdict(), "row": dict(trial.row)}
