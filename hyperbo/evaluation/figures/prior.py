"""Figures of a prior along one parameter: promising region, functions, correlation; raw values as ticks."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from jaxtyping import Float64
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from hyperbo.data.search_space import Parameter
from hyperbo.evaluation.figures.style import INK, PAGE, RULE, canvas, size, svg
from hyperbo.evaluation.prior.cuts import HALF, Slices
from hyperbo.evaluation.prior.view import Promising

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# A bound this close to a tick, as a share of the axis, equals the tick up to rounding.
_SAME = 1e-9
# Enough digits are written to distinguish values that differ by this share of the range.
_RESOLUTION = 1e-3
_BLUE, _ORANGE, _GREY = "#0072b2", "#d55e00", "#80858c"
BAND = 1.96
_BINS = 30
# The proposals are drawn above the histogram (of height 1), the first on top; the bar is below it.
_FIRST_RUNG, _RUNG, _BAR = 1.2, 0.25, -0.14
# From this coordinate on, the value of a proposal stands on the left of its point.
_LABEL_LEFT_FROM = 0.8
# A tick this close to the end of its axis has its label inside the panel.
_END = 0.08


def promising_figure(name: str, promising: Promising, parameter: Parameter, axis: int) -> str:
    """Draw the promising points along a parameter, with their range and the first proposals."""
    low, high = (raw_text(parameter, each) for each in promising.ranges[axis])
    best = raw_text(parameter, promising.best[axis])
    tries = promising.proposals[:, axis]
    rungs = _FIRST_RUNG + _RUNG * np.arange(len(tries))[::-1]
    with canvas(330, 185) as figure:
        axes = figure.add_subplot()
        shares, edges = np.histogram(promising.points[:, axis], bins=_BINS, range=(0.0, 1.0))
        heights = shares / shares.max()
        axes.bar(edges[:-1], heights, np.diff(edges), align="edge", color=_BLUE, alpha=0.35, linewidth=0)
        axes.plot(promising.ranges[axis], [_BAR, _BAR], color=_BLUE, linewidth=5, solid_capstyle="butt")
        axes.plot([promising.best[axis]], [_BAR], "D", color=_ORANGE, markersize=6.5, clip_on=False)
        axes.hlines(rungs, 0.0, 1.0, color=RULE, linewidth=0.5)
        axes.plot(tries, rungs, "o", color=INK, markersize=4, clip_on=False)
        for at, rung in zip(tries, rungs, strict=True):
            left = at > _LABEL_LEFT_FROM
            axes.annotate(
                raw_text(parameter, at),
                (at, rung),
                (-5 if left else 5, 1),
                textcoords="offset points",
                ha="right" if left else "left",
                va="center",
                fontsize=9,
                color=INK,
                bbox={"facecolor": PAGE, "edgecolor": "none", "pad": 0.5},
            )
        axes.set_ylim(-0.32, _FIRST_RUNG + _RUNG * len(promising.proposals))
        axes.spines["left"].set_visible(False)
        raw_axis(axes, "x", parameter, 5)
        named = [f"trial {number}" for number in range(1, len(tries) + 1)]
        axes.set_yticks([_BAR, 0.5, *rungs], ["best", "promising", *named], fontsize=9)
        axes.tick_params(axis="y", length=0, pad=8)
        axes.set_xlabel(parameter.name)
        tried = ", ".join(raw_text(parameter, at) for at in tries)
        description = (
            f"{parameter.name}: most of the promising region from {low} to {high}, best {best}; "
            f"first trials at {tried}"
        )
        return svg(figure, name, description)


def slice_figure(
    name: str, slices: Slices, best: Float64[np.ndarray, " d"], parameter: Parameter, axis: int
) -> str:
    """Draw the prior along a parameter: mean, 95 % band, and functions drawn from it.

    The figures of all parameters have the same vertical scale.
    """
    margin = BAND * slices.deviation
    lowest = min((slices.mean - margin).min(), slices.functions.min())
    highest = max((slices.mean + margin).max(), slices.functions.max())
    mean = slices.mean[axis]
    with canvas(*size((), small=True)) as figure:
        axes = figure.add_subplot()
        axes.fill_between(
            slices.at, mean - margin[axis], mean + margin[axis], color=_BLUE, alpha=0.16, linewidth=0
        )
        axes.plot(slices.at, slices.functions[:, axis].T, color=_GREY, linewidth=0.9)
        axes.plot(slices.at, mean, color=_BLUE)
        axes.plot([best[axis]], [np.interp(best[axis], slices.at, mean)], "D", color=_ORANGE)
        axes.set_ylim(lowest - 0.03 * (highest - lowest), highest + 0.03 * (highest - lowest))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        raw_axis(axes, "x", parameter, 5)
        axes.set_xlabel(parameter.name)
        top = raw_text(parameter, slices.at[np.argmax(mean)])
        description = (
            f"Prior along {parameter.name}: mean {mean.min():.2f} to {mean.max():.2f}, largest at {top}"
        )
        return svg(figure, name, description)


def reach_figure(
    name: str, slices: Slices, best: Float64[np.ndarray, " d"], parameter: Parameter, axis: int
) -> str:
    """Draw the correlation with the value at the most promising point, and where it exceeds one half."""
    correlation = slices.correlation[axis]
    low, high = (edge if np.isnan(at) else at for edge, at in zip((0.0, 1.0), slices.half[axis], strict=True))
    with canvas(300, 140) as figure:
        axes = figure.add_subplot()
        axes.axvspan(low, high, color=_BLUE, alpha=0.16, linewidth=0)
        axes.axhline(HALF, color=_GREY, linewidth=0.9, dashes=(4.0, 3.0))
        axes.plot(slices.at, correlation, color=_BLUE)
        axes.plot([best[axis]], [1.0], "D", color=_ORANGE, clip_on=False)
        axes.set_ylim(min(0.0, 1.1 * float(correlation.min())), 1.06)
        axes.yaxis.set_major_locator(MaxNLocator(3))
        raw_axis(axes, "x", parameter, 5)
        axes.set_xlabel(parameter.name)
        within = f"from {raw_text(parameter, low)} to {raw_text(parameter, high)}"
        return svg(figure, name, f"Correlation along {parameter.name}: at least one half {within}")


def raw_axis(
    axes: Axes, of: Literal["x", "y"], parameter: Parameter, most: int, *, labelled: bool = True
) -> None:
    """Label an axis of coordinates in [0, 1] with raw values of its parameter."""
    positions, labels = ticks(parameter, most)
    axis = axes.xaxis if of == "x" else axes.yaxis
    axis.set_ticks(positions, labels if labelled else [""] * len(labels))
    axis.set_tick_params(labelsize=9, length=2 if labelled else 0)
    for position, label in zip(positions, axis.get_ticklabels(), strict=True):
        side = 1 - int(position < _END) + int(position > 1.0 - _END)
        if of == "x":
            label.set_horizontalalignment(("left", "center", "right")[side])
        else:
            label.set_verticalalignment(("bottom", "center", "top")[side])
    (axes.set_xlim if of == "x" else axes.set_ylim)(0.0, 1.0)
    axes.grid(visible=False)
    axes.patch.set_visible(False)


def raw_text(parameter: Parameter, coordinate: float) -> str:
    """The raw value at a coordinate, with enough digits for the parameter's scaling.

    >>> raw_text(Parameter("momentum", 0.0, 0.999, "log1m"), 0.9)
    '0.998'
    >>> raw_text(Parameter("learning_rate", 1e-5, 10.0, "log"), 0.5)
    '0.01'
    """
    raw = float(parameter.from_unit(np.array([coordinate]))[0])
    around = parameter.raw_value(np.array([coordinate - _RESOLUTION / 2.0, coordinate + _RESOLUTION / 2.0]))
    # In a very narrow range, neighbouring values may be neighbouring floating-point numbers.
    step = max(float(around[1] - around[0]), float(np.spacing(abs(raw))))
    return _written(round(raw, -math.floor(math.log10(step))))


def ticks(parameter: Parameter, most: int) -> tuple[Float64[np.ndarray, " n"], list[str]]:
    """Round raw values of a parameter for an axis, at most so many: their coordinates, and them as text.

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
    """Powers of ten in a range, at most so many; if they are few, also 2, 3 or 5 times these powers."""
    slack = 1.0 + _SAME
    exponents = range(math.floor(math.log10(lower)), math.ceil(math.log10(upper)) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5)):
        values = [float(f"{factor}e{exponent}") for exponent in exponents for factor in factors]
        inside = [value for value in values if lower / slack <= value <= upper * slack]
        if len(inside) >= min(3, most):
            break
    return inside[:: math.ceil(len(inside) / most)] if inside else []


def _multiples(lower: float, upper: float, most: int) -> list[float]:
    """Multiples of a round step in a range."""
    magnitude = 10.0 ** math.floor(math.log10((upper - lower) / most))
    for factor in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0):
        step = factor * magnitude
        slack = _SAME * (upper - lower)
        first, last = math.ceil((lower - slack) / step), math.floor((upper + slack) / step)
        if last - first < most:
            break
    return [float(f"{count * step:.12g}") for count in range(first, last + 1)]


def _written(value: float) -> str:
    """A number as text, with a power of ten if it is very small or very large."""
    if value and not 1e-3 <= abs(value) < 1e4:
        digits, exponent = f"{value:.11e}".split("e")
        factor = f"{float(digits):.12g}".replace("-", "\N{MINUS SIGN}")
        power = f"10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
        return power if factor == "1" else f"{factor}\N{MULTIPLICATION SIGN}{power}"
    return f"{value:.12g}".replace("-", "\N{MINUS SIGN}")
