"""The settings of a run that tunes a command of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hyperbo.errors import InvalidInputError
from hyperbo.tuning import BatchStrategy, require_strategy


@dataclass(frozen=True)
class CommandTuning:
    """One run.

    Attributes:
      command: with `{name}` for values; split into words as a shell does.
      prior: what `load_prior` takes.
      trials: in all, those counted that the run has already; failed ones are tried again and not counted.
      out: folder of the trials' folders, and of the database unless `storage` names another.
      space: TOML file with ranges.
      parameters: ranges as on the command line.
      jobs: commands that run at the same time.
      objective_file: holds the objective, in the trial's folder; None: the last line of output does.
      timeout: seconds after which a command is ended.
      storage: address of the database.
      name: of the run in the database.
      batch: as `Tuner` has it.
      seed: of all random numbers.
      environment: of the commands; None: this process's.

    Raises:
      InvalidInputError: a name or a file would lie outside of its folder, or there is no such strategy.
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
    environment: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        require_strategy(self.batch)
        if self.name in ("", ".", "..") or Path(self.name).name != self.name:
            raise InvalidInputError(f"{self.name!r} is no name of a folder", where="name")
        file = Path(self.objective_file or "objective")
        if file.is_absolute() or ".." in file.parts:
            raise InvalidInputError(
                f"{file} is not inside of the trial's folder",
                where="objective file",
                fix=f"give {file.name} alone, and let the command write {{trial_folder}}/{file.name}",
            )

    @property
    def folder(self) -> Path:
        """Of the trials' folders."""
        return self.out / self.name
