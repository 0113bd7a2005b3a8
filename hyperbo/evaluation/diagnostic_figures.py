"""Figures of what lies behind regret: calibration of predictions, correlations of losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from hyperbo.evaluation.calibration import CURVE_LEVELS, Calibration
from hyperbo.evaluation.figure_style import INK, Styles, canvas, draw_legend, draw_line, size, svg
from hyperbo.evaluation.losses import Correlation, quantity_name


def calibration_figure(name: str, calibrations: Sequence[Calibration], styles: Styles) -> str:
    """Draw the share of observations within central intervals against the nominal share.

    Args:
      name: identifies the figure in its page.
      calibrations: one for each method that has predictions.
      styles: how to draw each method.
    """
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
    """Draw one quantity against another, a point for each method and seed.

    Args:
      name: identifies the figure in its page.
      correlation: the quantities.
      methods: the rows of its values.
      styles: how to draw each method.
    """
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
