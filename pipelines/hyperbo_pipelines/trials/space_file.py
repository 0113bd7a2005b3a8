"""Reading a space file: TOML that declares a search space and says what the columns of trials mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Parameter, Scaling
from hyperbo.data.parameter_json import parameter_of
from hyperbo.data.search_space import SearchSpace
from hyperbo.data.trial import STATUSES, Status
from hyperbo.data.warping import Direction, output_warping
from hyperbo.errors import InvalidInputError
from hyperbo.storage.validation import distinct, read_toml
from hyperbo_pipelines.trials.description import About, NameSource, StatusColumn, TrialsDescription

_DEFAULT_WARPINGS = {"minimize": "negative", "maximize": "identity"}

_Text = Annotated[str, StringConstraints(min_length=1)]
_Value = bool | int | float | str
# Of a list of levels in a file; fewer are of use.
_MOST_VALUES = 10_000
_Texts = Annotated[tuple[_Text, ...], AfterValidator(distinct)]


@dataclass(frozen=True)
class _Column:
    column: _Text


@dataclass(frozen=True)
class _Status:
    """A column, and the values of it that stand for each status."""

    column: _Text
    done: _Texts = ("done",)
    diverged: _Texts = ("diverged",)
    infeasible: _Texts = ("infeasible",)
    skip: _Texts = ()

    def column_of_status(self) -> StatusColumn:
        meanings: dict[str, Status] = {}
        for status in STATUSES:
            for value in getattr(self, status):
                if value in meanings or value in self.skip:
                    raise InvalidInputError(
                        f"{value!r} is listed twice",
                        where=f"status.{status}",
                        fix="give each value of the column one meaning; a list left out holds its own name",
                    )
                meanings[value] = status
        return StatusColumn(self.column, meanings, self.skip)


@dataclass(frozen=True)
class _Condition:
    """When a hyperparameter is active."""

    parameter: _Text
    values: Annotated[tuple[_Value, ...], Field(max_length=_MOST_VALUES)] = ()
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True)
class _Parameter:
    """A hyperparameter and its column; without one, the column has the hyperparameter's name."""

    name: _Text
    type: str = "real"
    column: _Text | None = None
    lower: float | None = None
    upper: float | None = None
    scaling: Scaling | None = None
    levels: Annotated[tuple[_Value, ...], Field(max_length=_MOST_VALUES)] | None = None
    value: _Value | None = None
    condition: _Condition | None = None
    role: str = ""

    def parameter(self) -> Parameter | Choice:
        given = ("lower", "upper", "scaling", "levels", "value")
        fields = {name: getattr(self, name) for name in given if getattr(self, name) is not None}
        condition = asdict(self.condition) if self.condition else None
        return parameter_of(self.name, self.type, condition=condition, role=self.role, **fields)


@dataclass(frozen=True)
class _SpaceFile:
    """The fields of the file, by the names that the file uses."""

    objective: _Text
    direction: Direction
    parameters: Annotated[tuple[_Parameter, ...], Field(min_length=1)]
    warping: _Text | None = None
    task: NameSource = field(default_factory=lambda: NameSource(column="task"))
    task_dataset: NameSource | None = None
    trial_id: _Column | None = None
    phase: _Column | None = None
    status: _Status | None = None
    metrics: _Texts = ()
    curves: _Texts = ()
    ignore: Annotated[tuple[str, ...], AfterValidator(distinct)] = ()
    about: About = field(default_factory=About)

    def description(self) -> TrialsDescription:
        """What the file says, with every default filled in.

        Raises:
          InvalidInputError: fields contradict each other; `where` is one of them.
        """
        return TrialsDescription(
            space=SearchSpace(tuple(self._parameters())),
            parameter_columns={p.name: p.column or p.name for p in self.parameters},
            objective=self.objective,
            warping=self._output_warping(),
            task=self.task,
            task_dataset=self.task_dataset,
            trial_id=self.trial_id.column if self.trial_id else "",
            phase=self.phase.column if self.phase else "",
            status=self.status.column_of_status() if self.status else None,
            metrics=self.metrics,
            curves=self.curves,
            ignore=self.ignore,
            about=self.about,
        )

    def _parameters(self) -> Iterator[Parameter | Choice]:
        for place, each in enumerate(self.parameters):
            try:
                yield each.parameter()
            except InvalidInputError as error:
                where = f"parameters[{place}]: {error.where}"
                raise InvalidInputError(error.what, where=where, fix=error.fix) from error

    def _output_warping(self) -> str:
        name = self.warping or _DEFAULT_WARPINGS[self.direction]
        try:
            warped_direction = output_warping(name).direction
        except InvalidInputError as error:
            raise InvalidInputError(error.what, where="warping", fix=error.fix) from error
        if warped_direction != self.direction:
            raise InvalidInputError(
                f"the warping {name!r} is for objectives to {warped_direction}, "
                f"but direction is {self.direction!r}",
                where="warping",
                fix="change one of the two, or leave warping out",
            )
        return name


def read_space_file(path: Path) -> TrialsDescription:
    """Read a space file; its reference is the card of the builder `trials`.

    Args:
      path: a TOML file.

    Returns:
      What it says, with every default filled in.

    Raises:
      InvalidInputError: the file cannot be read, or a field is missing, unknown or wrong; the message names
        the file and the field.
    """
    content = read_toml(_SpaceFile, path)
    try:
        return content.description()
    except InvalidInputError as error:
        where = f"{path}: {error.where}" if error.where else str(path)
        raise InvalidInputError(error.what, where=where, fix=error.fix) from error
