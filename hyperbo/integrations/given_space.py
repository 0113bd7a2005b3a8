"""What a user says is to be tuned, as distributions of Optuna."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

from hyperbo.errors import InvalidInputError
from hyperbo.search_space import SearchSpace


def space_of(prior: SearchSpace, given: Mapping[str, Any]) -> dict[str, BaseDistribution]:
    """What is tuned: the prior's parameters, each in the range given or its own, then others.

    Args:
      prior: search space of the prior.
      given: by name, as in `hyperbo.tuner.Tuner`.

    Raises:
      InvalidInputError: what is given says no values, or a name is close to one of the prior's.

    >>> from hyperbo.search_space import Parameter
    >>> prior = SearchSpace((Parameter("rate", 1e-4, 1.0, "log"),))
    >>> space_of(prior, {"rate": (1e-3, 0.1)})
    {'rate': FloatDistribution(high=0.1, log=True, low=0.001, step=None)}
    """
    scalings = {each.name: each.scaling for each in prior.parameters}
    own = {each.name: _range(each.lower, each.upper, each.scaling == "log") for each in prior.parameters}
    for name in given.keys() - own.keys():
        meant = difflib.get_close_matches(name, own.keys() - given.keys(), n=1, cutoff=0.8)
        if meant:
            raise InvalidInputError(
                f"the prior has no parameter {name!r}", fix=f"if {meant[0]!r} is meant, write that"
            )
    return {**own, **{name: _distribution(name, each, scalings.get(name)) for name, each in given.items()}}


def inside(space: Mapping[str, BaseDistribution], given: Mapping[str, Any]) -> dict[str, Any]:
    """Values of all parameters, each checked.

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
        try:
            fits = distribution._contains(distribution.to_internal_repr(values[name]))
        except (TypeError, ValueError, OverflowError):
            fits = False
        if not fits:
            raise InvalidInputError(
                f"{name} = {given[name]!r} is outside of {_words(distribution)}", where="hyperparameters"
            )
    return values


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
        f"{given!r} says no values",
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
    """A number of NumPy as Python's: the database keeps JSON."""
    return value.item() if hasattr(value, "item") else value


def _words(distribution: BaseDistribution) -> str:
    """What a distribution allows, for a message."""
    if isinstance(distribution, CategoricalDistribution):
        return ", ".join(map(str, distribution.choices))
    limits = vars(distribution)
    step = f" in steps of {limits['step']}" if limits.get("step") else ""
    return f"[{limits['low']}, {limits['high']}]{step}"
