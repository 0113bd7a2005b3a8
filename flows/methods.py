"""Methods by name: those of the project, and one's own by the path of an import."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from dataclasses import asdict, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.methods import METHODS, Method


def method_class(name: str, folder: Path | None = None) -> type[Any]:
    """The settings of a method: a name of `hyperbo.methods.METHODS`, or `<module>:<class>` for one's own.

    The module of a method of one's own may be a file of the working directory. Importing it runs its code.

    Args:
      name: name of the method.
      folder: where else a module may be: that of the file which names it.

    Raises:
      InvalidInputError: the name is unknown, or the class is no method.
      NotAvailableError: the module cannot be imported, or has no such class.

    >>> method_class("H-NLL").__name__
    'HNLL'
    """
    if name in METHODS:
        return METHODS[name]
    module_name, colon, class_name = name.partition(":")
    if not colon:
        raise InvalidInputError(
            f"unknown method {name!r}",
            fix=f"use {', '.join(METHODS)}, or <module>:<class> for a method of your own",
        )
    for place in (Path.cwd(), *([folder.absolute()] if folder is not None else [])):
        if str(place) not in sys.path:
            sys.path.insert(0, str(place))
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise NotAvailableError(
            f"method {name!r} cannot be imported: {error}; write <module>:<class>, the module installed or a "
            "file of the working directory, or beside the experiment file"
        ) from error
    if not isinstance(found, type) or not is_dataclass(found) or not issubclass(found, Method):
        raise InvalidInputError(
            f"{name!r} is no method",
            fix="write a frozen dataclass with fit and policy, hyperbo.methods.Method",
        )
    _source_sha256(found)
    return found


def method_name(method: Method) -> str:
    """The name of a configured method: the inverse of `method_class`.

    >>> from hyperbo.methods import STBO
    >>> method_name(STBO())
    'STBO'
    """
    for name, known in METHODS.items():
        if type(method) is known:
            return name
    return f"{type(method).__module__}:{type(method).__qualname__}"


def method_identity(method: Method) -> dict[str, Any]:
    """What a method is, as plain values: name and configuration; of one's own method also its source.

    The source is the one that was imported: a file edited later is not what is running.
    """
    name = method_name(method)
    identity: dict[str, Any] = {"method": name, "configuration": asdict(method)}  # type: ignore[call-overload]
    if name not in METHODS:
        # The version of our code says nothing of theirs.
        identity["source_sha256"] = _source_sha256(type(method))
    return identity


@cache
def _source_sha256(of_class: type[Any]) -> str:
    """Hash of the file that defines a class, read once: `method_class` asks for it on import."""
    return hashlib.sha256(Path(inspect.getfile(of_class)).read_bytes()).hexdigest()
