"""Studies of open-source Vizier, from the SQLite database of its service."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hyperbo.data.warping import Direction
from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.histories import wire
from hyperbo_pipelines.histories.draft import ConditionDraft, ParameterDraft
from hyperbo_pipelines.histories.files import MOST_RUNS, check_rows, name_text, sqlite_database
from hyperbo_pipelines.histories.guess import guess_role
from hyperbo_pipelines.histories.history import Objective, Run, RunStatus, Study

# Numbers of fields and values are those of Vizier's study.proto.
_DIRECTIONS: dict[int, Direction] = {1: "maximize", 2: "minimize"}
_SUCCEEDED, _INFEASIBLE = 4, 5
_LOG, _REVERSE_LOG = 2, 3
_AS_BOOLEAN, _AS_INTEGER = 1, 2
_TRUTH = {"True": True, "False": False, "true": True, "false": False}
_DEEPEST = 20


def read_vizier(path: Path) -> list[Study]:
    """Read all studies of a database of Vizier's service.

    A study is called by its display name, its owner's in front where there are several owners.

    Raises:
      InvalidInputError: the database cannot be read, or a message in it is damaged.
    """
    with sqlite_database(path) as connection:
        check_rows(connection, "trials", MOST_RUNS, str(path))
        studies = connection.execute(
            "select study_name, owner_id, study_id, serialized_study from studies order by study_name"
        ).fetchall()
        owners = {owner for _, owner, _, _ in studies}
        found = []
        for _, owner, identifier, message in studies:
            trials = connection.execute(
                "select trial_id, serialized_trial from trials where owner_id = ? and study_id = ? "
                "order by trial_id",
                (owner, identifier),
            ).fetchall()
            prefix = f"{owner}/" if len(owners) > 1 else ""
            try:
                found.append(_study(prefix, wire.fields_of(message), trials, str(path)))
            except InvalidInputError as error:
                raise InvalidInputError(
                    error.what, where=error.where or f"{path}: study {identifier}", fix=error.fix
                ) from error
    return found


def _study(prefix: str, fields: wire.Fields, trials: list[tuple[Any, bytes]], where: str) -> Study:
    spec = wire.message_of(fields, 3)
    drafts: dict[str, ParameterDraft] = {}
    booleans: set[str] = set()
    integers: set[str] = set()
    for each in wire.messages_of(spec, 2):
        for draft, external in _drafts(each, None, where, 0):
            drafts[draft.name] = draft
            booleans |= {draft.name} if draft.kind == "boolean" else set()
            integers |= {draft.name} if draft.kind == "integer" or external == _AS_INTEGER else set()
    objectives = tuple(
        Objective(
            name_text(wire.text_of(each, 1), "a metric", where), _DIRECTIONS.get(wire.integer_of(each, 2))
        )
        for each in wire.messages_of(spec, 1)
        if 3 not in each  # A safety metric is a constraint.
    )
    runs = (_run(str(number), wire.fields_of(message), booleans, integers) for number, message in trials)
    name = prefix + wire.text_of(fields, 2)
    return Study(
        "Vizier",
        "",
        name_text(name, "the display name", where),
        tuple(runs),
        objectives,
        tuple(drafts.values()),
        source=where,
    )


def _drafts(
    spec: wire.Fields, condition: ConditionDraft | None, where: str, depth: int
) -> Iterator[tuple[ParameterDraft, int]]:
    """A parameter and those below it, each with the type that Vizier shows it as."""
    if depth > _DEEPEST:
        raise InvalidInputError("conditions are nested too deeply", where=where, fix="give another study")
    name = name_text(wire.text_of(spec, 1), "a parameter", where)
    role, external = guess_role(name), wire.integer_of(spec, 7)
    scale = wire.integer_of(spec, 6)
    scaling = "log" if scale == _LOG else "linear"
    notes = ("Vizier searched it on a reverse log scale.",) if scale == _REVERSE_LOG else ()
    if 2 in spec or 3 in spec:
        given = wire.message_of(spec, 2 if 2 in spec else 3)
        read = wire.double_of if 2 in spec else wire.integer_of
        draft = ParameterDraft(
            name,
            "real" if 2 in spec else "integer",
            read(given, 1),
            read(given, 2),
            scaling,
            condition=condition,
            role=role,
            notes=notes,
        )
    else:
        if 4 in spec:
            levels: tuple[Any, ...] = tuple(wire.texts_of(wire.message_of(spec, 4), 1))
        else:
            numbers = wire.doubles_of(wire.message_of(spec, 5), 1)
            levels = tuple(int(each) if external == _AS_INTEGER else each for each in numbers)
        kind = "choice" if 4 in spec else "ordinal"
        if external == _AS_BOOLEAN and set(levels) <= _TRUTH.keys():
            kind, levels = "boolean", ()
        elif len(levels) == 1:
            kind = "constant"
        draft = ParameterDraft(name, kind, levels=levels, condition=condition, role=role, notes=notes)
    yield draft, external
    for child in wire.messages_of(spec, 10):
        values = (
            *wire.doubles_of(wire.message_of(child, 2), 1),
            *wire.integers_of(wire.message_of(child, 3), 1),
            *wire.texts_of(wire.message_of(child, 4), 1),
        )
        if draft.kind == "boolean":
            values = tuple(_TRUTH[str(value)] for value in values)
        elif external == _AS_INTEGER:
            values = tuple(int(float(value)) for value in values)
        yield from _drafts(wire.message_of(child, 1), ConditionDraft(name, values), where, depth + 1)


def _run(number: str, fields: wire.Fields, booleans: set[str], integers: set[str]) -> Run:
    values: dict[str, Any] = {}
    for each in wire.messages_of(fields, 4):
        name, content = wire.text_of(each, 1), wire.message_of(each, 2)
        # Value of google.protobuf: null, number, text, truth.
        value: Any = wire.double_of(content, 2)
        if 3 in content:
            value = wire.text_of(content, 3)
        elif 4 in content:
            value = bool(wire.integer_of(content, 4))
        if name in booleans:
            value = _TRUTH.get(str(value), value)
        elif name in integers and isinstance(value, float) and value.is_integer():
            value = int(value)
        values[name] = value
    metrics = _metrics(wire.message_of(fields, 5))
    state = wire.integer_of(fields, 3)
    status: RunStatus = "running"
    if state == _INFEASIBLE:
        status = "failed"
    elif state == _SUCCEEDED:
        status = "done"
    curves: dict[str, dict[float, float]] = {}
    for place, each in enumerate(wire.messages_of(fields, 6), start=1):
        step = float(wire.integer_of(each, 2) if 2 in each else place)
        for name, value in _metrics(each).items():
            curves.setdefault(name, {})[step] = value
    started, ended = (_time(fields, place) for place in (7, 8))
    return Run(number, status, values, metrics, curves, started, ended - started)


def _metrics(measurement: wire.Fields) -> dict[str, float]:
    return {wire.text_of(each, 1): wire.double_of(each, 2) for each in wire.messages_of(measurement, 3)}


def _time(fields: wire.Fields, number: int) -> float:
    if number not in fields:
        return math.nan
    stamp = wire.message_of(fields, number)
    return wire.integer_of(stamp, 1) + wire.integer_of(stamp, 2) / 1e9
