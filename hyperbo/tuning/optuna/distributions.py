"""Optuna's distributions: what a user gives as the space to tune, and what a prior makes of it."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from functools import cache
from numbers import Real
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Parameter, Value
from hyperbo.data.search_space import SearchSpace
from hyperbo.errors import InvalidInputError
from hyperbo.methods.universal.roles import meant_by
from hyperbo.tuning.axes import Choices, Range
from hyperbo.tuning.optuna.codes import active_names, as_number, level_of

logger = logging.getLogger(__name__)


def placed(parameter: Parameter | Choice, distribution: BaseDistribution) -> Range | Choices | float | None:
    """What a distribution allows of a prior's parameter; None where a number has choices that are none.

    Raises:
      InvalidInputError: the distribution has a level that the prior does not know, or none that it knows.

    >>> depth = Parameter("depth", 8.0, 64.0)
    >>> placed(depth, IntDistribution(8, 64, step=8)), placed(depth, CategoricalDistribution(["a", "b"]))
    (Range(lower=8.0, upper=64.0, step=8.0), None)
    """
    if isinstance(parameter, Choice):
        return Choices(_levels(parameter, distribution))
    if isinstance(distribution, CategoricalDistribution):
        numbers = [number for each in distribution.choices if (number := as_number(each)) is not None]
        return Choices(tuple(numbers)) if len(numbers) == len(distribution.choices) else None
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        return None
    lower, upper = float(distribution.low), float(distribution.high)
    if lower == upper:
        return lower
    return Range(lower, upper, None if distribution.step is None else float(distribution.step))


def _levels(parameter: Choice, distribution: BaseDistribution) -> tuple[Value, ...]:
    if isinstance(distribution, CategoricalDistribution):
        for each in distribution.choices:
            if level_of(parameter, each) is None:
                raise InvalidInputError(
                    f"the prior knows no level {each!r} of {parameter.name}, only {parameter.summary}",
                    where=f"parameter {parameter.name!r}",
                    fix="leave it out; under another name, the parameter is sampled without the prior",
                )
        codes = [level_of(parameter, each) for each in distribution.choices]
        return tuple(parameter.value(code) for code in codes if code is not None)
    inside = tuple(
        level
        for level in parameter.levels
        if not isinstance(level, str | bool) and distribution._contains(distribution.to_internal_repr(level))
    )
    if not inside:
        raise InvalidInputError(
            f"no level of {parameter.name} is in {words(distribution)}: {parameter.summary}",
            where=f"parameter {parameter.name!r}",
            fix="give some of its levels as a list",
        )
    _say_levels(parameter.name, inside, words(distribution))
    return inside


@cache
def _say_levels(name: str, levels: tuple[Value, ...], given: str) -> None:
    """Say once that a range over a choice has gaps."""
    logger.warning(
        "of %s in %s only the levels are tried that the prior knows: %s",
        name,
        given,
        ", ".join(map(str, levels)),
    )


def value_of(parameter: Parameter | Choice, distribution: BaseDistribution, code: float) -> Any:
    """A code as a value in the type of the distribution, of a number clipped to its range."""
    if isinstance(parameter, Choice):
        value = parameter.value(code)
        if isinstance(distribution, CategoricalDistribution):
            return next(each for each in distribution.choices if level_of(parameter, each) == code)
        return int(value) if isinstance(distribution, IntDistribution) else value
    if isinstance(distribution, CategoricalDistribution):
        return min(distribution.choices, key=lambda each: abs((as_number(each) or 0.0) - code))
    if isinstance(distribution, IntDistribution):
        return min(max(round(code), distribution.low), distribution.high)
    if isinstance(distribution, FloatDistribution):
        return min(max(code, distribution.low), distribution.high)
    raise TypeError(f"{distribution} has no number")


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
    known = {each.name: each for each in prior.parameters}
    own = {name: _own(each) for name, each in known.items()}
    for name in given:
        meant = meant_by(name, [each for each in own if each not in given])
        if name not in own and meant:
            raise InvalidInputError(
                f"the prior has no parameter {name!r}",
                where="space",
                fix=f"did you mean {meant!r}? Its parameters are {', '.join(own)}; to tune both, give both",
            )
    space = {**own, **{name: distribution_of(name, each, known.get(name)) for name, each in given.items()}}
    for name, each in known.items():
        if isinstance(each, Parameter) and placed(each, space[name]) is None:
            raise InvalidInputError(
                f"the choices {words(space[name])} of a number, {each.summary}",
                where=f"parameter {name!r}",
                fix="give numbers, or a range (lower, upper); or use another name for a choice of texts",
            )
    return space


def _own(parameter: Parameter | Choice) -> BaseDistribution:
    """The distribution over all values of a prior's parameter."""
    if isinstance(parameter, Choice):
        return CategoricalDistribution(parameter.levels)
    return _range(parameter.lower, parameter.upper, parameter.scaling == "log", parameter.integer)


def inside(
    space: Mapping[str, BaseDistribution], given: Mapping[str, Any] | Any, prior: SearchSpace
) -> dict[str, Any]:
    """Check values of all active parameters, and return them, numbers of NumPy as Python numbers.

    A value a rounding outside of its range, as that of a float32, is returned as the nearest bound: Optuna's
    database holds no other.

    Raises:
      InvalidInputError: a parameter is missing, unknown or outside of its range.
    """
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            f"hyperparameters = {given!r:.60}", fix=f"give a dictionary of {', '.join(space)}"
        )
    plain = {name: plain_value(each) for name, each in given.items()}
    needed = active_names(prior, space, plain)
    missing, unknown = sorted(needed - given.keys()), sorted(given.keys() - space.keys())
    if missing or unknown:
        named = ((missing, "missing"), (unknown, "unknown"))
        said = [f"{', '.join(names)} {what}" for names, what in named if names]
        raise InvalidInputError("; ".join(said), where="hyperparameters", fix=f"give {', '.join(space)}")
    values = {name: each for name, each in plain.items() if name in needed}
    for name in values:
        distribution = space[name]
        if not isinstance(distribution, CategoricalDistribution) and as_number(values[name]) is None:
            raise InvalidInputError(f"{name} = {given[name]!r:.60} is not a number", where="hyperparameters")
        values[name] = _without_rounding(distribution, values[name])
        try:
            fits = distribution._contains(distribution.to_internal_repr(values[name]))
        except (TypeError, ValueError, OverflowError):
            fits = False
        if not fits:
            raise InvalidInputError(
                f"{name} = {given[name]!r} is outside of {words(distribution)}", where="hyperparameters"
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


def distribution_of(name: str, given: Any, known: Parameter | Choice | None) -> BaseDistribution:
    """The distribution of what is given for one parameter.

    Raises:
      InvalidInputError: it is no range, choices, number or distribution.
    """
    where = f"parameter {name!r}"
    is_integer = isinstance(known, Parameter) and known.integer
    if isinstance(given, FloatDistribution) and is_integer and given.step is None:
        return IntDistribution(math.ceil(given.low), math.floor(given.high), log=given.log)
    if isinstance(given, BaseDistribution):
        return given
    is_range = isinstance(given, tuple) and len(given) == 2 and all(map(_is_number, given))
    try:
        if isinstance(known, Choice):
            if is_range:
                return CategoricalDistribution(
                    _levels(known, FloatDistribution(float(given[0]), float(given[1])))
                )
            if isinstance(given, str | bool) or _is_number(given):
                return CategoricalDistribution([plain_value(given)])
        else:
            if _is_number(given):
                return _range(given, given, False, is_integer)
            if is_range:
                return _range(*given, log=known is not None and known.scaling == "log", integer=is_integer)
        if isinstance(given, list):
            return CategoricalDistribution([plain_value(each) for each in given])
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"{given!r}: {error}", where=where) from error
    raise InvalidInputError(
        f"{given!r} is no range, choices, number or distribution",
        where=where,
        fix="give (lower, upper), a list of choices, a number, or a distribution of Optuna",
    )


def _range(lower: Any, upper: Any, log: bool, integer: bool = False) -> FloatDistribution | IntDistribution:
    low, high = float(lower), float(upper)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError("a bound is not finite")
    if not integer:
        return FloatDistribution(low, high, log=log and low < high)
    if not (low.is_integer() and high.is_integer()):
        raise ValueError("a bound of an integer is no whole number")
    return IntDistribution(int(low), int(high), log=log and low < high)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def plain_value(value: Any) -> Any:
    """A NumPy number as a Python number, because a database holds JSON."""
    return value.item() if hasattr(value, "item") else value


def words(distribution: BaseDistribution) -> str:
    """The values that a distribution allows, as text for a message."""
    if isinstance(distribution, CategoricalDistribution):
        return ", ".join(map(str, distribution.choices))
    limits = vars(distribution)
    if limits["low"] == limits["high"]:
        return str(limits["low"])
    step = f" in steps of {limits['step']}" if limits.get("step") else ""
    return f"[{limits['low']}, {limits['high']}]{step}"
