"""Tasks whose ranges differ: one search space around all of theirs, the paper's Case I."""

# Example: docs/examples/unmatched_data.py.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float64

from hyperbo.data.activity import with_activity
from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Parameter
from hyperbo.data.search_space import SearchSpace
from hyperbo.errors import InvalidInputError

_SAME_PARAMETERS = "a union needs the same parameters in all search spaces"


def union(spaces: Sequence[SearchSpace]) -> SearchSpace:
    """The smallest search space that contains all: of every parameter the widest range, and all levels.

    Paragraph "Different search spaces" of the discussion, Case I: tasks share their parameters but not the
    ranges. A prior is learned on the union; a new task is optimized in its own search space, its inputs
    mapped by `into_union`. Tasks with different parameters are the paper's Case II, which it leaves open: an
    error here.

    Args:
      spaces: one per task or dataset; the first sets the order of the parameters.

    Raises:
      InvalidInputError: there is no space, a parameter is not in all of them, or its types, scalings,
        conditions or orders of levels differ.

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
        united.append(_united(first, same))
    return SearchSpace(tuple(united))


def into_union(
    x: Float64[np.ndarray, "n d"], space: SearchSpace, united: SearchSpace
) -> Float64[np.ndarray, "n e"]:
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
    active = space.active(space.from_unit(x))
    columns = []
    for wide in united.parameters:
        own = _counterpart(wide, space, "the search space of x")
        place = space.names.index(wide.name)
        moved = _moved(x[:, space.slices[place]][:, : len(own.columns)], own, wide)
        columns.append(with_activity(wide, moved, active[:, place]))
    return np.concatenate(columns, axis=1)


def _united(first: Parameter | Choice, same: Sequence[Parameter | Choice]) -> Parameter | Choice:
    if isinstance(first, Choice):
        levels = dict.fromkeys(level for each in same if isinstance(each, Choice) for level in each.levels)
        return replace(first, levels=tuple(sorted(levels) if first.is_boolean else levels))
    numbers = [each for each in same if isinstance(each, Parameter)]
    return replace(first, lower=min(p.lower for p in numbers), upper=max(p.upper for p in numbers))


def _moved(
    x: Float64[np.ndarray, "n columns"], own: Parameter | Choice, wide: Parameter | Choice
) -> Float64[np.ndarray, "n wider"]:
    """The columns of a parameter as those of the united one."""
    if isinstance(own, Choice) and isinstance(wide, Choice):
        if not set(own.levels) <= set(wide.levels):
            raise _outside(own, wide)
        codes = np.array([wide.code(level) for level in own.levels])
        return wide.encode(codes[own.decode(x).astype(np.int64)])
    assert isinstance(own, Parameter)
    assert isinstance(wide, Parameter)
    if own.lower < wide.lower or own.upper > wide.upper:
        raise _outside(own, wide)
    low, high = wide.to_unit(np.array([own.lower, own.upper], np.float64))
    # Rounding must not carry a bound out of the cube.
    return np.clip(low + (high - low) * x, 0.0, 1.0)


def _outside(own: Parameter | Choice, wide: Parameter | Choice) -> InvalidInputError:
    return InvalidInputError(
        f"{own.name} is {own.summary}: outside {wide.summary}",
        where="the search space of x",
        fix="unite the search spaces of all tasks",
    )


def _check_no_other(space: SearchSpace, expected: SearchSpace, where: str) -> None:
    others = [name for name in space.names if name not in expected.names]
    if others:
        raise InvalidInputError(
            f"has the parameter {others[0]!r}, which others lack", where=where, fix=_SAME_PARAMETERS
        )


def _counterpart(parameter: Parameter | Choice, space: SearchSpace, where: str) -> Parameter | Choice:
    """The parameter of the same name, type, scaling and condition in another space."""
    if parameter.name not in space.names:
        raise InvalidInputError(
            f"the parameter {parameter.name!r} is missing in this space", where=where, fix=_SAME_PARAMETERS
        )
    own = space.parameter(parameter.name)
    if _kept(own) != _kept(parameter):
        differing = ((a, b) for a, b in zip(_kept(own), _kept(parameter), strict=False) if a != b)
        here, elsewhere = next(differing, (_kept(own), _kept(parameter)))
        raise InvalidInputError(
            f"{own.name} is {here}, elsewhere {elsewhere}", where=where, fix="declare it alike in all tasks"
        )
    return own


def _kept(parameter: Parameter | Choice) -> tuple[str, ...]:
    """What a union cannot change, in words."""
    condition = f"active where {parameter.condition!r}" if parameter.condition else "always active"
    if isinstance(parameter, Parameter):
        return parameter.type, f"of {parameter.scaling} scaling", condition
    if parameter.ordered:
        return f"an ordinal of {parameter.levels}", condition
    levels = "booleans" if parameter.is_boolean else "texts" if parameter.is_text else "numbers"
    return f"a choice of {levels}", condition
