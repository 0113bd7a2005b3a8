"""Figures behind the regret: calibration, correlations of losses, studies, correlations between tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from hyperbo.evaluation.figures.style import (
    INK,
    LineStyle,
    Styles,
    canvas,
    draw_legend,
    draw_line,
    line_styles,
    regret_axis,
    size,
    svg,
)
from hyperbo.evaluation.measures.calibration import CURVE_LEVELS, Calibration
from hyperbo.evaluation.measures.correlations import Correlation, quantity_name
from hyperbo.evaluation.measures.study import StudyPoint

# If largest / smallest is at least this ratio, the axis is logarithmic.
_LOGARITHMIC_FROM = 20.0
_CELL = 14  # points
# Ticks that are nearer to each other, as a share of the axis, have labels that touch.
_TOUCHING = 0.08


def calibration_figure(name: str, calibrations: Sequence[Calibration], styles: Styles) -> str:
    """Draw the share of observations within central intervals against the nominal share."""
    methods = [each.method for each in calibrations]
    with canvas(*size(methods)) as figure:
        axes = figure.add_subplot()
        for each in calibrations:
            draw_line(axes, np.array(CURVE_LEVELS), each.curve, each.method, styles[each.method])
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0%}"))
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("nominal share of the interval")
        axes.set_ylabel("observations within it")
        draw_legend(figure, methods)
        return svg(figure, name, "Observed against nominal coverage of central predictive intervals")


def correlation_figure(name: str, correlation: Correlation, methods: Sequence[str], styles: Styles) -> str:
    """Draw one quantity against another, with a point for each method and seed."""
    drawn = [i for i in range(len(methods)) if np.isfinite(correlation.x_values[i]).any()]
    labels = [methods[i] for i in drawn]
    with canvas(*size(labels)) as figure:
        axes = figure.add_subplot()
        for i in drawn:
            style = styles[methods[i]]
            axes.plot(
                correlation.x_values[i],
                correlation.y_values[i],
                style.marker,
                color=style.colour,
                fillstyle="none" if style.marked else "full",
                label=methods[i],
            )
        axes.patch.set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.set_xlabel(quantity_name(correlation.x))
        axes.set_ylabel(quantity_name(correlation.y))
        draw_legend(figure, labels)
        return svg(figure, name, f"{quantity_name(correlation.y)} against {quantity_name(correlation.x)}")


def study_figure(name: str, points: Sequence[StudyPoint]) -> str:
    """Draw the median regret of every series with its 20/80 percentiles, as in Figure 11 (p-remove).

    A series over numbers is a line, a series over names is a row of points, and a reference that does not
    vary is a horizontal line. There is at least one point.
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
            # Points of different series at one name are drawn side by side.
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
            axes.set_xticks(numbers, _apart(numbers, axes.get_xscale() == "log"))
            axes.set_xticks([], minor=True)
        draw_legend(figure, series)
        return svg(figure, name, f"Simple regret by {quantity} of {', '.join(series)}")


def _apart(numbers: Sequence[int | float], logarithmic: bool) -> list[str]:
    """Labels of ascending numbers on an axis; one is empty where the next would touch it."""
    if not numbers:
        return []
    places = np.log10(numbers) if logarithmic else np.array(numbers, np.float64)
    gaps = np.append(np.diff(places), np.inf)
    gaps /= places[-1] - places[0] if len(places) > 1 else 1.0
    return [f"{at:g}" if gap > _TOUCHING else "" for at, gap in zip(numbers, gaps, strict=True)]


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


def heat_map(correlations: pd.DataFrame) -> str:
    """Draw rank correlations, tasks by tasks, as an SVG element; NaN is left blank."""
    names = list(correlations.index)
    side = 150 + _CELL * len(names)
    with canvas(side + 60, side) as figure:
        axes = figure.add_subplot()
        lowest = min(0.0, _smallest(correlations))
        drawn = axes.imshow(correlations.to_numpy(), cmap="cividis", vmin=lowest, vmax=1.0)
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        axes.set_yticks(range(len(names)), names, fontsize=7)
        axes.grid(visible=False)
        bar = figure.colorbar(drawn, shrink=0.6)
        bar.set_label("Spearman's correlation of y")
        return svg(figure, "rank-correlations", f"Rank correlations between {len(names)} tasks")


def _smallest(correlations: pd.DataFrame) -> float:
    values = correlations.to_numpy()
    return float(np.nanmin(values)) if np.isfinite(values).any() else 0.0
