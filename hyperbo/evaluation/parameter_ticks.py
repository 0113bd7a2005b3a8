"""Raw values of a parameter for a reader: in a text, and as ticks of an axis over the unit cube."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64

from hyperbo.search_space import Parameter

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Closer to a tick than this share of the axis, a bound is the tick but for rounding.
_SAME = 1e-9
# Digits tell values apart that are this share of the range away from each other.
_RESOLUTION = 1e-3


def raw_text(parameter: Parameter, coordinate: float) -> str:
    """The raw value at a coordinate, with the digits that matter there under the parameter's scaling.

    >>> raw_text(Parameter("momentum", 0.0, 0.999, "log1m"), 0.9)
    '0.998'
    >>> raw_text(Parameter("learning_rate", 1e-5, 10.0, "log"), 0.5)
    '0.01'
    """
    raw = float(parameter.from_unit(np.array([coordinate]))[0])
    around = parameter.raw_value(np.array([coordinate - _RESOLUTION / 2.0, coordinate + _RESOLUTION / 2.0]))
    # A range may be so narrow that its values are next to each other.
    step = max(float(around[1] - around[0]), float(np.spacing(abs(raw))))
    return _written(round(raw, -math.floor(math.log10(step))))


def ticks(parameter: Parameter, most: int) -> tuple[Float64[np.ndarray, " n"], list[str]]:
    """Round raw values of a parameter, at most so many.

    Returns:
      Their coordinates, and the raw values as text.

    >>> ticks(Parameter("momentum", 0.0, 0.999, "log1m"), 4)[1]
    ['0', '0.9', '0.99', '0.999']
    >>> ticks(Parameter("learning_rate", 1e-5, 10.0, "log"), 4)[1]
    ['10⁻⁵', '0.001', '0.1', '10']
    >>> ticks(Parameter("power", 0.1, 2.0), 4)[1]
    ['0.5', '1', '1.5', '2']
    """
    lower, upper = parameter.lower, parameter.upper
    raw: list[float] = []
    if parameter.scaling == "log":
        raw = _powers(lower, upper, most)
    elif parameter.scaling == "log1m":
        raw = [float(f"{1.0 - value:.12g}") for value in reversed(_powers(1.0 - upper, 1.0 - lower, most))]
    if len(raw) < 2:
        raw = _multiples(lower, upper, most)
    return parameter.to_unit(np.clip(np.array(raw), lower, upper)), [_written(value) for value in raw]


def _powers(lower: float, upper: float, most: int) -> list[float]:
    """Powers of ten, as many as there is room for; where they are few, twice and five times as much too."""
    slack = 1.0 + _SAME
    exponents = range(math.floor(math.log10(lower)), math.ceil(math.log10(upper)) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5)):
        values = [float(f"{factor}e{exponent}") for exponent in exponents for factor in factors]
        inside = [value for value in values if lower / slack <= value <= upper * slack]
        if len(inside) >= min(3, most):
            break
    return inside[:: math.ceil(len(inside) / most)] if inside else []


def _multiples(lower: float, upper: float, most: int) -> list[float]:
    """Multiples of a round step."""
    magnitude = 10.0 ** math.floor(math.log10((upper - lower) / most))
    for factor in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0):
        step = factor * magnitude
        slack = _SAME * (upper - lower)
        first, last = math.ceil((lower - slack) / step), math.floor((upper + slack) / step)
        if last - first < most:
            break
    return [float(f"{count * step:.12g}") for count in range(first, last + 1)]


def _written(value: float) -> str:
    """A number without an exponent where that is short, else with a power of ten."""
    if value and not 1e-3 <= abs(value) < 1e4:
        digits, exponent = f"{value:.11e}".split("e")
        factor = f"{float(digits):.12g}".replace("-", "\N{MINUS SIGN}")
        power = f"10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
        return power if factor == "1" else f"{factor}\N{MULTIPLICATION SIGN}{power}"
    return f"{value:.12g}".replace("-", "\N{MINUS SIGN}")
