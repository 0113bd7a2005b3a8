"""The folder of one trial of a command: its output, its result, and a lock of the process that runs it."""

from __future__ import annotations

import fcntl
import json
import math
import os
import signal
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Literal

from hyperbo.errors import InvalidInputError
from hyperbo.storage.atomic import write_atomically
from hyperbo.storage.validation import validated

STDOUT, STDERR = "stdout.txt", "stderr.txt"
_CLAIM, _RESULT = "running", "outcome.json"
# Only the end of the output is read: a training may print gigabytes.
_TAIL_BYTES = 1 << 16
_LINES_SHOWN = 5


@dataclass(frozen=True)
class CommandResult:
    """The result of one run of the command.

    Attributes:
      status: `failed` where the command gave no number although it ended with 0.
      objective: of a trial that is done.
      reason: why a trial is not done.
      seconds: duration of the command.
      has_number: whether the command gave a number, finite or not: a sign that it works.
      metric: the name that the command gave with the number; empty where it gave none.
    """

    status: Literal["done", "infeasible", "failed"]
    objective: float | None
    reason: str
    seconds: float
    has_number: bool
    metric: str = ""


def result_of(
    folder: Path, code: int | None, seconds: float, timeout: float | None, objective_file: str | None
) -> CommandResult:
    """Read the result of a command that has ended.

    Args:
      folder: of the trial.
      code: exit code of the command; None: it was stopped after the time-out.
      seconds: duration of the command.
      timeout: in seconds.
      objective_file: file in the folder that holds the objective; None: the last line of output does.
    """

    def without(
        status: Literal["infeasible", "failed"], reason: str, has_number: bool = False
    ) -> CommandResult:
        return CommandResult(status, None, reason, seconds, has_number)

    if code is None:
        return without("infeasible", f"not done after {timeout:g} s")
    if code != 0:
        ending = f"exit code {code}" if code > 0 else f"ended by signal {-code} ({signal.strsignal(-code)})"
        return without("infeasible", ending)
    line, where = _last_line(folder / (objective_file or STDOUT)), f"last line of {folder / STDOUT}"
    if objective_file is not None:
        where = str(folder / objective_file)
        if line is None:
            return without("failed", f"the command ended with 0, but wrote no {where}")
    value = None if line is None else number_in(line)
    if value is None:
        return without("failed", f"the command ended with 0, but there is no number in the {where}: {line!r}")
    if not math.isfinite(value):
        return without("infeasible", f"objective {value}", has_number=True)
    return CommandResult(
        "done", value, "", seconds, True, name_in(line or "") or Path(objective_file or "").stem
    )


def number_in(line: str) -> float | None:
    """The number in a line that has the form of a number, `name=number` or `name: number`; else None.

    >>> number_in("0.25"), number_in("val_error: 1e-3"), number_in("loss=nan"), number_in("epoch 3: 0.25")
    (0.25, 0.001, nan, None)
    """
    name, _, rest = line.replace(":", "=", 1).partition("=")
    text = rest if rest and len(name.split()) == 1 else line
    try:
        return float(text)
    except ValueError:
        return None


def name_in(line: str) -> str:
    """The name in a line `name=number` or `name: number`; empty where the line has none.

    >>> name_in("0.25"), name_in("val_error: 1e-3")
    ('', 'val_error')
    """
    name, found, _ = line.replace(":", "=", 1).partition("=")
    return name.strip() if found else ""


def last_lines(folder: Path) -> str:
    """The end of a command's standard error, or else of its standard output, with the path of the file."""
    for name in (STDERR, STDOUT):
        lines = _tail(folder / name)
        if lines:
            shown = "".join(f"\n    {line}" for line in lines[-_LINES_SHOWN:])
            return f"the end of {folder / name}:{shown}"
    return f"there is no output ({folder / STDERR} is empty)"


class Claim:
    """A lock on a trial by the process that runs it. The system releases it when the process is gone."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    @classmethod
    def new(cls, folder: Path) -> Claim:
        """Make the folder of a new trial, and lock it.

        Raises:
          InvalidInputError: the folder exists already, or cannot be made.
        """
        try:
            folder.mkdir(parents=True)
            file = (folder / _CLAIM).open("x+")
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            raise InvalidInputError(
                f"cannot be made: {error.strerror}", where=str(folder), fix="choose another folder by --out"
            ) from error
        # Written under the lock: an empty file belongs to a process that is about to take the lock.
        file.write(socket.gethostname())
        file.flush()
        return cls(file)

    @classmethod
    def of_gone_process(cls, folder: Path) -> Claim | None:
        """Take over a trial of a process on this host that is gone; None where no such trial is there."""
        try:
            file = (folder / _CLAIM).open("r+")
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        if file.read() != socket.gethostname():
            file.close()
            return None
        return cls(file)

    def release(self, folder: Path) -> None:
        """Release the lock: the tuner knows the result."""
        (folder / _CLAIM).unlink(missing_ok=True)
        self._file.close()


def write_result(folder: Path, result: CommandResult, **facts: Any) -> None:
    """Write the result of a trial, before the tuner is told: a database may refuse it."""
    text = json.dumps({"outcome": asdict(result), **facts}, indent=2)
    write_atomically(folder / _RESULT, f"{text}\n".encode())


def read_result(folder: Path) -> CommandResult | None:
    """The result that was written; None where there is none.

    Raises:
      InvalidInputError: the file is damaged.
    """
    path = folder / _RESULT
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        return validated(CommandResult, json.loads(text)["outcome"], str(path), at=("outcome",))
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(f"is damaged: {error}", where=str(path), fix="remove it") from error


def _last_line(path: Path) -> str | None:
    """The last line that is not empty; None where there is no such file, "" where all lines are empty."""
    return ["", *_tail(path)][-1] if path.is_file() else None


def _tail(path: Path) -> list[str]:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        text = file.read().decode(errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]
