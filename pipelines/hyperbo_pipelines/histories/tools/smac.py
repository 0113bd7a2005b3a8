"""Runs of SMAC: the folder of a scenario, with its run history and its configuration space."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.histories.draft import ConditionDraft, ParameterDraft
from hyperbo_pipelines.histories.files import member, name_text, number, read_json
from hyperbo_pipelines.histories.guess import guess_role
from hyperbo_pipelines.histories.history import Objective, Run, RunStatus, Study

HISTORY = "runhistory.json"
# SMAC's StatusType: running, success, crashed, timeout, out of memory.
_STATUSES: Mapping[int, RunStatus] = {0: "running", 1: "done", 2: "failed", 3: "failed", 4: "failed"}


def read_smac(folder: Path) -> list[Study]:
    """Read the folder of a scenario: `runhistory.json`, `configspace.json` and `scenario.json`.

    The id of a trial is `<configuration>/<seed>`, then the instance and the budget where it has them.

    Raises:
      InvalidInputError: a file is missing, or is not as SMAC 2.4 writes it.
    """
    where = str(folder / HISTORY)
    scenario = member({"": read_json(folder / "scenario.json")}, "", dict, str(folder / "scenario.json"))
    space = member({"": read_json(folder / "configspace.json")}, "", dict, str(folder / "configspace.json"))
    history = member({"": read_json(folder / HISTORY)}, "", dict, where)
    names = scenario.get("objectives", "cost")
    names = [names] if isinstance(names, str) else names
    configurations = member(history, "configs", dict, where)
    runs = tuple(_run(row, configurations, names, where) for row in member(history, "data", list, where))
    return [
        Study(
            "SMAC",
            str((scenario.get("_meta") or {}).get("version", "")),
            name_text(scenario.get("name"), "the scenario", where),
            runs,
            tuple(Objective(name_text(name, "an objective", where), "minimize") for name in names),
            tuple(drafts(space, where)),
            source=str(folder),
        )
    ]


def _run(row: Any, configurations: Mapping[str, Any], names: list[str], where: str) -> Run:
    if not isinstance(row, dict):
        raise InvalidInputError(
            "the run history is that of an older SMAC", where=where, fix="save it by SMAC 2.4 or newer"
        )
    identifier = row.get("config_id")
    optional = (row.get(name) for name in ("instance", "budget"))
    parts = [identifier, row.get("seed"), *(each for each in optional if each is not None)]
    costs = row.get("cost")
    costs = costs if isinstance(costs, list) else [costs]
    status = _STATUSES.get(int(number(row.get("status", -1))), "failed")
    # The cost of a crash is a setting of SMAC, not a result.
    kept = costs if status == "done" else []
    return Run(
        "/".join(map(str, parts)),
        status,
        member(configurations, str(identifier), dict, where),
        {name: number(cost) for name, cost in zip(names, kept, strict=False)},
        started=number(row.get("starttime")),
        seconds=number(row.get("time")),
    )


def drafts(space: Mapping[str, Any], where: str) -> Iterator[ParameterDraft]:
    """The hyperparameters of a configuration space as ConfigSpace writes it in JSON.

    A condition of several others, and a distribution without bounds, are left to what the trials show.
    """
    found = {}
    for each in member(space, "hyperparameters", list, where):
        draft = _draft(each, where)
        if draft:
            found[draft.name] = draft
    for each in space.get("conditions") or ():
        child = found.get(each.get("child"))
        condition = _condition(each, found)
        if child and condition:
            found[child.name] = replace(child, condition=condition)
    yield from found.values()


def _draft(parameter: Mapping[str, Any], where: str) -> ParameterDraft | None:
    name = name_text(parameter.get("name"), "a parameter", where)
    kind, role = str(parameter.get("type")), guess_role(name)
    if kind == "constant":
        return ParameterDraft(name, "constant", levels=(parameter.get("value"),), role=role)
    if kind in ("categorical", "ordinal"):
        levels = tuple(member(parameter, "choices" if kind == "categorical" else "sequence", list, where))
        if len(levels) == 1:
            return ParameterDraft(name, "constant", levels=levels, role=role)
        if len(levels) == 2 and all(isinstance(level, bool) for level in levels):
            return ParameterDraft(name, "boolean", role=role)
        return ParameterDraft(
            name, "choice" if kind == "categorical" else "ordinal", levels=levels, role=role
        )
    lower, upper = number(parameter.get("lower")), number(parameter.get("upper"))
    if not math.isfinite(upper - lower):
        return None
    scaling = "log" if parameter.get("log") else "linear"
    return ParameterDraft(
        name, "integer" if kind.endswith("_int") else "real", lower, upper, scaling, role=role
    )


def _condition(given: Mapping[str, Any], found: Mapping[str, ParameterDraft]) -> ConditionDraft | None:
    parent, kind, value = found.get(str(given.get("parent"))), given.get("type"), given.get("value")
    if parent is None:
        return None
    if kind == "EQ":
        return ConditionDraft(parent.name, (value,))
    if kind == "IN":
        return ConditionDraft(parent.name, tuple(given.get("values") or ()))
    if kind == "NEQ" and parent.levels:
        return ConditionDraft(parent.name, tuple(level for level in parent.levels if level != value))
    if kind in ("GT", "LT") and parent.kind == "integer":
        bound = int(number(value))
        if kind == "GT":
            return ConditionDraft(parent.name, lower=bound + 1)
        return ConditionDraft(parent.name, upper=bound - 1)
    return None
