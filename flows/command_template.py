"""A command of a user with the names of hyperparameters in it, `python train.py --lr {learning_rate}`."""

from __future__ import annotations

import difflib
import shlex
import shutil
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError, NotAvailableError

TRIAL_FOLDER = "trial_folder"


@dataclass(frozen=True)
class CommandTemplate:
    """A command: split into words as a shell does, run without one.

    Attributes:
      words: each with `{name}` where a value comes; `{{` and `}}` stand for braces.
      names: that are used, the folder of the trial left out.
    """

    words: tuple[str, ...]
    names: frozenset[str]

    @classmethod
    def of(cls, text: str, parameters: Sequence[str], held: Sequence[str]) -> CommandTemplate:
        """Read a command.

        Args:
          text: as it would be typed.
          parameters: whose values it may use.
          held: those that it need not use.

        Raises:
          InvalidInputError: it is malformed, names what is no parameter, or leaves a parameter out.
          NotAvailableError: there is no such program.
        """
        if TRIAL_FOLDER in parameters:
            raise InvalidInputError(
                f"{{{TRIAL_FOLDER}}} is the folder of a trial, so no parameter can have that name"
            )
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise InvalidInputError(f"{text}: {error}", where="command", fix="close it") from error
        if not words:
            raise InvalidInputError("it is empty", where="command")
        used = {name for word in words for name in _names(word)}
        for name in sorted(used - set(parameters) - {TRIAL_FOLDER}):
            raise _unknown(name, [*parameters, TRIAL_FOLDER])
        unused = [name for name in parameters if name not in used and name not in held]
        if unused:
            shown = ", ".join(f"{{{name}}}" for name in unused)
            raise InvalidInputError(
                f"it does not use {shown}",
                where="command",
                fix=f"pass every value on, or hold it: --parameter {unused[0]}=VALUE",
            )
        if not _names(words[0]) and shutil.which(_filled(words[0], {})) is None:
            raise NotAvailableError(f"command: there is no program {_filled(words[0], {})!r} that can be run")
        return cls(words, frozenset(used - {TRIAL_FOLDER}))

    def arguments(self, hyperparameters: Mapping[str, Any], folder: Path) -> list[str]:
        """The words with the values of a trial; numbers as Python writes them, nothing rounded.

        >>> template = CommandTemplate.of("echo --lr={rate} '{{x}}'", ["rate"], [])
        >>> template.arguments({"rate": 1e-05}, Path())
        ['echo', '--lr=1e-05', '{x}']
        """
        values = {name: hyperparameters[name] for name in self.names}
        texts = {name: each if isinstance(each, str) else repr(each) for name, each in values.items()}
        return [_filled(word, {**texts, TRIAL_FOLDER: str(folder)}) for word in self.words]


def _names(word: str) -> list[str]:
    """The names in a word."""
    try:
        pieces = list(string.Formatter().parse(word))
    except ValueError as error:
        raise InvalidInputError(
            f"{word!r}: {error}", where="command", fix="write {{ and }} for braces that are meant as such"
        ) from error
    for _, name, form, conversion in pieces:
        if name is not None and (form or conversion):
            raise InvalidInputError(
                f"{word!r} asks for a format",
                where="command",
                fix=f"write {{{name}}}: values are passed on whole",
            )
    return [name for _, name, _, _ in pieces if name is not None]


def _filled(word: str, values: Mapping[str, str]) -> str:
    pieces = string.Formatter().parse(word)
    return "".join(text + ("" if name is None else values[name]) for text, name, _, _ in pieces)


def _unknown(name: str, known: Sequence[str]) -> InvalidInputError:
    near = difflib.get_close_matches(name, known, n=1)
    meant = f"write {{{near[0]}}}, if that is meant; " if near else ""
    listed = ", ".join(f"{{{each}}}" for each in known)
    return InvalidInputError(
        f"{{{name}}} is no parameter",
        where="command",
        fix=f"{meant}there are {listed}; {{{{ stands for a brace",
    )
