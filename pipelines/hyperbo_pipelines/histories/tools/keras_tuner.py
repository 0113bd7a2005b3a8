"""Searches of KerasTuner: the folder of a project, with its oracle and its trials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyperbo.data.warping import Direction
from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.histories.draft import ConditionDraft, ParameterDraft
from hyperbo_pipelines.histories.files import epoch, member, name_text, number, read_json
from hyperbo_pipelines.histories.guess import guess_role
from hyperbo_pipelines.histories.history import Objective, Run, RunStatus, Study

ORACLE = "oracle.json"
_STATUSES: Mapping[str, RunStatus] = {
    "COMPLETED": "done",
    "INVALID": "failed",
    "FAILED": "failed",
    "STOPPED": "failed",
}


def read_keras_tuner(folder: Path) -> list[Study]:
    """Read the folder of a project: `oracle.json` and `trial_*/trial.json`.

    KerasTuner writes times without a zone: they are taken for UTC. Its files do not name the objective: it is
    the metric whose best value is the score of every trial.

    Raises:
      InvalidInputError: a file cannot be read, or is not as KerasTuner 1.4 writes it.
    """
    where = str(folder / ORACLE)
    oracle = read_json(folder / ORACLE)
    space = member(member(oracle, "hyperparameters", dict, where), "space", list, where)
    display = oracle.get("display") or {}
    starts, seconds = display.get("trial_start") or {}, oracle.get("run_times") or {}
    trials = [read_json(path) for path in sorted(folder.glob("trial_*/trial.json"))]
    objective = _objective(trials)
    return [
        Study(
            "KerasTuner",
            "",
            name_text(folder.absolute().name, "the project", where),
            tuple(_run(trial, starts, seconds, where) for trial in trials),
            (objective,) if objective else (),
            tuple(_draft(each, where) for each in space),
            source=str(folder),
        )
    ]


def _objective(trials: Sequence[Any]) -> Objective | None:
    scored = [trial for trial in trials if isinstance(trial, dict) and trial.get("score") is not None]
    for name, metric in (scored[0]["metrics"]["metrics"] if scored else {}).items():
        if all(_score(trial, name) == trial["score"] for trial in scored):
            direction: Direction = "maximize" if metric["direction"] == "max" else "minimize"
            return Objective(name, direction)
    return None


def _score(trial: Mapping[str, Any], name: str) -> float:
    """The best value of a metric along training; a value is the mean over the executions of a trial."""
    metric = trial["metrics"]["metrics"].get(name)
    values = list(_curve(metric).values()) if metric else []
    if not values:
        return math.nan
    return (max if metric["direction"] == "max" else min)(values)


def _curve(metric: Mapping[str, Any]) -> dict[float, float]:
    return {
        number(each.get("step")): math.fsum(each["value"]) / len(each["value"])
        for each in metric["observations"]
        if each.get("value")
    }


def _run(trial: Any, starts: Mapping[str, Any], seconds: Mapping[str, Any], where: str) -> Run:
    identifier = str(member(trial, "trial_id", str, where))
    status = _STATUSES.get(str(trial.get("status")), "running")
    metrics = member(member(trial, "metrics", dict, where), "metrics", dict, where)
    try:
        scores = {name: _score(trial, name) for name in metrics}
        curves = {name: _curve(metric) for name, metric in metrics.items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"the metrics of the trial {identifier} cannot be read: {error!r}",
            where=where,
            fix="give the tool's own files, unchanged",
        ) from error
    return Run(
        identifier,
        status,
        _active(member(trial, "hyperparameters", dict, where), where),
        scores,
        {name: curve for name, curve in curves.items() if len(curve) > 1},
        epoch(starts.get(identifier)),
        number(seconds.get(identifier)),
    )


def _active(hyperparameters: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The values of the hyperparameters that are active: KerasTuner records defaults of some others, too."""
    values = member(hyperparameters, "values", dict, where)
    conditions: dict[str, list[Any]] = {}
    for each in member(hyperparameters, "space", list, where):
        config = member(each, "config", dict, where)
        conditions.setdefault(str(config.get("name")), []).append(config.get("conditions") or ())

    def holds(condition: Mapping[str, Any]) -> bool:
        config = condition["config"]
        return values.get(config["name"]) in config["values"]

    return {
        name: value
        for name, value in values.items()
        if any(all(map(holds, every)) for every in conditions.get(name, [()]))
    }


def _condition(config: Any, where: str) -> ConditionDraft:
    name = name_text(member(config, "name", str, where), "a parent", where)
    return ConditionDraft(name, tuple(member(config, "values", list, where)))


def _draft(parameter: Any, where: str) -> ParameterDraft:
    config = member(parameter, "config", dict, where)
    kind = member(parameter, "class_name", str, where)
    name = name_text(config.get("name"), "a parameter", where)
    role = guess_role(name)
    given = [each["config"] for each in config.get("conditions") or ()]
    # The last condition is that of the innermost scope; the parent has the others itself.
    condition = _condition(given[-1], where) if given else None
    if kind == "Fixed":
        return ParameterDraft(name, "constant", levels=(config.get("value"),), condition=condition, role=role)
    if kind == "Boolean":
        return ParameterDraft(name, "boolean", condition=condition, role=role)
    if kind == "Choice":
        levels = tuple(member(config, "values", list, where))
        ordered = "ordinal" if config.get("ordered") else "choice"
        return ParameterDraft(
            name, ordered if len(levels) > 1 else "constant", levels=levels, condition=condition, role=role
        )
    lower, upper = number(config.get("min_value")), number(config.get("max_value"))
    sampling = config.get("sampling")
    notes = ("KerasTuner searched it on a reverse log scale.",) if sampling == "reverse_log" else ()
    step = number(config.get("step"))
    stepped = step > 0 and not (kind == "Int" and step == 1)
    is_even = sampling in (None, "linear")
    if stepped and not is_even:
        notes = (*notes, f"KerasTuner took steps by a factor of {step:g}, which are lost.")
    scaling = "log" if sampling == "log" else "linear"
    return ParameterDraft(
        name,
        "integer" if kind == "Int" else "real",
        lower,
        upper,
        scaling,
        condition=condition,
        role=role,
        notes=notes,
        step=step if stepped and is_even else 0.0,
    )
