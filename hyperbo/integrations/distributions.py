"""Optuna's distributions and the ranges of a prior's parameters."""

from __future__ import annotations

from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from hyperbo.tuning import Choices, Range


def placed(distribution: BaseDistribution) -> Range | Choices | float | None:
    """What a distribution leaves to choose among numbers; None where its choices are no numbers.

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
    """A raw value as the type that the distribution gives, inside of its range."""
    if isinstance(distribution, CategoricalDistribution):
        return min(distribution.choices, key=lambda each: abs((as_number(each) or 0.0) - raw))
    if isinstance(distribution, IntDistribution):
        return min(max(round(raw), distribution.low), distribution.high)
    if isinstance(distribution, FloatDistribution):
        return min(max(raw, distribution.low), distribution.high)
    raise TypeError(f"{distribution} has no number")


def as_number(value: Any) -> float | None:
    """The value, if it is a number; truth values are none.

    >>> as_number(3), as_number(True), as_number("3")
    (3.0, None, None)
    """
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
