"""TrialsDescription: what the columns of anyone's trials mean, and what their owner says of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, StringConstraints

from hyperbo.data.choice import Choice
from hyperbo.data.search_space import SearchSpace
from hyperbo.data.trial import Status
from hyperbo.data.warping import Direction, output_warping
from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.columns import Kind

_NAMES_SHOWN = 10
# The characters of an address by RFC 3986, of which none ends a link of Markdown.
_ADDRESS = re.compile(r"https?://\w[\w.~:/?#\[\]@!$&'()*+,;=%-]*", re.ASCII)


def _visible(text: str) -> str:
    if text.isspace():
        raise InvalidInputError("the text is blank", fix="leave it out")
    # Blanks such as the ideographic one do not count as printable.
    for place, each in enumerate(text):
        if not (each.isprintable() or each in "\n\t" or unicodedata.category(each) == "Zs"):
            raise InvalidInputError(
                f"the text holds U+{ord(each):04X}, which cannot be seen",
                fix=f"remove it after {text[max(place - 20, 0) : place]!r}",
            )
    return text


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise InvalidInputError(
            f"{text!r} is not an address",
            fix="write one such as https://creativecommons.org/licenses/by/4.0/",
        )
    return text


def _bibtex(text: str) -> str:
    if not text.lstrip().startswith("@"):
        raise InvalidInputError(
            "the text is not BibTeX", fix="write an entry, such as @misc{name, title = {...}}"
        )
    return text


_Long = Annotated[str, StringConstraints(min_length=1, max_length=20_000), AfterValidator(_visible)]
_Short = Annotated[str, StringConstraints(min_length=1, max_length=1_000), AfterValidator(_visible)]


@dataclass(frozen=True)
class About:
    """What the owner of trials says of them; a text is empty where nothing is said.

    Attributes:
      description: what they are, as Markdown.
      licence: address of the licence.
      citation: how to cite them, as BibTeX.
    """

    description: _Long = ""
    licence: Annotated[_Short, AfterValidator(_address)] = ""
    citation: Annotated[_Long, AfterValidator(_bibtex)] = ""


_NOTHING_SAID = About()


@dataclass(frozen=True)
class NameSource:
    """Where the name of a trial's task comes from: exactly one of the three is given.

    Attributes:
      column: the column that holds it.
      name: the one name of all trials.
      file_name: true where it is the name of the trial's file, without its suffixes.

    Raises:
      InvalidInputError: none of the three is given, or several are.
    """

    column: str = ""
    name: str = ""
    file_name: bool = False

    def __post_init__(self) -> None:
        if [bool(self.column), bool(self.name), self.file_name].count(True) != 1:
            raise InvalidInputError(
                "give exactly one source of the name",
                fix='write { column = "..." }, { name = "..." } or { file_name = true }',
            )


@dataclass(frozen=True)
class StatusColumn:
    """The column that says how a trial ended.

    Attributes:
      column: its name.
      meanings: the status that each of its values stands for.
      skip: values of rows that are no trials, such as those of runs that have not ended.
    """

    column: str
    meanings: Mapping[str, Status]
    skip: tuple[str, ...] = ()

    def skips(self, row: Mapping[str, Any]) -> bool:
        """Whether a row is declared to be no trial."""
        return bool(self.skip) and str(row.get(self.column)) in self.skip


@dataclass(frozen=True)
class TrialsDescription:
    """What a space file says of trials.

    Attributes:
      space: the declared search space.
      parameter_columns: the column of each parameter, by the parameter's name.
      objective: the column that `y` is warped from.
      warping: name of the output warping; it says whether the objective is minimised or maximised.
      task: where the task's name comes from.
      task_dataset: where the task dataset's name comes from; None: it is the task's.
      trial_id: the column that names a trial within its task; empty: file and line do.
      phase: the column of the collection phase; empty: phase 0.
      status: how a trial ended; None: `done` where the objective is finite, else `diverged`.
      metrics: further columns of numbers that are kept.
      curves: columns of arrays that are kept.
      ignore: columns left in the raw files; a name that ends in `*` stands for all that begin so.
      about: what the owner says of the trials; it decides no record.

    Raises:
      InvalidInputError: a column is named twice; `where` is the second field.
    """

    space: SearchSpace
    parameter_columns: Mapping[str, str]
    objective: str
    warping: str
    task: NameSource = NameSource(column="task")
    task_dataset: NameSource | None = None
    trial_id: str = ""
    phase: str = ""
    status: StatusColumn | None = None
    metrics: tuple[str, ...] = ()
    curves: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    about: About = _NOTHING_SAID

    def __post_init__(self) -> None:
        seen: dict[str, str] = {}
        for field, column, _ in self._uses():
            other = seen.setdefault(column, field)
            if other != field or column in self.ignore:
                also = "ignore" if column in self.ignore else other
                raise InvalidInputError(
                    f"the column {column!r} is named twice",
                    where=field,
                    fix=f"it is under {also} too: keep one of the two",
                )

    def _uses(self) -> Iterator[tuple[str, str, Kind]]:
        """Every field that names a column, the column, and what it holds."""
        for each in self.space.parameters:
            # A choice among texts, or true and false: a number in a column of texts is one, too.
            kind: Kind = "text" if isinstance(each, Choice) and not each.is_number else "real"
            yield f"parameters.{each.name}", self.parameter_columns[each.name], kind
        yield "objective", self.objective, "real"
        optional: list[tuple[str, str, Kind]] = [
            ("task", self.task.column, "text"),
            ("task_dataset", self.task_dataset.column if self.task_dataset else "", "text"),
            ("trial_id", self.trial_id, "text"),
            ("phase", self.phase, "integer"),
            ("status", self.status.column if self.status else "", "text"),
        ]
        yield from (use for use in optional if use[1])
        for place, column in enumerate(self.metrics):
            yield f"metrics[{place}]", column, "real"
        for place, column in enumerate(self.curves):
            yield f"curves[{place}]", column, "reals"

    @property
    def columns(self) -> dict[str, Kind]:
        """The columns that are read, and what each holds."""
        return {column: kind for _, column, kind in self._uses()}

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of the metrics that every trial has: the objective first."""
        return (self.objective, *self.metrics)

    @property
    def direction(self) -> Direction:
        """Whether the objective is minimised or maximised."""
        return output_warping(self.warping).direction

    def check_columns(self, names: Collection[str], of_row: bool = False) -> None:
        """Check the columns of a table, or of a row that brings its own and may lack inactive parameters.

        Raises:
          InvalidInputError: columns named here are missing, or some are there that are not named.
        """
        read = self.columns
        known = {*read, *self.ignore}
        prefixes = tuple(name[:-1] for name in self.ignore if name.endswith("*"))
        unknown = [name for name in names if name not in known and not name.startswith(prefixes)]
        conditional = {each.name for each in self.space.parameters if each.condition}
        optional = {self.parameter_columns[name] for name in conditional} if of_row else set()
        missing = [name for name in read if name not in names and name not in optional]
        problems = []
        if missing:
            problems.append(f"missing columns: {_listed(missing)}")
        if unknown:
            problems.append(
                f"unknown columns: {_listed(unknown)} (name them under metrics, curves or ignore)"
            )
        if problems:
            raise InvalidInputError("; ".join(problems), fix="correct the space file, or the trials")

    def to_json(self) -> dict[str, Any]:
        """What decides the records as plain JSON values, with every default spelled out."""
        return {
            "objective": self.objective,
            "direction": self.direction,
            "warping": self.warping,
            "task": asdict(self.task),
            "task_dataset": asdict(self.task_dataset) if self.task_dataset else None,
            "trial_id": self.trial_id,
            "phase": self.phase,
            "status": {
                "column": self.status.column,
                "meanings": dict(self.status.meanings),
                "skip": list(self.status.skip),
            }
            if self.status
            else None,
            "metrics": list(self.metrics),
            "curves": list(self.curves),
            "ignore": list(self.ignore),
            "parameters": [
                fields | {"column": self.parameter_columns[fields["name"]]} for fields in self.space.to_json()
            ],
        }


def _listed(names: list[str]) -> str:
    listed = ", ".join(map(repr, names[:_NAMES_SHOWN]))
    return listed if len(names) <= _NAMES_SHOWN else f"{listed} and {len(names) - _NAMES_SHOWN} more"
