"""A user's command: the settings of its run, and the template `python train.py --lr {learning_rate}`."""

from __future__ import annotations

import shlex
import shutil
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.methods.universal.roles import meant_by
from hyperbo.tuning.batches import BatchStrategy, require_strategy

TRIAL_FOLDER = "trial_folder"


@dataclass(frozen=True)
class CommandTuning:
    """The settings of a run that tunes a user's command.

    Attributes:
      command: the command line, with `{name}` in place of a value; split into words like in a shell.
      prior: what `load_prior` takes, or `universal`.
      trials: number of trials, earlier ones included. Failed trials are tried again and do not count.
      out: folder of the trials' folders, and of the database unless `storage` names another.
      space: TOML file with ranges.
      parameters: ranges as on the command line.
      jobs: number of commands that run at the same time.
      objective_file: file in the trial's folder that holds the objective; None: the last line of output does.
      timeout: seconds after which a command is stopped.
      storage: address of the database.
      name: of the run in the database.
      batch: as in `Tuner`.
      seed: of all random numbers.
      direction: of the objective; None: that of the prior. The universal prior needs one.
      environment: of the commands; None: that of this process.

    Raises:
      InvalidInputError: the name or the objective file would lie outside of its folder, or there is no such
        batch strategy.
    """

    command: str
    prior: str
    trials: int
    out: Path
    space: Path | None = None
    parameters: tuple[str, ...] = ()
    jobs: int = 1
    objective_file: str | None = None
    timeout: float | None = None
    storage: str | None = None
    name: str = "tuning"
    batch: BatchStrategy = "kriging_believer"
    seed: int = 0
    direction: str | None = None
    environment: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        require_strategy(self.batch)
        if self.name in ("", ".", "..") or Path(self.name).name != self.name:
            raise InvalidInputError(f"{self.name!r} cannot name a folder", where="name")
        file = Path(self.objective_file or "objective")
        if file.is_absolute() or ".." in file.parts:
            raise InvalidInputError(
                f"{file} is outside of the trial's folder",
                where="objective file",
                fix=f"give {file.name} alone, and let the command write {{trial_folder}}/{file.name}",
            )

    @property
    def folder(self) -> Path:
        """The folder that holds the trials' folders."""
        return self.out / self.name


@dataclass(frozen=True)
class CommandTemplate:
    """A command line, split into words like in a shell; it runs without a shell.

    Attributes:
      words: each with `{name}` in place of a value; `{{` and `}}` stand for braces.
      names: of the hyperparameters in it.
    """

    words: tuple[str, ...]
    names: frozenset[str]

    @classmethod
    def of(cls, text: str, parameters: Sequence[str], held: Sequence[str]) -> CommandTemplate:
        """Read a command.

        Args:
          text: the command line.
          parameters: names of the parameters whose values it may use.
          held: names of those that are held fixed; it need not use them.

        Raises:
          InvalidInputError: the command is malformed, uses an unknown name, or leaves a parameter out.
          NotAvailableError: there is no such program.
        """
        if TRIAL_FOLDER in parameters:
            raise InvalidInputError(
                f"{{{TRIAL_FOLDER}}} stands for the folder of a trial; no parameter can have that name"
            )
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise InvalidInputError(f"{text}: {error}", where="command", fix="close the quotation") from error
        if not words:
            raise InvalidInputError("the command is empty", where="command")
        used = {name for word in words for name in _names(word)}
        known = [*parameters, TRIAL_FOLDER]
        for name in sorted(used - set(known)):
            near = meant_by(name, known)
            meant = f"did you mean {{{near}}}? " if near else ""
            listed = ", ".join(f"{{{each}}}" for each in known)
            raise InvalidInputError(
                f"{{{name}}} is no parameter",
                where="command",
                fix=f"{meant}the names are {listed}; {{{{ stands for a brace",
            )
        unused = [name for name in parameters if name not in used and name not in held]
        if unused:
            shown = ", ".join(f"{{{name}}}" for name in unused)
            raise InvalidInputError(
                f"the command does not use {shown}",
                where="command",
                fix=f"pass every value to the command, or hold it fixed: --parameter {unused[0]}=VALUE",
            )
        if not _names(words[0]) and shutil.which(_filled(words[0], {})) is None:
            raise NotAvailableError(f"command: there is no program {_filled(words[0], {})!r}")
        return cls(words, frozenset(used - {TRIAL_FOLDER}))

    def arguments(self, hyperparameters: Mapping[str, Any], folder: Path) -> list[str]:
        """The words with the values of a trial; numbers as Python writes them, without rounding.

        A word whose parameters are all inactive in the trial is left out, and with it the option before it: a
        word that begins with a dash.

        >>> template = CommandTemplate.of("echo --lr={rate} '{{x}}'", ["rate"], [])
        >>> template.arguments({"rate": 1e-05}, Path())
        ['echo', '--lr=1e-05', '{x}']
        """
        values = {name: hyperparameters.get(name, "") for name in self.names}
        texts = {name: each if isinstance(each, str) else repr(each) for name, each in values.items()}
        words: list[str] = []
        for place, word in enumerate(self.words):
            names = _names(word)
            if names and not any(name in hyperparameters or name == TRIAL_FOLDER for name in names):
                # The word before is the option of this value, if it is still there as it was written.
                is_value = names == [word[1:-1]]
                if is_value and words and words[-1] == self.words[place - 1] and words[-1].startswith("-"):
                    words.pop()
            else:
                words.append(_filled(word, {**texts, TRIAL_FOLDER: str(folder)}))
        return words


def _names(word: str) -> list[str]:
    """The names in a word, each from `{name}`."""
    try:
        pieces = list(string.Formatter().parse(word))
    except ValueError as error:
        raise InvalidInputError(
            f"{word!r}: {error}", where="command", fix="write {{ and }} for braces that belong to the command"
        ) from error
    for _, name, form, conversion in pieces:
        if name is not None and (form or conversion):
            raise InvalidInputError(
                f"{word!r} has a format",
                where="command",
                fix=f"write {{{name}}}: values are passed without rounding",
            )
    return [name for _, name, _, _ in pieces if name is not None]


def _filled(word: str, values: Mapping[str, str]) -> str:
    pieces = string.Formatter().parse(word)
    return "".join(text + ("" if name is None else values[name]) for text, name, _, _ in pieces)
