"""Optuna's distributions: what a user gives as the space to tune, and what a prior makes of it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.errors import InvalidInputError
from hyperbo.tuning.region import Choices, Range


def placed(distribution: BaseDistribution) -> Range | Choices | float | None:
    """The range, choices or fixed value of a distribution; None where its choices are no numbers.

    >>> placed(IntDistribution(8, 64, step=8)), placed(CategoricalDistribution(["sgd", "adam"]))
    (Range(lower=8.0, upper=64.0, step=8.0), None)
    """
    if isinstance(distribution, CategoricalDistribution):
        numbers = [number for each in distribution.choices if (number := as_number(each)) is not None]
        return Choices(tuple(numbers)) if len(numbers) == len(distribution.choices) else None
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        return None
    lower, upper = float(distribution.low), float(distribution.high)
    if lower == upper:
        return lower
    return Range(lower, upper, None if distribution.step is None else float(distribution.step))


def value_of(distribution: BaseDistribution, raw: float) -> Any:
    """A raw value in the type of the distribution, clipped to its range."""
    if isinstance(distribution, CategoricalDistribution):
        return min(distribution.choices, key=lambda each: abs((as_number(each) or 0.0) - raw))
    if isinstance(distribution, IntDistribution):
        return min(max(round(raw), distribution.low), distribution.high)
    if isinstance(distribution, FloatDistribution):
        return min(max(raw, distribution.low), distribution.high)
    raise TypeError(f"{distribution} has no number")


def as_number(value: Any) -> float | None:
    """The value if it is a number, else None; True and False are no numbers.

    >>> as_number(3), as_number(True), as_number("3")
    (3.0, None, None)
    """
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def space_of(prior: SearchSpace, given: Mapping[str, Any]) -> dict[str, BaseDistribution]:
    """The space to tune: the prior's parameters, each in the given range or its own, then other parameters.

    Raises:
      InvalidInputError: a given value is no range, choices, number or distribution; or an unknown name is
        similar to a parameter of the prior.

    >>> from hyperbo.data.search_space import Parameter
    >>> prior = SearchSpace((Parameter("rate", 1e-4, 1.0, "log"),))
    >>> space_of(prior, {"rate": (1e-3, 0.1)})
    {'rate': FloatDistribution(high=0.1, log=True, low=0.001, step=None)}
    """
    scalings = {each.name: each.scaling for each in prior.parameters}
    own = {each.name: _range(each.lower, each.upper, each.scaling == "log") for each in prior.parameters}
    for name in given.keys() - own.keys():
        meant = difflib.get_close_matches(name, own.keys() - given.keys(), n=1, cutoff=0.8)
        if meant:
            raise InvalidInputError(f"the prior has no parameter {name!r}", fix=f"did you mean {meant[0]!r}?")
    return {**own, **{name: _distribution(name, each, scalings.get(name)) for name, each in given.items()}}


def inside(space: Mapping[str, BaseDistribution], given: Mapping[str, Any]) -> dict[str, Any]:
    """Check values of all parameters, and return them, numbers of NumPy as Python numbers.

    A value a rounding outside of its range, as that of a float32, is returned as the nearest bound: Optuna's
    database holds no other.

    Raises:
      InvalidInputError: a parameter is missing, unknown or outside of its range.
    """
    missing, unknown = sorted(space.keys() - given.keys()), sorted(given.keys() - space.keys())
    if missing or unknown:
        named = ((missing, "missing"), (unknown, "unknown"))
        said = [f"{', '.join(names)} {what}" for names, what in named if names]
        raise InvalidInputError("; ".join(said), where="hyperparameters", fix=f"give {', '.join(space)}")
    values = {name: _plain(each) for name, each in given.items()}
    for name, distribution in space.items():
        values[name] = _without_rounding(distribution, values[name])
        try:
            fits = distribution._contains(distribution.to_internal_repr(values[name]))
        except (TypeError, ValueError, OverflowError):
            fits = False
        if not fits:
            raise InvalidInputError(
                f"{name} = {given[name]!r} is outside of {_words(distribution)}", where="hyperparameters"
            )
    return values


def _without_rounding(distribution: BaseDistribution, value: Any) -> Any:
    """The nearest bound for a number a rounding outside of a continuous range; else the value as it is."""
    known = as_number(value)
    if known is None or not isinstance(distribution, FloatDistribution) or distribution.step is not None:
        return value
    lower, upper = distribution.low, distribution.high
    if lower == upper or lower <= known <= upper:
        return value
    accepted = Parameter("value", lower, upper, "log" if distribution.log else "linear")
    return min(max(known, lower), upper) if accepted.accepts(np.array([known])).all() else value


def _distribution(name: str, given: Any, scaling: str | None) -> BaseDistribution:
    where = f"parameter {name!r}"
    if isinstance(given, BaseDistribution):
        return given
    try:
        if _is_number(given):
            return _range(given, given, False)
        if isinstance(given, tuple) and len(given) == 2 and all(map(_is_number, given)):
            return _range(*given, log=scaling == "log")
        if isinstance(given, list):
            return CategoricalDistribution([_plain(each) for each in given])
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"{given!r}: {error}", where=where) from error
    raise InvalidInputError(
        f"{given!r} is no range, choices, number or distribution",
        where=where,
        fix="give (lower, upper), a list of choices, a number, or a distribution of Optuna",
    )


def _range(lower: Any, upper: Any, log: bool) -> FloatDistribution:
    low, high = float(lower), float(upper)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError("a bound is not finite")
    return FloatDistribution(low, high, log=log and low < high)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    """A NumPy number as a Python number, because the database holds JSON."""
    return value.item() if hasattr(value, "item") else value


def _words(distribution: BaseDistribution) -> str:
    """The values that a distribution allows, as text for a message."""
    if isinstance(distribution, CategoricalDistribution):
        return ", ".join(map(str, distribution.choices))
    limits = vars(distribution)
    step = f" in steps of {limits['step']}" if limits.get("step") else ""
    return f"[{limits['low']}, {limits['high']}]{step}"
