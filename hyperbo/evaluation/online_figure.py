"""The figure of an online comparison: best validation error so far by iteration, one per task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float64
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.figure_style import Styles, canvas, draw_legend, draw_line, iteration_axis, size, svg
from hyperbo.evaluation.spread import percentile_band
from hyperbo.online.records import best_so_far


def best_by_seed(
    records: pd.DataFrame, method: str, task: str, iterations: int
) -> Float64[np.ndarray, "seeds iterations"]:
    """The best error so far of a method's runs of one task; infinite while all trials were infeasible.

    A run that ended early keeps its last value.
    """
    chosen = records[(records["method"] == method) & (records["task"] == task)]
    best = best_so_far(chosen).pivot(index="seed", columns="iteration", values="best")
    filled = best.reindex(columns=range(1, iterations + 1)).ffill(axis=1)
    return filled.fillna(np.inf).to_numpy(np.float64)


def online_figure(name: str, records: pd.DataFrame, task: str, methods: Sequence[str], styles: Styles) -> str:
    """Draw the best validation error so far: median and 20/80 percentile over seeds, as figure "online".

    A median or percentile begins where it is finite: where enough of the seeds have a feasible trial.

    Args:
      name: identifies the figure in its page.
      records: as `hyperbo.online.records.online_records` makes them.
      task: the task drawn.
      methods: those drawn, of which each has a trial of the task.
      styles: how to draw each method.

    Raises:
      InvalidInputError: the records hold no trial of the task.
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
            # Percentiles between infinities are not numbers, and between a number and one infinite.
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
