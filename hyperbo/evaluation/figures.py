"""Figures of an evaluation as SVG text, to stand in a page: text as text, colours for light and dark.

The same numbers give the same bytes: no date, no random identifiers, none of the user's matplotlib settings.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from jaxtyping import Float64
from matplotlib import style as matplotlib_style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from hyperbo.evaluation.ranks import Ranks
from hyperbo.evaluation.spread import Band

# Okabe and Ito's palette without its yellow, too pale for a line, and with a grey for its black.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#80858c")
_DASHES = (
    (),
    (5.0, 2.0),
    (1.5, 1.5),
    (6.0, 2.0, 1.5, 2.0),
    (6.0, 2.0, 1.5, 2.0, 1.5, 2.0),
)
# Below the strictest criterion of the profiles the scale of regret is linear, so that zero can be drawn.
LINEAR_BELOW = 0.001

# Stand-ins that become the page's own colours.
_INK, _RULE = "#010203", "#040506"
_PAGE_COLOURS = {_INK: "currentColor", _RULE: "var(--rule, #b8bcc4)"}
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "hyperbo",
    "font.size": 11.5,
    "text.parse_math": False,  # a method may have a dollar sign in its name
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _RULE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": _RULE,
    "grid.alpha": 0.45,
    "grid.linewidth": 0.6,
    "xtick.color": _RULE,
    "ytick.color": _RULE,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "lines.linewidth": 2.0,
    "legend.frameon": False,
}


@dataclass(frozen=True)
class LineStyle:
    """How a method is drawn, in every figure alike."""

    colour: str
    dashes: tuple[float, ...]


def line_styles(methods: Sequence[str]) -> dict[str, LineStyle]:
    """Give each method a colour and a dash pattern; no two methods share both, up to 35."""
    return {
        method: LineStyle(_COLOURS[i % len(_COLOURS)], _DASHES[(i + 2 * (i // len(_COLOURS))) % len(_DASHES)])
        for i, method in enumerate(methods)
    }


def regret_figure(
    name: str,
    curves: Band,
    methods: Sequence[str],
    styles: Mapping[str, LineStyle],
    *,
    limit: float | None = None,
    small: bool = False,
) -> str:
    """Draw regret curves with their bands.

    Args:
      name: identifies the figure in its page.
      curves: bands of shape (methods, iterations); a method that is NaN throughout is not drawn.
      methods: the rows of the bands.
      styles: how to draw each method.
      limit: top of the regret axis, for figures that are to be compared.
      small: one of many: a smaller figure without a legend.
    """
    with _canvas(_size(len(methods), small)) as figure:
        axes = figure.add_subplot()
        for row, method in enumerate(methods):
            if np.isnan(curves.median[row]).all():
                continue
            _line(axes, curves.median[row], curves.lower[row], curves.upper[row], method, styles[method])
        top = float(np.nanmax(curves.upper)) if limit is None else limit
        _regret_axis(axes, top)
        axes.set_ylabel("simple regret" if small else "mean simple regret")
        _iteration_axis(axes, curves.median.shape[1])
        if not small:
            _legend(figure)
        return _svg(figure, name, f"Simple regret by iteration of {', '.join(methods)}")


def profile_figure(
    name: str,
    profiles: Float64[np.ndarray, "methods iterations"],
    methods: Sequence[str],
    styles: Mapping[str, LineStyle],
    criterion: float,
) -> str:
    """Draw a performance profile, the share of (task, seed) solved, for one criterion."""
    with _canvas(_size(len(methods))) as figure:
        axes = figure.add_subplot()
        for row, method in enumerate(methods):
            _line(axes, profiles[row], None, None, method, styles[method])
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0%}"))
        axes.set_ylabel(f"runs with regret < {criterion:g}")
        _iteration_axis(axes, profiles.shape[1])
        _legend(figure)
        return _svg(figure, name, f"Share of runs with regret below {criterion:g} by iteration")


def rank_figure(name: str, ranks: Ranks, methods: Sequence[str], styles: Mapping[str, LineStyle]) -> str:
    """Draw mean ranks with one standard deviation to either side; rank 1 on top."""
    with _canvas(_size(len(methods))) as figure:
        axes = figure.add_subplot()
        std = np.nan_to_num(ranks.std)  # a single seed has none: no band is drawn
        for row, method in enumerate(methods):
            mean = ranks.mean[row]
            _line(axes, mean, mean - std[row], mean + std[row], method, styles[method])
        axes.set_ylim(len(methods) + 0.5, 0.5)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylabel("rank (1 is best)")
        _iteration_axis(axes, ranks.mean.shape[1])
        _legend(figure)
        return _svg(figure, name, f"Mean rank by iteration of {', '.join(methods)}")


def _size(methods: int, small: bool = False) -> tuple[int, int]:
    # Drawn narrow, at the width of a phone, so that text needs no shrinking there.
    return (300, 190) if small else (360, 240 + 18 * -(-methods // 4))


@contextmanager
def _canvas(size: tuple[int, int]) -> Iterator[Figure]:
    with matplotlib_style.context("default", after_reset=True), mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(size[0] / 72, size[1] / 72), layout="constrained")
        FigureCanvasSVG(figure)
        figure.patch.set_visible(False)
        yield figure


def _line(
    axes: Axes,
    middle: Float64[np.ndarray, " iterations"],
    lower: Float64[np.ndarray, " iterations"] | None,
    upper: Float64[np.ndarray, " iterations"] | None,
    method: str,
    style: LineStyle,
) -> None:
    iterations = np.arange(1, len(middle) + 1)
    pattern = (0, style.dashes) if style.dashes else "solid"
    marker = "o" if len(middle) == 1 else ""  # a line of one point would not be seen
    axes.plot(iterations, middle, color=style.colour, linestyle=pattern, marker=marker, label=method)
    if lower is not None and upper is not None:
        axes.fill_between(iterations, lower, upper, color=style.colour, alpha=0.16, linewidth=0)
    axes.patch.set_visible(False)


def _regret_axis(axes: Axes, top: float) -> None:
    highest = max(top * 1.15, LINEAR_BELOW)
    axes.set_yscale("symlog", linthresh=LINEAR_BELOW, linscale=0.4)
    decades = int(np.ceil(np.log10(highest / LINEAR_BELOW)))
    # At most about five labels, however many orders of magnitude there are.
    powers = LINEAR_BELOW * 10.0 ** np.arange(0, decades + 1, max(1, -(-decades // 5)))
    axes.yaxis.set_major_locator(FixedLocator([0.0, *powers]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda regret, _: f"{regret:g}"))
    axes.set_ylim(-LINEAR_BELOW * 0.15, highest)


def _iteration_axis(axes: Axes, iterations: int) -> None:
    axes.set_xlim(1 - 0.01 * iterations, iterations + 0.01 * iterations)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.set_xlabel("iteration")


def _legend(figure: Figure) -> None:
    figure.legend(loc="outside lower center", ncols=4, handlelength=2.2, columnspacing=1.0, fontsize=11)


def _svg(figure: Figure, name: str, description: str) -> str:
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]  # a page has its own prologue
    # Several figures share a page, so identifiers must not meet.
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\1{name}-", svg)
    # A style element would reach beyond its figure; the page sets what this one says.
    svg = re.sub(r"<style\b.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'^(<svg[^>]*?) height="[^"]*"', r"\1", svg)
    svg = re.sub(r'^(<svg[^>]*?) width="[^"]*"', r"\1", svg)
    for stand_in, colour in _PAGE_COLOURS.items():
        svg = svg.replace(stand_in, colour)
    label = description.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
