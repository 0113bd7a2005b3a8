"""Experiments of Ray Tune: the folder of an experiment, with one folder for each trial."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.fields import json_object
from hyperbo_pipelines.histories.files import member, name_text, number, read_bytes, read_json
from hyperbo_pipelines.histories.flat import flattened
from hyperbo_pipelines.histories.history import Run, RunStatus, Study

STATE = "experiment_state-*.json"
_STATUSES: Mapping[str, RunStatus] = {"TERMINATED": "done", "ERROR": "failed"}
# What Ray adds to every result.
_INTERNAL = frozenset(
    [
        "timestamp",
        "checkpoint_dir_name",
        "done",
        "training_iteration",
        "trial_id",
        "date",
        "time_this_iter_s",
        "time_total_s",
        "pid",
        "hostname",
        "node_ip",
        "config",
        "time_since_restore",
        "iterations_since_restore",
        "experiment_tag",
        "should_checkpoint",
        "timesteps_total",
        "episodes_total",
        "warmup_time",
        "experiment_id",
        "timesteps_since_restore",
    ]
)


def read_ray_tune(folder: Path) -> list[Study]:
    """Read the folder of an experiment: its newest `experiment_state-*.json`, and of each trial
    `params.json` and `result.json`.

    The metric and its direction are only in Ray's pickled files, which are not read. So is which trials a
    scheduler stopped early: they count as done.

    Raises:
      InvalidInputError: a file cannot be read, or is not as Ray 2.60 writes it.
    """
    statuses = _statuses(max(folder.glob(STATE), key=lambda path: path.name))
    runs = []
    for path in sorted(folder.glob("*/params.json")):
        results = list(_results(path.with_name("result.json")))
        identifier = str(results[0].get("trial_id", "")) if results else _identifier(path.parent.name)
        runs.append(_run(identifier, statuses.get(identifier), path, results))
    name = name_text(folder.absolute().name, "the experiment", str(folder))
    return [Study("Ray Tune", "", name, tuple(runs), source=str(folder))]


def _statuses(path: Path) -> dict[str, RunStatus]:
    found: dict[str, RunStatus] = {}
    for entry in member(read_json(path), "trial_data", list, str(path)):
        # Of the state of a trial only plain fields are read: others are pickled.
        state = json_object(entry[0].encode()) if isinstance(entry, list) and entry else {}
        found[str(state.get("trial_id"))] = _STATUSES.get(str(state.get("status")), "running")
    return found


def _identifier(name: str) -> str:
    """The id in the name of a trial's folder, `<trainable>_<experiment>_<number>_...`.

    >>> _identifier("train_b3b41_00001_1_layers=5_2026-11-23_01-32-10")
    'b3b41_00001'
    """
    parts = name.split("_")
    for one, two in pairwise(parts):
        if len(two) == 5 and two.isdigit() and len(one) >= 5:
            return f"{one}_{two}"
    return name


def _results(path: Path) -> Iterator[dict[str, Any]]:
    if path.is_file():
        for place, line in enumerate(read_bytes(path).splitlines(), start=1):
            if line.strip():
                try:
                    yield json_object(line)
                except InvalidInputError as error:
                    raise InvalidInputError(
                        error.what, where=f"{path}:{place}", fix="copy the file again"
                    ) from error


def _run(identifier: str, status: RunStatus | None, path: Path, results: list[dict[str, Any]]) -> Run:
    values = flattened(member({"": read_json(path)}, "", dict, str(path)))
    curves: dict[str, dict[float, float]] = {}
    for place, result in enumerate(results, start=1):
        step = number(result.get("training_iteration", place))
        plain = {name: value for name, value in result.items() if name not in _INTERNAL}
        for name, value in flattened(plain).items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                curves.setdefault(name, {})[step] = float(value)
    last = results[-1] if results else {}
    seconds = number(last.get("time_total_s"))
    return Run(
        identifier,
        # Without a state, a trial that has reported its end is done.
        status or ("done" if last.get("done") else "running"),
        values,
        {name: list(curve.values())[-1] for name, curve in curves.items()},
        {name: curve for name, curve in curves.items() if len(curve) > 1},
        number(last.get("timestamp")) - (0.0 if math.isnan(seconds) else seconds),
        seconds,
    )
