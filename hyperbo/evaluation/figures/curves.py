"""Figures of regret: curves, slices of them, performance profiles, ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from hyperbo.evaluation.figures.style import (
    INK,
    PAGE,
    RULE,
    Styles,
    canvas,
    draw_legend,
    draw_line,
    iteration_axis,
    regret_axis,
    size,
    svg,
)
from hyperbo.evaluation.measures.aggregates import Ranks
from hyperbo.evaluation.measures.spread import Band, percentile_band
from hyperbo.evaluation.measures.verdict import Pace, Verdict, spans_of, times

_FEW = 6


def regret_figure(
    name: str,
    curves: Band,
    methods: Sequence[str],
    styles: Styles,
    *,
    limit: float | None = None,
    small: bool = False,
) -> str:
    """Draw regret curves with their bands, of shape (methods, iterations); a method of NaN is not drawn.

    Args:
      name: identifies the figure in its page.
      curves: the bands.
      methods: names of the rows of the bands.
      styles: line style of each method.
      limit: top of the regret axis, to give several figures the same scale.
      small: whether to draw a smaller figure without a legend.
    """
    iterations, many = _iterations(curves.median), len(methods) > _FEW
    with canvas(*size(methods, small)) as figure:
        axes = figure.add_subplot()
        for row, method in enumerate(methods):
            if not np.isnan(curves.median[row]).all():
                band = curves.lower[row], curves.upper[row]
                draw_line(axes, iterations, curves.median[row], method, styles[method], band, faint=many)
        regret_axis(axes, float(np.nanmax(curves.upper)) if limit is None else limit)
        axes.set_ylabel("simple regret" if small else "mean simple regret")
        iteration_axis(axes, len(iterations))
        if not small:
            draw_legend(figure, methods)
        return svg(figure, name, f"Simple regret by iteration of {', '.join(methods)}")


def verdict_figure(name: str, curves: Band, methods: Sequence[str], styles: Styles, verdict: Verdict) -> str:
    """Draw the regret of the two methods of a verdict, that of the others faintly, and what is sooner.

    An arrow leads, at the final regret of one of the two, from the iteration in which it gets there to that
    in which the other one does. A strip on the horizontal axis has the colour of the one that is ahead.

    Args:
      name: identifies the figure in its page.
      curves: bands of shape (methods, iterations).
      methods: names of the rows of the bands.
      styles: line style of each method.
      verdict: two of the methods, compared.
    """
    two, iterations = (verdict.method, verdict.rival), _iterations(curves.median)
    shown = methods if len(methods) <= _FEW else two
    with canvas(*size(shown)) as figure:
        axes = figure.add_subplot()
        for method in two:
            row = methods.index(method)
            band = curves.lower[row], curves.upper[row]
            draw_line(axes, iterations, curves.median[row], method, styles[method], band)
        for row, method in enumerate(methods):
            if method not in two:
                axes.plot(
                    iterations,
                    curves.median[row],
                    color=styles[method].colour,
                    linestyle=(0, styles[method].dashes) if styles[method].dashes else "solid",
                    linewidth=1.0,
                    alpha=0.6,
                    zorder=1.9,  # below the two
                    label=method if method in shown else None,
                )
        for after, colour in (
            (range(1, verdict.iterations + 1), RULE),
            (verdict.ahead_after, styles[verdict.method].colour),
            (verdict.behind_after, styles[verdict.rival].colour),
        ):
            axes.broken_barh(
                [(first - 0.5, last - first + 1.0) for first, last in spans_of(after)],
                (0.0, 0.022),
                facecolors=colour,
                transform=axes.get_xaxis_transform(),
                zorder=3,
            )
        _draw_pace(axes, verdict.pace)
        regret_axis(axes, float(np.nanmax(curves.upper)))
        axes.set_ylabel("mean simple regret")
        iteration_axis(axes, len(iterations))
        draw_legend(figure, shown)
        return svg(figure, name, f"Simple regret by iteration of {', '.join(methods)}. {verdict.sentence}")


def _draw_pace(axes: Axes, pace: Pace) -> None:
    """Draw the arrow between the two iterations, with their ratio; nothing where there is no such ratio."""
    if pace.ratio in (0.0, 1.0):
        return
    # Nearer to the end of the arrow, where the curve of the one that is sooner is further below.
    between = 0.3 * pace.iterations + 0.7 * pace.other_iterations
    axes.annotate(
        "",
        (pace.iterations, pace.regret),
        (pace.other_iterations, pace.regret),
        arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0},
    )
    axes.annotate(
        times(pace.ratio),
        (between, pace.regret),
        (0, -4),
        textcoords="offset points",
        ha="center",
        va="top",
        color=INK,
        bbox={"facecolor": PAGE, "edgecolor": "none", "alpha": 0.8, "pad": 1.0},
    )


def slice_figure(
    name: str,
    per_seed: Float64[np.ndarray, "methods seeds"],
    methods: Sequence[str],
    styles: Styles,
    iteration: int,
) -> str:
    """Draw the mean regret of every seed after one iteration, with median and 20/80 percentile.

    A vertical slice of the regret curves, as in Figure 8 (hold-out-related-summary). It shows points, because
    five seeds are too few to draw a distribution.
    """
    band = percentile_band(per_seed, axis=1)
    with canvas(360, 70 + 20 * len(methods)) as figure:
        axes = figure.add_subplot()
        for row, method in enumerate(methods):
            place = np.full(per_seed.shape[1], float(row))
            axes.plot([band.lower[row], band.upper[row]], [row, row], color=styles[method].colour, alpha=0.45)
            axes.plot(per_seed[row], place, styles[method].marker, color=styles[method].colour, alpha=0.8)
            axes.plot([band.median[row]], [row], "|", color=INK, markersize=13)
        axes.set_yticks(range(len(methods)), methods)
        axes.set_ylim(len(methods) - 0.5, -0.5)
        axes.patch.set_visible(False)
        regret_axis(axes, float(per_seed.max()), of="x")
        axes.set_xlabel(f"mean simple regret after iteration {iteration}")
        return svg(figure, name, f"Mean simple regret of each seed after iteration {iteration}")


def profile_figure(
    name: str,
    profiles: Float64[np.ndarray, "methods iterations"],
    methods: Sequence[str],
    styles: Styles,
    criterion: float,
) -> str:
    """Draw a performance profile: the share of runs with regret below one criterion, by iteration."""
    iterations = _iterations(profiles)
    with canvas(*size(methods)) as figure:
        axes = figure.add_subplot()
        for row, method in enumerate(methods):
            draw_line(axes, iterations, profiles[row], method, styles[method])
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0%}"))
        axes.set_ylabel(f"runs with regret < {criterion:g}")
        iteration_axis(axes, len(iterations))
        draw_legend(figure, methods)
        return svg(figure, name, f"Share of runs with regret below {criterion:g} by iteration")


def rank_figure(name: str, ranks: Ranks, methods: Sequence[str], styles: Styles) -> str:
    """Draw mean ranks, plus and minus one standard deviation; rank 1 is on top."""
    iterations, many = _iterations(ranks.mean), len(methods) > _FEW
    with canvas(*size(methods)) as figure:
        axes = figure.add_subplot()
        std = np.nan_to_num(ranks.std)  # NaN with a single seed: no band is drawn
        for row, method in enumerate(methods):
            mean = ranks.mean[row]
            band = mean - std[row], mean + std[row]
            draw_line(axes, iterations, mean, method, styles[method], band, faint=many)
        axes.set_ylim(len(methods) + 0.5, 0.5)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylabel("rank (1 is best)")
        iteration_axis(axes, len(iterations))
        draw_legend(figure, methods)
        return svg(figure, name, f"Mean rank by iteration of {', '.join(methods)}")


def _iterations(values: Float64[np.ndarray, "methods iterations"]) -> Float64[np.ndarray, " iterations"]:
    return np.arange(1.0, values.shape[1] + 1)
