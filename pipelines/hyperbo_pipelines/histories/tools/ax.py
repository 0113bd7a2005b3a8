"""Experiments of Ax, from the JSON files that its clients save."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hyperbo.data.warping import Direction
from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.histories.draft import ConditionDraft, ParameterDraft
from hyperbo_pipelines.histories.files import epoch, member, name_text, number, read_json
from hyperbo_pipelines.histories.guess import guess_role
from hyperbo_pipelines.histories.history import Objective, Run, RunStatus, Study

_STATUSES: Mapping[str, RunStatus] = {
    "COMPLETED": "done",
    "EARLY_STOPPED": "pruned",
    "FAILED": "failed",
    "ABANDONED": "failed",
    "STALE": "failed",
}


def is_ax(content: Any) -> bool:
    """Whether a JSON document is a snapshot of an Ax client or experiment."""
    experiment = content.get("experiment", content) if isinstance(content, dict) else None
    return isinstance(experiment, dict) and str(experiment.get("__type", "")).endswith("Experiment")


def read_ax(path: Path) -> list[Study]:
    """Read a snapshot of an Ax client (`save_to_json_file`) or experiment (`save_experiment`).

    Ax writes times without a zone: they are taken for UTC.

    Raises:
      InvalidInputError: the file cannot be read, or is not such a snapshot.
    """
    where, content = str(path), read_json(path)
    if not is_ax(content):
        raise InvalidInputError(
            "not a snapshot of Ax", where=where, fix="write one by client.save_to_json_file"
        )
    experiment = content.get("experiment", content)
    space = member(experiment, "search_space", dict, where)
    data = experiment.get("data_by_trial") or {}
    runs = [
        run
        for index, trial in member(experiment, "trials", dict, where).items()
        for run in _runs(str(index), trial, data.get(index), where)
    ]
    name = experiment.get("name") or path.stem
    return [
        Study(
            "Ax",
            "",
            name_text(name, "the experiment", where),
            tuple(runs),
            tuple(_objectives(experiment.get("optimization_config"), where)),
            _with_conditions(member(space, "parameters", list, where), where),
            source=where,
        )
    ]


def _objectives(config: Any, where: str) -> Iterator[Objective]:
    if not isinstance(config, dict):
        return
    objective = member(config, "objective", dict, where)
    if isinstance(objective.get("expression"), str):
        for term in objective["expression"].split(","):
            # A weighted sum of metrics is no metric of the trials; --objective names one of them.
            if match := re.fullmatch(r"\s*(-?)\s*(?:1(?:\.0)?\s*\*\s*)?([^\s*+]+)\s*", term):
                yield Objective(match[2], "minimize" if match[1] else "maximize")
        return
    for each in objective.get("objectives") or [objective]:
        metric = member(each, "metric", dict, where)
        direction: Direction = "minimize" if each.get("minimize") else "maximize"
        yield Objective(name_text(metric.get("name"), "a metric", where), direction)


def _with_conditions(parameters: list[Any], where: str) -> tuple[ParameterDraft, ...]:
    drafts = {}
    for each in parameters:
        draft = _draft(each, where)
        if draft:
            drafts[draft.name] = draft
    for each in parameters:
        dependents = each.get("dependents") or {}
        for key, names in dependents.items():
            level = next((value for value in each["values"] if str(value) == str(key)), key)
            for name in filter(drafts.__contains__, names):
                before = drafts[name].condition
                values = (*before.values, level) if before else (level,)
                drafts[name] = replace(drafts[name], condition=ConditionDraft(each["name"], values))
    return tuple(drafts.values())


def _draft(parameter: Any, where: str) -> ParameterDraft | None:
    name = name_text(parameter.get("name"), "a parameter", where)
    role = guess_role(name)
    kind = member(parameter, "__type", str, where)
    if kind == "RangeParameter":
        is_integer = member(parameter, "parameter_type", dict, where).get("name") == "INT"
        lower, upper = (number(parameter.get(bound)) for bound in ("lower", "upper"))
        scaling = "log" if parameter.get("log_scale") else "linear"
        notes = ("Ax searched it on a logit scale.",) if parameter.get("logit_scale") else ()
        return ParameterDraft(
            name, "integer" if is_integer else "real", lower, upper, scaling, role=role, notes=notes
        )
    if kind == "FixedParameter":
        return ParameterDraft(name, "constant", levels=(parameter.get("value"),), role=role)
    if kind != "ChoiceParameter":
        return None
    levels = tuple(member(parameter, "values", list, where))
    if len(levels) == 1:
        return ParameterDraft(name, "constant", levels=levels, role=role)
    if all(isinstance(level, bool) for level in levels):
        return ParameterDraft(name, "boolean", role=role)
    ordered = bool(parameter.get("is_ordered"))
    return ParameterDraft(name, "ordinal" if ordered else "choice", levels=levels, role=role)


def _runs(index: str, trial: Any, data: Any, where: str) -> Iterator[Run]:
    status = _STATUSES.get(str((trial.get("status") or {}).get("name")), "running")
    started, ended = (
        epoch((trial.get(name) or {}).get("value")) for name in ("time_run_started", "time_completed")
    )
    generated = trial.get("generator_run") or {}
    generators = [*(each["generator_run"] for each in trial.get("generator_run_structs") or ()), generated]
    arms = [arm for each in generators for arm in each.get("arms") or ()]
    measured = _measured(data, where)
    for arm in arms:
        metrics, curves = measured.get(arm.get("name"), ({}, {}))
        yield Run(
            index if len(arms) == 1 else str(arm.get("name")),
            status,
            member(arm, "parameters", dict, where),
            metrics,
            curves,
            started,
            ended - started,
        )


def _measured(data: Any, where: str) -> dict[Any, tuple[dict[str, float], dict[str, dict[float, float]]]]:
    """Metrics and curves by the name of the arm, of the data that were attached last."""
    found: dict[Any, tuple[dict[str, float], dict[str, dict[float, float]]]] = {}
    for _, each in (data or {}).get("value") or ():
        try:
            frame = json.loads(each["df"]["value"])
            columns = [frame[name] for name in ("arm_name", "metric_name", "mean")]
            keys = list(columns[0])
            rows = [
                [*(column[key] for column in columns), (frame.get("step") or {}).get(key)] for key in keys
            ]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInputError(
                f"the data of a trial cannot be read: {error!r}", where=where, fix="save the snapshot again"
            ) from error
        for arm, metric, mean, step in rows:
            metrics, curves = found.setdefault(arm, ({}, {}))
            metrics[name_text(metric, "a metric", where)] = number(mean)
            if step is not None:
                curves.setdefault(metric, {})[number(step)] = number(mean)
    return found
