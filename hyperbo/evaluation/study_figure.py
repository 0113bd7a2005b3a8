"""The figure of a study: regret after the last iteration against the quantity that is varied."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from hyperbo.evaluation.figure_style import (
    LineStyle,
    canvas,
    draw_legend,
    draw_line,
    line_styles,
    regret_axis,
    size,
    svg,
)
from hyperbo.evaluation.study import StudyPoint

# From this ratio of the largest to the smallest on, a quantity is drawn on a logarithmic axis.
_LOGARITHMIC_FROM = 20.0


def study_figure(name: str, points: Sequence[StudyPoint]) -> str:
    """Draw the median regret of every series with its 20/80 percentiles, as in figure "p-remove".

    A series whose quantity is a number is a line, one whose quantity is a name a row of points; references
    that do not vary are horizontal lines.

    Args:
      name: identifies the figure in its page.
      points: of the study, one at least.
    """
    quantity = points[0].quantity
    series = list(dict.fromkeys(point.series for point in points))
    styles = line_styles(series)
    drawn = [point for point in points if not point.missing]
    numbers = sorted({point.at for point in points if isinstance(point.at, int | float)})
    names = list(dict.fromkeys(point.at for point in points if isinstance(point.at, str)))
    width, height = size(series)
    with canvas(width, height + (40 if names else 0)) as figure:
        axes = figure.add_subplot()
        for row, label in enumerate(series):
            own = [point for point in drawn if point.series == label]
            _draw_references(axes, [point for point in own if point.at is None], styles[label])
            _draw_numbers(axes, [point for point in own if isinstance(point.at, int | float)], styles[label])
            # The series of one name stand beside each other.
            shift = 0.12 * (row - (len(series) - 1) / 2)
            named = [point for point in own if isinstance(point.at, str)]
            _draw_names(axes, named, styles[label], names, shift)
        axes.patch.set_visible(False)
        regret_axis(axes, max((point.upper for point in drawn), default=1.0))
        axes.set_ylabel("mean simple regret")
        if names:
            axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
        else:
            axes.set_xlabel(quantity)
            if numbers and numbers[-1] >= _LOGARITHMIC_FROM * numbers[0] > 0:
                axes.set_xscale("log")
            axes.set_xticks(numbers, [f"{at:g}" for at in numbers])
            axes.set_xticks([], minor=True)
        draw_legend(figure, series)
        return svg(figure, name, f"Simple regret by {quantity} of {', '.join(series)}")


def _draw_references(axes: Axes, points: Sequence[StudyPoint], style: LineStyle) -> None:
    pattern = (0, style.dashes) if style.dashes else "solid"
    for point in points:
        axes.axhline(point.median, color=style.colour, linestyle=pattern, label=point.series)
        axes.axhspan(point.lower, point.upper, color=style.colour, alpha=0.07, linewidth=0)


def _draw_numbers(axes: Axes, points: Sequence[StudyPoint], style: LineStyle) -> None:
    if not points:
        return
    ordered = sorted((float(point.at or 0), point.median, point.lower, point.upper) for point in points)
    x, median, lower, upper = np.array(ordered).T
    draw_line(axes, x, median, points[0].series, style, (lower, upper))
    axes.plot(x, median, style.marker, color=style.colour)


def _draw_names(
    axes: Axes, points: Sequence[StudyPoint], style: LineStyle, names: Sequence[str], shift: float
) -> None:
    if not points:
        return
    x = [names.index(str(point.at)) + shift for point in points]
    lower, upper = [point.lower for point in points], [point.upper for point in points]
    axes.vlines(x, lower, upper, color=style.colour, alpha=0.5)
    medians = [point.median for point in points]
    axes.plot(x, medians, style.marker, color=style.colour, label=points[0].series)
