"""The columns of a search space, as the universal prior knows them: by what they are, not by their names."""

from __future__ import annotations

from typing import Literal, NamedTuple

from hyperbo.data.choice import Choice
from hyperbo.data.search_space import SearchSpace
from hyperbo.methods.universal.roles import role_of

Kind = Literal["number", "binary", "level", "active"]
KINDS: tuple[Kind, ...] = ("number", "binary", "level", "active")


class Column(NamedTuple):
    """A column of `x`.

    Attributes:
      kind: `number` of a real, an integer or an ordinal; `binary` of a choice of two; `level` of one level
        of a choice of more; `active` where it says whether a conditional parameter is active.
      role: that of its parameter, declared or guessed from the name.
    """

    kind: Kind
    role: str


def columns_of(space: SearchSpace) -> tuple[Column, ...]:
    """The columns of a search space, in the order of `x`.

    >>> from hyperbo.data.parameter import Parameter
    >>> space = SearchSpace((Parameter("lr", 1e-4, 1.0, "log"), Choice("act", ("relu", "tanh"))))
    >>> columns_of(space)
    (Column(kind='number', role='learning_rate'), Column(kind='binary', role='generic'))
    """
    found = []
    for each, own in zip(space.parameters, space.slices, strict=True):
        role = each.role or role_of(each.name)
        kind: Kind = "number"
        if isinstance(each, Choice) and not each.ordered:
            kind = "binary" if len(each.levels) == 2 else "level"
        own_columns = len(each.columns)
        for place in range(own.stop - own.start):
            found.append(Column(kind if place < own_columns else "active", role))
    return tuple(found)
