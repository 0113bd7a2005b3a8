"""Figures of a prior along one parameter: the promising region, functions, and how far a value tells."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float64
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullLocator

from hyperbo.evaluation.figure_style import INK, canvas, size, svg
from hyperbo.evaluation.parameter_ticks import raw_text, ticks
from hyperbo.prior_cuts import HALF, Slices
from hyperbo.prior_view import Promising
from hyperbo.search_space import Parameter

_BLUE, _ORANGE, _GREY = "#0072b2", "#d55e00", "#80858c"
BAND = 1.96
_BINS = 30
# Numbers of proposals stand above the histogram, of height 1, one above the other.
_FIRST_RUNG, _RUNG = 1.14, 0.25
# A tick this close to the end of its axis has its label inside, away from the next panel's.
_END = 0.08


def promising_figure(name: str, promising: Promising, parameter: Parameter, axis: int) -> str:
    """Draw where along a parameter the promising points lie, with their range and the first proposals.

    Args:
      name: identifies the figure in its page.
      promising: the region.
      parameter: the parameter.
      axis: its number.
    """
    low, high = (raw_text(parameter, each) for each in promising.ranges[axis])
    best = raw_text(parameter, promising.best[axis])
    with canvas(300, 165) as figure:
        axes = figure.add_subplot()
        shares, edges = np.histogram(promising.points[:, axis], bins=_BINS, range=(0.0, 1.0))
        heights = shares / shares.max()
        axes.bar(edges[:-1], heights, np.diff(edges), align="edge", color=_BLUE, alpha=0.35, linewidth=0)
        axes.plot(promising.ranges[axis], [-0.14, -0.14], color=_BLUE, linewidth=5, solid_capstyle="butt")
        axes.plot([promising.best[axis]], [-0.14], "D", color=_ORANGE, markersize=6.5, clip_on=False)
        for number, point in enumerate(promising.proposals):
            axes.annotate(
                str(number + 1),
                (point[axis], _FIRST_RUNG + _RUNG * number),
                ha="center",
                va="center",
                fontsize=10,
                color=INK,
            )
        axes.set_ylim(-0.32, _FIRST_RUNG + _RUNG * len(promising.proposals))
        axes.yaxis.set_major_locator(NullLocator())
        axes.spines["left"].set_visible(False)
        raw_axis(axes, "x", parameter, 5)
        axes.set_xlabel(parameter.name)
        description = f"{parameter.name}: most of the promising region from {low} to {high}, best {best}"
        return svg(figure, name, description)


def slice_figure(
    name: str, slices: Slices, best: Float64[np.ndarray, " d"], parameter: Parameter, axis: int
) -> str:
    """Draw the prior along a parameter: mean, 95 % band, and functions drawn from it.

    Args:
      name: identifies the figure in its page.
      slices: along all parameters; all have the same vertical scale.
      best: the point through which they go.
      parameter: the parameter.
      axis: its number.
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
    """Draw the correlation with the value at the most promising point, and where it is more than one half.

    Args:
      name: identifies the figure in its page.
      slices: along all parameters.
      best: the point through which they go.
      parameter: the parameter.
      axis: its number.
    """
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
    """Give an axis of coordinates the raw values of its parameter."""
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
