"""SpaceDraft: a space file that is being written; its guesses carry comments."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hyperbo.data.parameter import Scaling
from hyperbo.data.parameter_json import parameter_of
from hyperbo.data.warping import Direction
from hyperbo.errors import InvalidInputError

Kind = Literal["real", "integer", "choice", "ordinal", "boolean", "constant"]
_WIDTH = 110


@dataclass(frozen=True)
class ConditionDraft:
    """Where a hyperparameter is active: its parent has one of the values, or lies in the range."""

    parameter: str
    values: tuple[Any, ...] = ()
    lower: float | None = None
    upper: float | None = None

    def holds(self, value: Any) -> bool:
        """Whether a parent's value makes the hyperparameter active; None is the value of an inactive parent.

        >>> ConditionDraft("optimizer", ("sgd",)).holds("sgd"), ConditionDraft("layers", lower=2).holds(1)
        (True, False)
        """
        if value is None:
            return False
        if self.values:
            return any(type(each) is type(value) and each == value for each in self.values)
        return (self.lower is None or value >= self.lower) and (self.upper is None or value <= self.upper)


@dataclass(frozen=True)
class ParameterDraft:
    """A hyperparameter as a tool declares it, or as it is guessed from values.

    Attributes:
      name: its name.
      kind: its `type` in a space file.
      lower: the lower bound of a number.
      upper: the upper bound of a number.
      scaling: the scaling of a number.
      levels: the levels of a choice, or the one value of a constant.
      condition: where it is active; None: everywhere.
      role: what it does, such as `learning_rate`; empty: not known.
      notes: comments for the reader of the draft.
      column: the column of rows that holds it; empty: its name.
      step: the distance between the numbers that were searched, from `lower` on; 0: any number.
    """

    name: str
    kind: Kind
    lower: float = math.nan
    upper: float = math.nan
    scaling: Scaling = "linear"
    levels: tuple[Any, ...] = ()
    condition: ConditionDraft | None = None
    role: str = ""
    notes: tuple[str, ...] = ()
    column: str = ""
    step: float = 0.0

    @property
    def fields(self) -> dict[str, Any]:
        """What a space file says of its values, by the names of the fields."""
        if self.kind in ("real", "integer"):
            bounds = {"lower": self.lower, "upper": self.upper}
            fields: dict[str, Any] = {
                name: int(bound) if self.kind == "integer" else bound for name, bound in bounds.items()
            }
            return fields if self.scaling == "linear" else fields | {"scaling": self.scaling}
        if self.kind == "constant":
            return {"value": self.levels[0]}
        return {} if self.kind == "boolean" else {"levels": self.levels}

    def obstacle(self) -> str:
        """Why no space file can declare it; empty if one can.

        >>> ParameterDraft("seed", "integer", 0, 2**60).obstacle()
        'range [0, 1152921504606846976] of an integer; give whole numbers of at most 2^53'
        """
        try:
            parameter_of(self.name, self.kind, role=self.role, **self.fields)
        except InvalidInputError as error:
            return f"{error.what}; {error.fix}" if error.fix else error.what
        except (ValueError, OverflowError):
            return f"its range is {self.lower} to {self.upper}"
        return ""


@dataclass(frozen=True)
class SpaceDraft:
    """What a space file will say; `notes` are comments by the field that they stand above.

    Attributes:
      objective: the column that is tuned.
      direction: whether it is minimised or maximised.
      parameters: the hyperparameters.
      task: where the task's name comes from, as a space file says it.
      task_dataset: where the task dataset's name comes from; None: not said.
      trial_id: the column of the trial's id; empty: none.
      status: the table `status`; None: none.
      metrics: columns of numbers that are kept.
      curves: columns of lists.
      ignore: columns that are left out.
      about: what is said of the trials; empty: nothing.
      notes: comments, by the name of the field; those of the empty name stand at the head.
    """

    objective: str
    direction: Direction
    parameters: tuple[ParameterDraft, ...]
    task: Mapping[str, Any]
    task_dataset: Mapping[str, Any] | None = None
    trial_id: str = ""
    status: Mapping[str, Any] | None = None
    metrics: tuple[str, ...] = ()
    curves: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    about: str = ""
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_toml(self) -> str:
        """The space file as text."""
        fields: list[tuple[str, Any]] = [
            ("objective", self.objective),
            ("direction", self.direction),
            ("task", self.task),
            ("task_dataset", self.task_dataset),
            ("trial_id", {"column": self.trial_id} if self.trial_id else None),
            ("status", self.status),
            ("metrics", self.metrics),
            ("curves", self.curves),
            ("ignore", self.ignore),
        ]
        lines = [*_comments(self.notes.get("", ())), ""]
        for name, value in fields:
            lines += _comments(self.notes.get(name, ()))
            if value is not None and value != ():
                lines += [f"{name} = {_value(value)}"]
        if self.about:
            lines += ["", "[about]", f"description = {_value(self.about)}"]
        for parameter in self.parameters:
            lines += ["", "[[parameters]]", *_parameter_lines(parameter)]
        return "\n".join(lines) + "\n"


def _parameter_lines(parameter: ParameterDraft) -> list[str]:
    fields: dict[str, Any] = {"name": parameter.name}
    if parameter.column and parameter.column != parameter.name:
        fields["column"] = parameter.column
    if parameter.kind != "real":
        fields["type"] = parameter.kind
    fields |= parameter.fields
    if parameter.condition:
        given = parameter.condition
        fields["condition"] = {"parameter": given.parameter}
        for name in ("values", "lower", "upper"):
            if getattr(given, name) not in ((), None):
                fields["condition"][name] = getattr(given, name)
    if parameter.role:
        fields["role"] = parameter.role
    return [*_comments(parameter.notes), *(f"{name} = {_value(value)}" for name, value in fields.items())]


def _comments(notes: tuple[str, ...]) -> list[str]:
    lines = []
    for note in notes:
        # A line end or another control character would end the comment.
        words = "".join(each if each.isprintable() else "?" for each in note).split(" ")
        line = "#"
        for word in words:
            if len(line) + 1 + len(word) > _WIDTH and line != "#":
                lines.append(line)
                line = "#"
            line += f" {word}"
        lines.append(line)
    return lines


def _value(value: Any) -> str:
    """A plain value as TOML.

    >>> _value({"column": "a b", "done": ("x",)}), _value(1e-05), _value(3.0), _value(True)
    ('{ column = "a b", done = ["x"] }', '1e-05', '3.0', 'true')
    """
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {_value(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        # JSON's escapes are those of TOML, but for DEL, which JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    return json.dumps(value)
