"""Values that were read from files, checked by pydantic against the annotations of dataclasses.

Types are strict: no "5" for 5, no true for 1; a whole number is taken where a number is asked for. A key that
is not known is refused.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time
from difflib import get_close_matches
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from typing_extensions import is_typeddict

from hyperbo.errors import InvalidInputError, VersionConflictError
from hyperbo.storage.printable import printable

T = TypeVar("T")

_CONFIG = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
_UNKNOWN_KEY = ("unexpected_keyword_argument", "extra_forbidden")
_KINDS = {
    "bool_type": "true or false",
    "dataclass_type": "a table of fields",
    "dict_type": "a table of fields",
    "finite_number": "a finite number",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list",
    "mapping_type": "a table of fields",
    "string_type": "text",
    "tuple_type": "a list",
}
_LONGEST_VALUE = 100
# Names that are listed although one of them is near.
_FEW = 8
_ANNOTATIONS = "annotate them with types of plain values that its module imports"


def read_toml(kind: type[T], file: Path | Traversable) -> T:
    """Read a TOML file as a dataclass with its tables and fields.

    Raises:
      InvalidInputError: the file cannot be read, is not TOML, or has a key or a value that `kind` does not
        allow; the message names the file and the field.
    """
    where = str(file)
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InvalidInputError("there is no such file", where=where) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"the file cannot be read: {error}", where=where) from error
    except (ValueError, RecursionError) as error:  # A number of thousands of digits is no TOMLDecodeError.
        raise InvalidInputError(f"the file is not TOML: {error}", where=where) from error
    return validated(kind, values, where)


def validated(
    kind: type[T], values: Any, where: str, *, at: tuple[str | int, ...] = (), default: T | None = None
) -> T:
    """Check plain values, as TOML and JSON files hold them, and make a dataclass or a typed dict of them.

    Args:
      kind: the dataclass or typed dict; its fields may be dataclasses or typed dicts, too.
      values: its fields by name.
      where: the file, for messages; if empty, messages begin with the field.
      at: the values' place in the file: names of tables and indices of lists.
      default: gives the fields that are missing, also those of nested tables; None: those of `kind`.

    Raises:
      InvalidInputError: a key is unknown or missing, a value has another type, or an annotation or the
        dataclass itself refuses it; the message names the file, the field and what is expected.

    >>> from hyperbo.methods import AcquisitionDecision
    >>> validated(AcquisitionDecision, {"coefficient": 2}, "arms.toml").coefficient
    2.0
    >>> validated(AcquisitionDecision, {"coefficient": "2"}, "arms.toml", at=("arms", "UCB"))
    Traceback (most recent call last):
    hyperbo.errors.InvalidInputError: arms.toml: arms.UCB.coefficient: '2' is not a number
    """
    given = _over(default, values)
    try:
        # In JSON a table may become a dataclass, and a list a tuple, with strict types all the same.
        return _adapter(kind).validate_json(json.dumps([given], default=_plain))[0]
    except ValidationError as error:
        raise _explained(error, kind, given, where, at) from error
    except PydanticUserError as error:
        raise InvalidInputError(
            f"the fields of {kind.__name__} cannot be set from a file", where=where, fix=_ANNOTATIONS
        ) from error
    except (TypeError, ValueError, RecursionError) as error:
        place = ": ".join(filter(None, (where, field_path(*at))))
        raise InvalidInputError(f"a value is not plain JSON: {error}", where=place) from error


def without_format(fields: Any, known: int, where: str) -> dict[str, Any]:
    """The fields of a JSON file that says which format it has, all but `format`.

    Raises:
      InvalidInputError: the file does not say its format.
      VersionConflictError: its format is not the known one.
    """
    if not isinstance(fields, dict) or "format" not in fields:
        raise InvalidInputError("the field is missing", where="format")
    if fields["format"] != known:
        found = printable(repr(fields["format"]), _LONGEST_VALUE)
        raise VersionConflictError(
            f"{where}: format {found} is not {known}, which this version reads; use the hyperbo that wrote it"
        )
    return {name: value for name, value in fields.items() if name != "format"}


def field_path(*steps: str | int) -> str:
    """The place of a value in a file, as TOML writes it.

    >>> field_path("arms", "H-NLL of few", "architecture", "hidden", 0)
    'arms."H-NLL of few".architecture.hidden[0]'
    """
    path = ""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            is_bare = step.replace("-", "").isidentifier()
            path += ("." if path else "") + (step if is_bare else f'"{printable(step, _LONGEST_VALUE)}"')
    return path


def one_of(names: Iterable[str]) -> AfterValidator:
    """A constraint for annotations: the text is one of these names."""
    known = tuple(names)

    def check(name: str) -> str:
        if name not in known:
            raise InvalidInputError(f"unknown name {name!r}", fix=suggestion(name, known))
        return name

    return AfterValidator(check)


def suggestion(name: str, known: Iterable[str]) -> str:
    """What to write in place of a name that is not known: the nearest one, and all where they are few.

    >>> suggestion("observd", ("observed", "paper"))
    "did you mean 'observed'? use observed, paper"
    """
    known = tuple(known)
    if not known:
        return "leave it out: there is nothing to set here"
    near = get_close_matches(name[:_LONGEST_VALUE], known, n=1)
    if near and len(known) > _FEW:
        return f"did you mean {near[0]!r}? use {near[0]}"
    return (f"did you mean {near[0]!r}? " if near else "") + f"use {', '.join(known)}"


def distinct(values: Any) -> Any:
    """A check for annotations: no value of the list is there twice, else it raises a ValueError."""
    if len(set(values)) != len(values):
        raise ValueError(f"{max(values, key=values.count)!r} is there twice")
    return values


@cache
def _adapter(kind: Any) -> Any:
    # A dataclass alone would ignore these settings, inside of a tuple it takes them over.
    return TypeAdapter(tuple[kind], config=_CONFIG)  # pyright: ignore[reportInvalidTypeForm]


def _over(default: Any, values: Any) -> Any:
    """The fields of a default, and those of its nested dataclasses, replaced where values are given."""
    if not (is_dataclass(default) and isinstance(values, Mapping)):
        return values
    before = _plain(default)
    return before | {name: _over(before.get(name), value) for name, value in values.items()}


def _plain(value: Any) -> dict[str, Any]:
    if isinstance(value, date | time):
        return {"date": str(value)}  # No field takes a date: as a table it is refused at its place.
    if not is_dataclass(value):
        raise TypeError(f"{value!r} cannot be written as JSON")
    return {each.name: getattr(value, each.name) for each in fields(value) if each.init}


def _explained(
    error: ValidationError, kind: Any, values: Any, where: str, at: tuple[str | int, ...]
) -> InvalidInputError:
    # A misspelt key says more than the field that is missing because of it, and the member of a union that
    # accepts more of the value says more than the others.
    found = min(error.errors(), key=lambda each: (each["type"] not in _UNKNOWN_KEY, -len(each["loc"])))
    steps, value = _located(found["loc"][1:], values, found["type"])
    place = field_path(*at, *steps)
    shown, what, fix, inner = printable(repr(value), _LONGEST_VALUE), "", "", ""
    if found["type"] in _UNKNOWN_KEY:
        place, key = field_path(*at, *steps[:-1]), str(steps[-1])
        what = f"unknown key {printable(repr(key), _LONGEST_VALUE)}{_line_of(key, where)}"
        fix = suggestion(key, _keys(kind, steps[:-1]))
        if len(steps) > 1 and not at and where.endswith(".toml") and key in _members(kind):
            fix = "write it before the first table: it is a field of the file as a whole"
    elif found["type"] == "missing":
        what = "the field is missing"
    elif found["type"] == "value_error":
        reason = found.get("ctx", {})["error"]
        what = str(reason)
        if isinstance(reason, InvalidInputError):
            what, fix = reason.what, reason.fix
            inner = "" if place.lower().endswith(reason.where.lower()) else reason.where
    elif found["type"] in _KINDS:
        what = f"{shown} is not {_KINDS[found['type']]}"
        if _KINDS[found["type"]] == "a list" and isinstance(value, Mapping) and where.endswith(".toml"):
            fix = f"write [[{place}]] for each table"
    else:
        expected = found["msg"].replace(" after validation", "")
        what = f"{shown} is refused: {expected[0].lower()}{expected[1:]}"
    return InvalidInputError(what, where=": ".join(filter(None, (where, place, inner))), fix=fix)


def _line_of(key: str, where: str) -> str:
    """In which line of a TOML file a key is written, in words; empty where that is not certain."""
    if not where.endswith(".toml") or not Path(where).is_file():
        return ""
    name = re.escape(key)
    written = re.compile(rf"""\s*(\[+[^\]]*?)?["']?{name}["']?\s*[\]=]""")
    lines = Path(where).read_text(encoding="utf-8", errors="replace").splitlines()
    found = [number for number, line in enumerate(lines, 1) if written.match(line)]
    return f" in line {found[0]}" if len(found) == 1 else ""


def _located(loc: tuple[str | int, ...], values: Any, error_type: str) -> tuple[list[str | int], Any]:
    """The steps of pydantic's location that are in the values, and the value there.

    Other steps name the member of a union that refused the value.
    """
    steps: list[str | int] = []
    for step in loc:
        try:
            values = values[step]
        except (KeyError, IndexError, TypeError):
            if error_type != "missing":
                continue
        steps.append(step)
    return steps, values


def _keys(kind: Any, steps: Iterable[str | int]) -> tuple[str, ...]:
    """The keys that are known at a place of a dataclass or typed dict."""
    for step in steps:
        members = _members(kind)
        kind = members[step] if step in members else get_args(_bare(kind))[-1 if isinstance(step, str) else 0]
    return tuple(_members(kind))


def _members(kind: Any) -> dict[Any, Any]:
    """The annotations of the fields that a file may name, by the name that the file uses."""
    kind = _bare(kind)
    if not (is_dataclass(kind) or is_typeddict(kind) or hasattr(kind, "_fields")):
        return {}
    unset = {each.name for each in fields(kind) if not each.init} if is_dataclass(kind) else set()
    found = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        aliases = [each.alias for each in getattr(hint, "__metadata__", ()) if getattr(each, "alias", None)]
        if name not in unset:
            found[aliases[0] if aliases else name] = hint
    return found


def _bare(kind: Any) -> Any:
    """A type without annotations, and without the alternative None."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    members = [each for each in get_args(kind) if each is not type(None)]
    return _bare(members[0]) if type(None) in get_args(kind) else kind
