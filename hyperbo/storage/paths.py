"""Paths as users give them: text or a path object."""

from __future__ import annotations

import os
from pathlib import Path

from hyperbo.errors import InvalidInputError

StrPath = str | os.PathLike[str]


def as_path(given: object, name: str) -> Path:
    """A path that a user gave, as a `Path`; `~` is the user's home, as in a shell.

    Args:
      given: text, or a path object.
      name: name of the argument, for the message.

    Raises:
      InvalidInputError: it is neither, or the text is empty.

    >>> as_path("data", "data_dir")
    PosixPath('data')
    >>> as_path(7, "data_dir")
    Traceback (most recent call last):
    hyperbo.errors.InvalidInputError: data_dir = 7 is no path; give text or a path, such as "data"
    """
    if not isinstance(given, str | os.PathLike) or not os.fspath(given):
        raise InvalidInputError(f"{name} = {given!r} is no path", fix='give text or a path, such as "data"')
    path = Path(given)
    return path.expanduser() if path.parts[:1] == ("~",) else path
