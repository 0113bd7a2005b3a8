"""Runs of MLflow: its SQLite database, or a folder `mlruns` of its file store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.histories.files import (
    MOST_POINTS,
    MOST_RUNS,
    check_rows,
    literal,
    name_text,
    number,
    read_bytes,
    read_yaml,
    sqlite_database,
)
from hyperbo_pipelines.histories.history import Run, RunStatus, Study

_STATUSES: Mapping[str, RunStatus] = {"FINISHED": "done", "FAILED": "failed", "KILLED": "failed"}
# The file store writes the status as a number of MLflow's RunStatus.
_NUMBERS = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
_Points = dict[str, dict[float, float]]


def read_mlflow(path: Path) -> list[Study]:
    """Read the experiments of a tracking store, one study for each; those that were deleted are left out.

    MLflow keeps hyperparameters as texts: a text that is a number, or true or false, is read as such. It does
    not say which metric is tuned.

    Args:
      path: `mlflow.db`, or the folder `mlruns`.

    Raises:
      InvalidInputError: the store cannot be read, or is not as MLflow 3 writes it.
    """
    studies = _of_folder(path) if path.is_dir() else _of_database(path)
    # MLflow makes an experiment of this name by itself.
    return [study for study in studies if study.runs or study.name != "Default"]


def _of_database(path: Path) -> list[Study]:
    studies = []
    with sqlite_database(path) as connection:
        for table, most in (("runs", MOST_RUNS), ("metrics", MOST_POINTS), ("params", MOST_POINTS)):
            check_rows(connection, table, most, str(path))
        params, tags, points = ({}, {}, {})
        for target, table in ((params, "params"), (tags, "tags")):
            for run, key, value in connection.execute(f"select run_uuid, key, value from {table}"):
                target.setdefault(run, {})[key] = value
        for run, key, value, is_nan, step in connection.execute(
            "select run_uuid, key, value, is_nan, step from metrics order by step, timestamp"
        ):
            curve = points.setdefault(run, {}).setdefault(key, {})
            curve[float(step or 0)] = math.nan if is_nan else float(value)
        experiments = connection.execute(
            "select experiment_id, name from experiments where lifecycle_stage = 'active' order by name"
        ).fetchall()
        for experiment, name in experiments:
            rows = connection.execute(
                "select run_uuid, status, start_time, end_time from runs "
                "where experiment_id = ? and lifecycle_stage = 'active' order by start_time, run_uuid",
                (experiment,),
            ).fetchall()
            runs = (
                _run(run, status, times, params.get(run, {}), points.get(run, {}), tags.get(run, {}))
                for run, status, *times in rows
            )
            studies.append(_study(name, tuple(runs), path))
    return studies


def _of_folder(path: Path) -> list[Study]:
    studies = []
    for meta in sorted(path.glob("*/meta.yaml")):
        experiment = read_yaml(meta)
        if experiment.get("lifecycle_stage") != "active" or "experiment_id" not in experiment:
            continue
        runs = []
        for each in sorted(meta.parent.glob("*/meta.yaml")):
            run = read_yaml(each)
            if run.get("lifecycle_stage") != "active" or "run_id" not in run:
                continue
            params, tags = (_texts(each.parent / name) for name in ("params", "tags"))
            points = {name: _points(text, each) for name, text in _texts(each.parent / "metrics").items()}
            times = [run.get("start_time"), run.get("end_time")]
            status = _NUMBERS.get(run.get("status", 0), "RUNNING")
            runs.append((times[0] or 0, _run(str(run["run_id"]), status, times, params, points, tags)))
        ordered = tuple(run for _, run in sorted(runs, key=lambda each: (each[0], each[1].trial_id)))
        studies.append(_study(experiment.get("name"), ordered, path))
    return studies


def _texts(folder: Path) -> dict[str, str]:
    """The files of a folder and of those below it, by name: MLflow makes folders of slashes in names."""
    try:
        return {
            path.relative_to(folder).as_posix(): read_bytes(path).decode("utf-8")
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"is not UTF-8: {error}", where=str(folder), fix="copy it again") from error


def _points(text: str, path: Path) -> dict[float, float]:
    """The points of a metric: a line for each, of time, value and step."""
    points = {}
    for line in text.splitlines():
        _, value, *step = line.split(" ") if " " in line else ("", "")
        points[number(step[0]) if step else 0.0] = number(value)
    if any(map(math.isnan, points)):
        raise InvalidInputError(
            "a metric has a line that cannot be read", where=str(path.parent), fix="copy it again"
        )
    return points


def _run(
    identifier: str,
    status: str,
    times: list[Any],
    params: Mapping[str, str],
    points: _Points,
    tags: Mapping[str, str],
) -> Run:
    started, ended = (number(time) / 1000 for time in times)
    return Run(
        identifier,
        _STATUSES.get(status, "running"),
        {name: literal(value) for name, value in params.items()},
        {name: list(curve.values())[-1] for name, curve in points.items()},
        {name: curve for name, curve in points.items() if len(curve) > 1},
        started,
        ended - started,
        {name: value for name, value in tags.items() if not name.startswith("mlflow.")},
    )


def _study(name: Any, runs: tuple[Run, ...], path: Path) -> Study:
    return Study("MLflow", "", name_text(name, "the experiment", str(path)), runs, source=str(path))
