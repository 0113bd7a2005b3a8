"""The whole space to tune, made of what a user gives, also of parameters that no prior knows."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Parameter
from hyperbo.data.search_space import SearchSpace
from hyperbo.errors import InvalidInputError
from hyperbo.priors.file import Prior
from hyperbo.tuning.belief import Belief, prior_belief, universal_prior
from hyperbo.tuning.optuna.distributions import distribution_of, placed, space_of

logger = logging.getLogger(__name__)

# A positive range whose ends differ by this factor is searched in its logarithm.
_DECADES = 100.0


def begun(
    prior: Prior | None, space: Mapping[str, Any] | SearchSpace | Any | None, direction: str | None
) -> tuple[Belief, dict[str, BaseDistribution]]:
    """What a prior, or the universal prior, believes, and the distributions of the space to tune.

    Args:
      prior: a prior; None: the universal prior.
      space: what a user gives as the space to tune.
      direction: of the objective; None: that of the prior.

    Raises:
      InvalidInputError: something given is no range, choices or distribution, there is no such direction, or
        the prior has another direction.
    """
    is_named = isinstance(space, Mapping) and all(isinstance(name, str) for name in space)
    if space is not None and not (is_named or isinstance(space, SearchSpace)):
        raise InvalidInputError(
            f"space = {space!r:.60}", fix='give a dictionary, such as {"learning_rate": (1e-4, 0.1)}'
        )
    if isinstance(prior, Prior):
        belief = prior_belief(prior, direction)
        given = space_of(space, {}) if isinstance(space, SearchSpace) else space or {}
        return belief, space_of(belief.space, given)
    whole, distributions = whole_space(space)
    return universal_prior(whole, direction), distributions


def say_unknown(belief: Belief, space: Mapping[str, BaseDistribution]) -> None:
    """Say which parameters a prior does not know."""
    known = belief.space
    without = [
        key
        for key, each in space.items()
        if key not in known.names or placed(known.parameter(key), each) is None
    ]
    if without:
        logger.warning("sampled without the prior, which does not know them: %s", ", ".join(without))
    new = [name for name in known.names if belief.names and name not in belief.names]
    if new:
        logger.info("the universal prior stands for what the prior does not know: %s", ", ".join(new))


def whole_space(
    given: Mapping[str, Any] | SearchSpace | None,
) -> tuple[SearchSpace, dict[str, BaseDistribution]]:
    """The search space of ranges, choices and distributions, and the distributions of its parameters.

    Two whole numbers are the range of an integer. A range above 0 whose ends differ by a factor of 100 is
    searched in its logarithm.

    Raises:
      InvalidInputError: there is no parameter, or something given is no range, choices or distribution.

    >>> space, _ = whole_space({"lr": (1e-5, 1e-1), "depth": (1, 4), "act": ["relu", "tanh"]})
    >>> [each.summary for each in space.parameters]
    ['1e-05 to 0.1, log', '1 to 4, linear, whole numbers', "one of 'relu', 'tanh'"]
    """
    if isinstance(given, SearchSpace):
        return given, space_of(given, {})
    if not given:
        raise InvalidInputError(
            "no space to tune", where="the universal prior", fix='give space={"lr": (1e-5, 0.1), ...}'
        )
    distributions = {name: _distribution(name, each) for name, each in given.items()}
    parameters = []
    for name, each in distributions.items():
        made = new_parameter(name, each)
        if made is None:
            raise InvalidInputError(
                f"the choices {given[name]!r} are of mixed types",
                where=f"parameter {name!r}",
                fix="give texts only, numbers only, or True and False",
            )
        parameters.append(made)
    return SearchSpace(tuple(parameters)), distributions


def new_parameter(name: str, distribution: BaseDistribution) -> Parameter | Choice | None:
    """The parameter that a distribution makes; None where its choices are no levels of one type."""
    if isinstance(distribution, CategoricalDistribution):
        try:
            return _choice(name, distribution)
        except (InvalidInputError, TypeError):
            return None
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        return None
    lower, upper = distribution.low, distribution.high
    if lower == upper:
        return Choice(name, (lower,))
    is_integer = isinstance(distribution, IntDistribution)
    return Parameter(name, lower, upper, "log" if distribution.log else "linear", integer=is_integer)


def is_wide(lower: float | int, upper: float | int) -> bool:
    """Whether a range is searched in its logarithm, where nothing else is said.

    >>> is_wide(1e-5, 1e-1), is_wide(0.0, 1.0), is_wide(1, 8)
    (True, False, False)
    """
    return lower > 0.0 and _DECADES * lower <= upper < float("inf")


def _choice(name: str, distribution: CategoricalDistribution) -> Choice:
    """Levels in an order that does not depend on how they were given; numbers are ordered."""
    levels = [each for each in distribution.choices if isinstance(each, str | bool | int | float)]
    if len(levels) < len(distribution.choices):
        raise TypeError("a level is no text, number or boolean")
    is_number = not any(isinstance(each, str | bool) for each in levels)
    is_boolean = all(isinstance(each, bool) for each in levels)
    ordered = sorted(levels, key=float) if is_number or is_boolean else levels
    return Choice(name, tuple(ordered), ordered=is_number and len(levels) > 2)


def _distribution(name: str, given: Any) -> BaseDistribution:
    """What is given for one parameter, with a guess of integers and scales where it is a range."""
    if isinstance(given, tuple) and len(given) == 2:
        lower, upper = given
        if all(isinstance(each, int) and not isinstance(each, bool) for each in given) and lower < upper:
            return IntDistribution(lower, upper, log=is_wide(lower, upper))
        is_number = all(isinstance(each, int | float) and not isinstance(each, bool) for each in given)
        if is_number and is_wide(lower, upper):
            return FloatDistribution(float(lower), float(upper), log=True)
    return distribution_of(name, [given] if isinstance(given, str | int) else given, None)
