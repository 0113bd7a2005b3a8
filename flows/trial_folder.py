"""The folder of one trial of a command: what the command wrote, who runs it, and what came of it."""

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

from flows.fill import fill
from hyperbo.errors import InvalidInputError
from hyperbo.files import write_atomically

STDOUT, STDERR = "stdout.txt", "stderr.txt"
_CLAIM, _OUTCOME = "running", "outcome.json"
# A line that is longer holds no number, and a training may print gigabytes before it.
_TAIL_BYTES = 1 << 16
_LINES_SHOWN = 5


@dataclass(frozen=True)
class Outcome:
    """What came of a trial.

    Attributes:
      status: `failed` where the command did not keep to what was agreed.
      objective: of one that is done.
      reason: why another one is not.
      seconds: from the start of the command to its end.
      has_number: whether the command said a number, be it no finite one: a sign that it works.
    """

    status: Literal["done", "infeasible", "failed"]
    objective: float | None
    reason: str
    seconds: float
    has_number: bool


def outcome_of(
    folder: Path, code: int | None, seconds: float, timeout: float | None, objective_file: str | None
) -> Outcome:
    """Read what came of a command that has ended.

    Args:
      folder: of the trial.
      code: its exit code; None: it took longer than the time-out, and was ended.
      seconds: that it took.
      timeout: in seconds.
      objective_file: holds the objective, in the folder; None: its last line of output does.
    """

    def without(status: Literal["infeasible", "failed"], reason: str, has_number: bool = False) -> Outcome:
        return Outcome(status, None, reason, seconds, has_number)

    if code is None:
        return without("infeasible", f"not done after {timeout:g} s")
    if code != 0:
        return without("infeasible", _ending(code))
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
    return Outcome("done", value, "", seconds, True)


def number_in(line: str) -> float | None:
    """The number of a line that is one, or `name=number` or `name: number`.

    >>> number_in("0.25"), number_in("val_error: 1e-3"), number_in("loss=nan"), number_in("epoch 3: 0.25")
    (0.25, 0.001, nan, None)
    """
    name, _, rest = line.replace(":", "=", 1).partition("=")
    text = rest if rest and len(name.split()) == 1 else line
    try:
        return float(text)
    except ValueError:
        return None


def last_lines(folder: Path) -> str:
    """What a command said last, on standard error or else on standard output, and where all of it is."""
    for name in (STDERR, STDOUT):
        lines = _tail(folder / name)
        if lines:
            shown = "".join(f"\n    {line}" for line in lines[-_LINES_SHOWN:])
            return f"the end of {folder / name}:{shown}"
    return f"it said nothing ({folder / STDERR} is empty)"


class Claim:
    """The sign that this process runs a trial: a lock, that the system takes off when the process is gone."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    @classmethod
    def new(cls, folder: Path) -> Claim:
        """Make the folder of a trial that begins.

        Raises:
          InvalidInputError: it is there already, or cannot be made.
        """
        try:
            folder.mkdir(parents=True)
            file = (folder / _CLAIM).open("x+")
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            raise InvalidInputError(
                f"cannot be made: {error.strerror}", where=str(folder), fix="choose another folder by --out"
            ) from error
        # Written with the lock on: a claim that is empty is about to be locked.
        file.write(socket.gethostname())
        file.flush()
        return cls(file)

    @classmethod
    def of_gone_process(cls, folder: Path) -> Claim | None:
        """Take over a trial that a process of this host began and left; None where there is none to be."""
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
        """Take the sign off: the trial has been told."""
        (folder / _CLAIM).unlink(missing_ok=True)
        self._file.close()


def write_outcome(folder: Path, outcome: Outcome, **facts: Any) -> None:
    """Write down what came of a trial, before it is told: a database may refuse it."""
    text = json.dumps({"outcome": asdict(outcome), **facts}, indent=2)
    write_atomically(folder / _OUTCOME, f"{text}\n".encode())


def read_outcome(folder: Path) -> Outcome | None:
    """What was written down; None where nothing was.

    Raises:
      InvalidInputError: the file is damaged.
    """
    path = folder / _OUTCOME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        return fill(Outcome, json.loads(text)["outcome"], str(path))
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(f"is damaged: {error}", where=str(path), fix="remove it") from error


def _ending(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"ended by signal {-code} ({signal.strsignal(-code)})"


def _last_line(path: Path) -> str | None:
    """The last line that is not empty; None where there is no such file, "" where there is no such line."""
    return ["", *_tail(path)][-1] if path.is_file() else None


def _tail(path: Path) -> list[str]:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        text = file.read().decode(errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]
