"""Tasks whose ranges differ: one search space around all of theirs, the paper's Case I.

Example: docs/examples/unmatched_data.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.errors import InvalidInputError

_SAME_PARAMETERS = "a union needs the same parameters in all search spaces"


def union(spaces: Sequence[SearchSpace]) -> SearchSpace:
    """The smallest search space that contains all: for every parameter the smallest lower and largest upper.

    Paragraph "Different search spaces" of the discussion, Case I: tasks share their parameters but not the
    ranges. A prior is learned on the union; a new task is optimized in its own search space, its inputs
    mapped by `into_union`. Tasks with different parameters are the paper's Case II, which it leaves open: an
    error here.

    Args:
      spaces: one per task or dataset; the first sets the order of the parameters.

    Raises:
      InvalidInputError: there is no space, a parameter is not in all of them, or its scalings differ.

    >>> narrow = SearchSpace((Parameter("rate", 1e-3, 1e-1, "log"),))
    >>> low = SearchSpace((Parameter("rate", 1e-5, 1e-2, "log"),))
    >>> union([narrow, low]).parameters
    (Parameter(name='rate', lower=1e-05, upper=0.1, scaling='log'),)
    """
    if not spaces:
        raise InvalidInputError("no search space to unite")
    for i, space in enumerate(spaces):
        _check_no_other(space, spaces[0], f"search space {i}")
    united = []
    for first in spaces[0].parameters:
        same = [_counterpart(first, space, f"search space {i}") for i, space in enumerate(spaces)]
        lower, upper = min(p.lower for p in same), max(p.upper for p in same)
        united.append(Parameter(first.name, lower, upper, first.scaling))
    return SearchSpace(tuple(united))


def into_union(
    x: Float64[np.ndarray, "n d"], space: SearchSpace, united: SearchSpace
) -> Float64[np.ndarray, "n d"]:
    """Inputs in a space's unit cube as points of the unit cube of a space that contains it.

    Under equal scalings the map is affine in every coordinate, so no raw value is rounded on the way; inputs
    of a space with the same ranges come back as they are.

    Args:
      x: inputs in the unit cube of `space`.
      space: whose inputs they are; the order of its parameters may be another.
      united: what `union` gave.

    Raises:
      InvalidInputError: a point lies outside the unit cube, the columns or parameters do not match, or
        `united` does not contain `space`.

    >>> narrow = SearchSpace((Parameter("rate", 1e-3, 1e-1, "log"),))
    >>> wide = SearchSpace((Parameter("rate", 1e-5, 1e-1, "log"),))
    >>> into_union(np.array([[0.0], [1.0]]), narrow, wide).tolist()
    [[0.5], [1.0]]
    """
    if x.shape[1] != space.dimension or not ((x >= 0.0) & (x <= 1.0)).all():
        raise InvalidInputError(
            f"x is no set of points of the unit cube of dimension {space.dimension}",
            fix="map raw values by the search space they belong to",
        )
    _check_no_other(space, united, "the search space of x")
    columns = []
    for wide in united.parameters:
        own = _counterpart(wide, space, "the search space of x")
        if own.lower < wide.lower or own.upper > wide.upper:
            raise InvalidInputError(
                f"{own.name} ranges over [{own.lower}, {own.upper}], outside [{wide.lower}, {wide.upper}]",
                where="the search space of x",
                fix="unite the search spaces of all tasks",
            )
        low, high = wide.to_unit(np.array([own.lower, own.upper]))
        column = low + (high - low) * x[:, space.names.index(wide.name)]
        # Rounding must not carry a bound out of the cube.
        columns.append(np.clip(column, 0.0, 1.0))
    return np.stack(columns, axis=1)


def _check_no_other(space: SearchSpace, expected: SearchSpace, where: str) -> None:
    others = [name for name in space.names if name not in expected.names]
    if others:
        raise InvalidInputError(
            f"has the parameter {others[0]!r}, which others lack", where=where, fix=_SAME_PARAMETERS
        )


def _counterpart(parameter: Parameter, space: SearchSpace, where: str) -> Parameter:
    """The parameter of the same name and scaling in another space."""
    for own in space.parameters:
        if own.name == parameter.name:
            if own.scaling != parameter.scaling:
                raise InvalidInputError(
                    f"{own.name} has {own.scaling} scaling, elsewhere {parameter.scaling}",
                    where=where,
                    fix="declare one scaling for all tasks",
                )
            return own
    raise InvalidInputError(
        f"the parameter {parameter.name!r} is missing in this space", where=where, fix=_SAME_PARAMETERS
    )
