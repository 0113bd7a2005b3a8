"""Methods by name: those of the project, and methods of one's own by the path of an import."""

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
from hyperbo.storage.validation import suggestion


def method_class(name: str, folder: Path | None = None) -> type[Any]:
    """The class of a method's settings, by the name of the method.

    The module of a method of one's own may be a file in the working directory. To import it runs its code.

    Args:
      name: a name of `hyperbo.methods.METHODS`, or `<module>:<class>` for a method of one's own.
      folder: a further folder where the module may be, such as that of the file which names the method.

    Raises:
      InvalidInputError: the name is unknown, or the class is not a method.
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
            fix=f"{suggestion(name, METHODS)}, or <module>:<class> for a method of your own",
        )
    places = [str(place) for place in (folder and folder.absolute(), Path.cwd()) if place is not None]
    try:
        found = getattr(_imported(module_name, places), class_name)
    except (ImportError, AttributeError) as error:
        raise NotAvailableError(
            f"method {name!r} cannot be imported: {error}; write <module>:<class>, and install the module or "
            "put its file into the working directory or beside the experiment file"
        ) from error
    if not isinstance(found, type) or not is_dataclass(found) or not issubclass(found, Method):
        raise InvalidInputError(
            f"{name!r} is not a method",
            fix="write a frozen dataclass with fit and policy, hyperbo.methods.Method",
        )
    method_source(found)  # A file that is edited later is not what runs.
    return found


def _imported(module: str, places: list[str]) -> Any:
    """Import a module, which may be in folders of the user."""
    new = [place for place in places if place not in sys.path]
    sys.path[:0] = new
    try:
        return importlib.import_module(module)
    finally:
        # A file there may have the name of a module that others import later: theirs goes first.
        del sys.path[: len(new)]
        sys.path += new


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
    """What identifies a method, as plain values: its name and configuration.

    A method of your own is also identified by the files that define its class and its bases, as they were
    when they were imported.
    """
    name = method_name(method)
    identity: dict[str, Any] = {"method": name, "configuration": asdict(method)}  # type: ignore[call-overload]
    if name not in METHODS:
        # The version of the project's code does not change with this file.
        identity["source_sha256"] = _source_sha256(type(method))
    return identity


def method_summary(method: Method) -> str:
    """What a method of one's own is: the first line of its class's docstring; empty without one.

    It is empty for the methods of the project, which reports describe themselves.
    """
    of_class = type(method)
    if method_name(method) in METHODS:
        return ""
    written = inspect.cleandoc(of_class.__doc__ or "").partition("\n")[0]
    # A dataclass without a docstring has its signature as one.
    return "" if written.startswith(f"{of_class.__name__}(") else written


@cache
def method_source(of_class: type[Any]) -> bytes:
    """The files that define a method of one's own and its bases, one after another, as at the import."""
    theirs = {"hyperbo", *sys.stdlib_module_names}  # These are identified by versions.
    own = [each for each in of_class.__mro__ if each.__module__.partition(".")[0] not in theirs]
    files = sorted({inspect.getfile(each) for each in own})
    return b"".join(Path(file).read_bytes() for file in files)


def _source_sha256(of_class: type[Any]) -> str:
    return hashlib.sha256(method_source(of_class)).hexdigest()
