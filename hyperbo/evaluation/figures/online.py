"""The figure of an online comparison: the best validation error so far, by iteration, on one task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float64
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from hyperbo.bayesopt.online import best_so_far
from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.figures.style import Styles, canvas, draw_legend, draw_line, iteration_axis, size, svg
from hyperbo.evaluation.measures.spread import percentile_band


def best_by_seed(
    records: pd.DataFrame, method: str, task: str, iterations: int
) -> Float64[np.ndarray, "seeds iterations"]:
    """The best error so far of a method's runs on one task; infinite before the first feasible trial.

    A run that ended early keeps its last value.
    """
    chosen = records[(records["method"] == method) & (records["task"] == task)]
    best = best_so_far(chosen).pivot(index="seed", columns="iteration", values="best")
    filled = best.reindex(columns=range(1, iterations + 1)).ffill(axis=1)
    return filled.fillna(np.inf).to_numpy(np.float64)


def online_figure(name: str, records: pd.DataFrame, task: str, methods: Sequence[str], styles: Styles) -> str:
    """Draw the best validation error so far: median and 20/80 percentile over seeds, Figure 14 (online).

    A median or percentile is drawn from the iteration on at which enough seeds have a feasible trial.

    Args:
      name: identifies the figure in its page.
      records: of `hyperbo.bayesopt.online.online_records`.
      task: the task.
      methods: the methods; each has a trial on the task.
      styles: line style of each method.

    Raises:
      InvalidInputError: the records hold no trial on the task.
    """
    of_task = records[records["task"] == task]
    if of_task.empty:
        raise InvalidInputError(
            f"no trial of task {task!r}", fix=f"use one of {', '.join(sorted(set(records['task'])))}"
        )
    iterations = int(of_task["iteration"].max())
    with canvas(*size(methods)) as figure:
        axes = figure.add_subplot()
        for method in methods:
            # Interpolation with infinities gives NaN or infinity; neither is drawn.
            with np.errstate(invalid="ignore"):
                band = percentile_band(best_by_seed(records, method, task, iterations), axis=0)
            median, lower, upper = (
                np.where(np.isfinite(level), level, np.nan) for level in (band.median, band.lower, band.upper)
            )
            at = np.arange(1.0, iterations + 1)
            draw_line(axes, at, median, method, styles[method], (lower, upper))
        axes.set_ylabel("best validation error so far")
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda error, _: f"{error:g}"))
        axes.set_title(task, fontsize=11)
        iteration_axis(axes, iterations)
        draw_legend(figure, methods)
        return svg(figure, name, f"Best validation error so far on {task} of {', '.join(methods)}")
