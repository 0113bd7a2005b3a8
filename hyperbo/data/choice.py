"""Parameters that are one of a list of levels: choices, ordinals, booleans and constants."""

from __future__ import annotations

import sys
import unicodedata
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from hyperbo.data.parameter import LARGEST_INTEGER, Condition, Value, short_repr
from hyperbo.errors import InvalidInputError

# A level is a column of x: more than these say nothing that a process could learn from.
_MOST_LEVELS = 256
_LONGEST_LEVEL = 200
_LEVELS_SHOWN = 8


@dataclass(frozen=True)
class Choice:
    """A hyperparameter that is one of its levels; its code is the index of the level.

    Columns of `x` for the index i of k levels: none for k = 1, a constant. One, i / (k - 1), where the levels
    are ordered or k = 2. Else k columns, of which the i-th is 1 and the others are 0: a kernel with a length
    scale for each column has one for each level, and a network's first layer is an embedding of the levels.

    Attributes:
      name: of the hyperparameter.
      levels: all texts, all finite numbers, or (False, True).
      ordered: whether neighbours in the list are similar.
      condition: when the parameter is active; None: always.
      role: what it is to training, such as `activation`; empty: its name says it.

    Raises:
      InvalidInputError: there is no level or too many, one repeats or cannot be stored, or their types
        differ.

    >>> activation = Choice("activation", ("relu", "tanh", "gelu"))
    >>> activation.columns
    ('activation=relu', 'activation=tanh', 'activation=gelu')
    >>> activation.encode(np.array([2.0])).tolist()
    [[0.0, 0.0, 1.0]]
    """

    name: str
    levels: tuple[Value, ...]
    ordered: bool = False
    condition: Condition | None = None
    role: str = ""

    def __repr__(self) -> str:
        """The fields that differ from their defaults."""
        return short_repr(self)

    def __post_init__(self) -> None:
        where = f"parameter {self.name!r}"
        if not self.name:
            raise InvalidInputError("a parameter has no name", fix="give one")
        if not self.levels or len(self.levels) > _MOST_LEVELS:
            raise InvalidInputError(
                f"{len(self.levels)} levels",
                where=where,
                fix=f"give at least one, and at most {_MOST_LEVELS}",
            )
        kinds = {_kind(level) for level in self.levels}
        if len(kinds) > 1:
            raise InvalidInputError(
                f"the levels {self._shown()} are of mixed types",
                where=where,
                fix="give texts only, numbers only, or true and false",
            )
        for level in self.levels:
            _check_level(level, where)
        if len(set(self.levels)) < len(self.levels):
            raise InvalidInputError(f"a level comes twice: {self._shown()}", where=where, fix="remove one")
        if kinds == {"boolean"} and self.levels not in ((False, True), (False,), (True,)):
            raise InvalidInputError(
                "the levels of a boolean are false and true", where=where, fix="give them in this order"
            )

    @property
    def type(self) -> str:
        """`constant`, `boolean`, `ordinal` or `choice`."""
        if len(self.levels) == 1:
            return "constant"
        if self.levels == (False, True) and self.is_boolean:
            return "boolean"
        return "ordinal" if self.ordered else "choice"

    @property
    def summary(self) -> str:
        """Its levels in words.

        >>> Choice("batch_size", (32, 64), ordered=True).summary, Choice("optimizer", ("adam",)).summary
        ('one of 32, 64, in this order', "always 'adam'")
        """
        order = ", in this order" if self.ordered else ""
        text = f"always {self.levels[0]!r}" if len(self.levels) == 1 else f"one of {self._shown()}{order}"
        return text + (f"; where {self.condition}" if self.condition else "")

    @property
    def is_boolean(self) -> bool:
        """Whether the levels are true and false."""
        return isinstance(self.levels[0], bool)

    @property
    def is_text(self) -> bool:
        """Whether the levels are texts."""
        return isinstance(self.levels[0], str)

    @property
    def is_number(self) -> bool:
        """Whether the levels are numbers."""
        return not self.is_text and not self.is_boolean

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns of `x`."""
        if len(self.levels) == 1:
            return ()
        if self.ordered or len(self.levels) == 2:
            return (self.name,)
        return tuple(f"{self.name}={level}" for level in self.levels)

    @property
    def centre(self) -> tuple[float, ...]:
        """What stands in its columns where it is inactive: no level is nearer than another."""
        count = len(self.columns)
        return (0.5,) if count == 1 else (1.0 / max(count, 1),) * count

    def outside(self, codes: Float64[np.ndarray, "*n"]) -> Bool[np.ndarray, "*n"]:
        """Whether codes are no level; NaN is none."""
        return ~self.accepts(codes)

    def accepts(self, codes: Float64[np.ndarray, "*n"]) -> Bool[np.ndarray, "*n"]:
        """Whether codes are levels."""
        return (codes >= 0) & (codes < len(self.levels)) & (np.round(codes) == codes)

    def encode(self, codes: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, "n columns"]:
        """Columns of `x` of indices."""
        count = len(self.columns)
        if count == 1:
            return codes[:, None] / (len(self.levels) - 1)
        return (codes[:, None] == np.arange(count)).astype(np.float64)

    def decode(self, columns: Float64[np.ndarray, "n columns"]) -> Float64[np.ndarray, " n"]:
        """Indices of the levels next to columns of `x`; of equally near ones, the first."""
        if columns.shape[1] == 0:
            return np.zeros(len(columns))
        if columns.shape[1] == 1:
            return np.round(columns[:, 0] * (len(self.levels) - 1))
        return np.argmax(columns, axis=1).astype(np.float64)

    def code(self, value: Value) -> float:
        """The index of a level.

        Raises:
          InvalidInputError: the value is no level.
        """
        for index, level in enumerate(self.levels):
            # To Python, True equals 1.
            if level == value and isinstance(value, bool) == self.is_boolean:
                return float(index)
        raise InvalidInputError(
            f"{self.name} = {value!r} is none of its levels {self._shown()}",
            fix="correct the value or declare the level",
        )

    def value(self, code: float) -> Value:
        """The level of an index."""
        return self.levels[int(code)]

    def meets(self, condition: Condition, codes: Float64[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
        """Whether levels fulfil a condition on this parameter.

        Raises:
          InvalidInputError: the condition names a value that is no level, or bounds of texts.
        """
        if condition.values:
            return np.isin(codes, [self.code(value) for value in condition.values])
        if self.is_text or self.is_boolean:
            raise InvalidInputError(
                f"the condition {condition} has bounds, but its parent is a choice", fix="give values"
            )
        levels = np.append(np.array(self.levels, np.float64), np.nan)
        return condition.in_bounds(levels[np.where(self.accepts(codes), codes, -1).astype(np.int64)])

    def _shown(self) -> str:
        shown = ", ".join(map(repr, self.levels[:_LEVELS_SHOWN]))
        return shown if len(self.levels) <= _LEVELS_SHOWN else f"{shown}, ..."


def _kind(level: Value) -> str:
    if isinstance(level, bool):
        return "boolean"
    return "text" if isinstance(level, str) else "number"


def _check_level(level: Value, where: str) -> None:
    if isinstance(level, str):
        is_stored = 0 < len(level) <= _LONGEST_LEVEL and not any(
            unicodedata.category(each)[0] == "C" for each in level
        )
    else:
        is_stored = isinstance(level, int | float) and abs(level) <= (
            LARGEST_INTEGER if isinstance(level, int) else sys.float_info.max
        )
    if not is_stored:
        raise InvalidInputError(
            f"{level!r} cannot be a level",
            where=where,
            fix=f"give finite numbers (integers of at most 2^53), or texts of 1 to {_LONGEST_LEVEL} visible "
            "characters",
        )
