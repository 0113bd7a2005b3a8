"""Reading a space file: TOML that declares a search space and says what the columns of trials mean."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

from hyperbo.errors import InvalidInputError
from hyperbo.search_space import Parameter, Scaling, SearchSpace
from hyperbo.trial import STATUSES, Status
from hyperbo.warping import Direction, output_warping
from pipelines.trials.about import About
from pipelines.trials.description import NameSource, StatusColumn, TrialsDescription

_DEFAULT_WARPINGS: dict[str, str] = {"minimize": "negative", "maximize": "identity"}
_REQUIRED: Any = object()


def read_space_file(path: Path) -> TrialsDescription:
    """Read a space file; its reference is the card of the builder `trials`.

    Args:
      path: a TOML file.

    Returns:
      What it says, every default filled in.

    Raises:
      InvalidInputError: it cannot be read, or a field is missing, unknown or wrong; names file and field.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"the space file cannot be read: {error}", where=str(path)) from error
    except (ValueError, RecursionError) as error:  # A number of thousands of digits is no TOMLDecodeError.
        raise InvalidInputError(f"this is not TOML: {error}", where=str(path)) from error
    try:
        return _description(document)
    except InvalidInputError as error:
        where = f"{path}: {error.where}" if error.where else str(path)
        raise InvalidInputError(error.what, where=where, fix=error.fix) from error


def _description(document: dict[str, Any]) -> TrialsDescription:
    space, columns = _parameters(document.pop("parameters", None))
    about = _about(document)
    direction = _text(document, "direction")
    if direction not in get_args(Direction):
        raise InvalidInputError(
            f"direction is {direction!r}", where="direction", fix=f"use {' or '.join(get_args(Direction))}"
        )
    description = TrialsDescription(
        space=space,
        parameter_columns=columns,
        objective=_text(document, "objective"),
        warping=_warping(document, direction),
        task=_name_source(document, "task") or NameSource(column="task"),
        task_dataset=_name_source(document, "task_dataset"),
        trial_id=_column(document, "trial_id"),
        phase=_column(document, "phase"),
        status=_status(document),
        metrics=_texts(document, "metrics"),
        curves=_texts(document, "curves"),
        ignore=_texts(document, "ignore", empty_names=True),
        about=about,
    )
    _refuse_others(document, "", "the fields of a space file are those of the card of `trials`")
    return description


def _parameters(tables: Any) -> tuple[SearchSpace, dict[str, str]]:
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise InvalidInputError(
            "there is no parameter", where="parameters", fix="write one [[parameters]] table for each"
        )
    parameters, columns = [], {}
    for number, table in enumerate(tables, start=1):
        name = _text(table, "name", where=f"parameters {number}")
        where = f"parameters.{name}"
        columns[name] = _text(table, "column", name, where=where)
        lower, upper = (_number(table, bound, where) for bound in ("lower", "upper"))
        scaling = _scaling(table, where)
        _refuse_others(table, where, "fields of the file as a whole stand before the first [[parameters]]")
        try:
            parameters.append(Parameter(name, lower, upper, scaling))
        except InvalidInputError as error:
            raise InvalidInputError(error.what, where=where, fix=error.fix) from error
    try:
        return SearchSpace(tuple(parameters)), columns
    except InvalidInputError as error:
        raise InvalidInputError(error.what, where="parameters", fix="give each a name of its own") from error


def _about(document: dict[str, Any]) -> About:
    table = document.pop("about", {})
    if not isinstance(table, dict):
        raise InvalidInputError(
            f"about = {table!r} is not a table", where="about", fix="write [about], and its fields below it"
        )
    description, licence, citation = (
        _text(table, field, "", where="about") for field in ("description", "licence", "citation")
    )
    _refuse_others(
        table,
        "about",
        "use description, licence and citation; fields of the file as a whole stand before [about]",
    )
    return About(description, licence, citation)


def _scaling(table: dict[str, Any], where: str) -> Any:
    scaling = _text(table, "scaling", "linear", where=where)
    if scaling not in get_args(Scaling):
        raise InvalidInputError(
            f"scaling is {scaling!r}", where=f"{where}.scaling", fix=f"use {', '.join(get_args(Scaling))}"
        )
    return scaling


def _warping(document: dict[str, Any], direction: str) -> str:
    name = _text(document, "warping", _DEFAULT_WARPINGS[direction])
    try:
        belongs_to = output_warping(name).direction
    except InvalidInputError as error:
        raise InvalidInputError(error.what, where="warping", fix=error.fix) from error
    if belongs_to != direction:
        raise InvalidInputError(
            f"the warping {name!r} is for what one would {belongs_to}, and direction is {direction!r}",
            where="warping",
            fix="change one of the two, or leave warping out",
        )
    return name


def _name_source(document: dict[str, Any], field: str) -> NameSource | None:
    table = _table(document, field)
    if table is None:
        return None
    fix = 'write { column = "..." }, { name = "..." } or { file_name = true }'
    if len(table) != 1:
        raise InvalidInputError(f"{field} has {len(table)} entries, not one", where=field, fix=fix)
    if table.get("file_name") is True:
        return NameSource(file_name=True)
    source = NameSource(
        column=_text(table, "column", "", where=field), name=_text(table, "name", "", where=field)
    )
    if table:
        (entry,) = table.items()
        raise InvalidInputError(f"{entry[0]} = {entry[1]!r} names no task", where=field, fix=fix)
    return source


def _column(document: dict[str, Any], field: str) -> str:
    table = _table(document, field)
    if table is None:
        return ""
    column = _text(table, "column", where=field)
    _refuse_others(table, field, 'write { column = "..." }')
    return column


def _status(document: dict[str, Any]) -> StatusColumn | None:
    table = _table(document, "status")
    if table is None:
        return None
    column = _text(table, "column", where="status")
    meanings: dict[str, Status] = {}
    skip = _texts(table, "skip", where="status")
    for status in STATUSES:
        for value in _texts(table, status, (status,), where="status"):
            if value in meanings or value in skip:
                raise InvalidInputError(
                    f"{value!r} is listed twice",
                    where=f"status.{status}",
                    fix="give each value of the column one meaning; a list left out holds its own name",
                )
            meanings[value] = status
    _refuse_others(table, "status", f"use column, {', '.join(STATUSES)} and skip")
    return StatusColumn(column, meanings, skip)


def _table(document: dict[str, Any], field: str) -> dict[str, Any] | None:
    table = document.pop(field, None)
    if table is not None and not isinstance(table, dict):
        raise InvalidInputError(
            f"{field} = {table!r} is not a table", where=field, fix=f'write {field} = {{ column = "..." }}'
        )
    return table


def _text(table: dict[str, Any], key: str, default: str = _REQUIRED, *, where: str = "") -> str:
    place = f"{where}.{key}" if where else key
    if key not in table and default is not _REQUIRED:
        return default
    if key not in table:
        raise InvalidInputError(f"{key} is missing", where=place)
    value = table.pop(key)
    if not isinstance(value, str) or not value:
        raise InvalidInputError(f"{key} = {value!r} is not a text", where=place)
    return value


def _texts(
    table: dict[str, Any],
    key: str,
    default: tuple[str, ...] = (),
    *,
    where: str = "",
    empty_names: bool = False,
) -> tuple[str, ...]:
    place = f"{where}.{key}" if where else key
    values = table.pop(key, list(default))
    if not isinstance(values, list) or not all(
        isinstance(value, str) and (value or empty_names) for value in values
    ):
        raise InvalidInputError(f"{key} = {values!r} is not a list of texts", where=place)
    if len(set(values)) != len(values):
        raise InvalidInputError(f"{key} names {max(values, key=values.count)!r} twice", where=place)
    return tuple(values)


def _number(table: dict[str, Any], key: str, where: str) -> float:
    if key not in table:
        raise InvalidInputError(f"{key} is missing", where=f"{where}.{key}")
    value = table.pop(key)
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise InvalidInputError(f"{key} = {value!r} is not a finite number", where=f"{where}.{key}")
    return float(value)


def _refuse_others(table: dict[str, Any], where: str, fix: str) -> None:
    for key in table:
        place = f"{where}.{key}" if where else key
        raise InvalidInputError(f"unknown field {key!r}", where=place, fix=fix)
