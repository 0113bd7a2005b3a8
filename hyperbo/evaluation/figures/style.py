"""The style of all figures, drawn as SVG for a page: text stays text, colours suit light and dark pages.

The same numbers give the same bytes: without dates, random identifiers, or the user's matplotlib settings.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from jaxtyping import Float64
from matplotlib import style as matplotlib_style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

# The colour-blind-safe palette of Okabe and Ito, "Color Universal Design", 2008, without yellow, which is too
# pale for a line, and with grey instead of black. Dashes and markers distinguish methods without colour.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#80858c")
_DASHES = (
    (),
    (5.0, 2.0),
    (1.5, 1.5),
    (6.0, 2.0, 1.5, 2.0),
    (6.0, 2.0, 1.5, 2.0, 1.5, 2.0),
)
# Markers of matplotlib, and their outlines around the origin for legends outside of figures.
_MARKERS = {
    "o": "M-3.2,0a3.2,3.2 0 1,0 6.4,0a3.2,3.2 0 1,0 -6.4,0z",
    "s": "M-3,-3h6v6h-6z",
    "^": "M0,-3.6L3.6,3H-3.6z",
    "D": "M0,-4L4,0L0,4L-4,0z",
    "v": "M0,3.6L3.6,-3H-3.6z",
    "P": "M-1.2,-3.6h2.4v2.4h2.4v2.4h-2.4v2.4h-2.4v-2.4h-2.4v-2.4h2.4z",
    "<": "M-3.6,0L3,-3.6V3.6z",
}
# Below the strictest criterion of the profiles, the scale of regret is linear, so that zero can be drawn.
LINEAR_BELOW = 0.001

# Placeholders that are replaced by the page's own colours.
INK, RULE, PAGE = "#010203", "#040506", "#070809"
_PAGE_COLOURS = {INK: "currentColor", RULE: "var(--rule, #b8bcc4)", PAGE: "var(--page, #ffffff)"}
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "hyperbo",
    "font.size": 11.5,
    "text.parse_math": False,  # a method may have a dollar sign in its name
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": RULE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": RULE,
    "grid.alpha": 0.45,
    "grid.linewidth": 0.6,
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 2.0,
    "lines.markersize": 5.5,
    "legend.frameon": False,
}


@dataclass(frozen=True)
class LineStyle:
    """The style of a method in all figures.

    Attributes:
      colour: colour of lines and points.
      dashes: lengths of dashes and gaps; empty for a solid line.
      marker: shape of points.
      marked: whether lines show markers too, because another method has the same colour.
    """

    colour: str
    dashes: tuple[float, ...]
    marker: str
    marked: bool

    @property
    def outline(self) -> str:
        """The marker as SVG path data around the origin."""
        return _MARKERS[self.marker]


Styles = Mapping[str, LineStyle]


def line_styles(methods: Sequence[str]) -> dict[str, LineStyle]:
    """A style for each method; up to 35 methods can be told apart by colour and dashes."""
    markers, rounds = tuple(_MARKERS), len(_COLOURS)
    return {
        method: LineStyle(
            _COLOURS[i % rounds],
            _DASHES[(i + 2 * (i // rounds)) % len(_DASHES)],
            # Shifted in each round: two methods of one colour have different points.
            markers[(i + i // rounds) % len(markers)],
            i >= rounds,
        )
        for i, method in enumerate(methods)
    }


@contextmanager
def canvas(width: int, height: int) -> Iterator[Figure]:
    """An empty figure with the project's settings; width and height are in points, 72 to the inch."""
    with matplotlib_style.context("default", after_reset=True), mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(width / 72, height / 72), layout="constrained")
        FigureCanvasSVG(figure)
        figure.patch.set_visible(False)
        yield figure


def size(labels: Sequence[str], small: bool = False) -> tuple[int, int]:
    """Width and height in points of a figure with a legend of these labels, or of a small one without."""
    # As narrow as a phone, so that text stays readable there.
    return (300, 190) if small else (360, 240 + 18 * -(-len(labels) // _legend_columns(labels)))


def _legend_columns(labels: Sequence[str]) -> int:
    longest = max(map(len, labels))
    return max(1, min(4, 350 // (46 + 6 * longest)))


def draw_legend(figure: Figure, labels: Sequence[str]) -> None:
    """Draw the legend below a figure, in as many columns as fit."""
    handles, drawn = figure.axes[0].get_legend_handles_labels()
    if drawn:
        columns = _legend_columns(labels)
        figure.legend(
            handles,
            drawn,
            loc="outside lower center",
            ncols=columns,
            handlelength=2.4,
            columnspacing=1.0,
            fontsize=11,
        )


def draw_line(
    axes: Axes,
    x: Float64[np.ndarray, " n"],
    middle: Float64[np.ndarray, " n"],
    method: str,
    style: LineStyle,
    band: tuple[Float64[np.ndarray, " n"], Float64[np.ndarray, " n"]] | None = None,
    *,
    faint: bool = False,
) -> None:
    """Draw a method's line and its band; a faint band if many overlap."""
    pattern = (0, style.dashes) if style.dashes else "solid"
    alone = len(middle) == 1  # a line of one point would be invisible
    axes.plot(
        x,
        middle,
        color=style.colour,
        linestyle=pattern,
        marker=style.marker if style.marked or alone else "",
        markevery=max(1, len(middle) // 6),
        label=method,
    )
    if band is not None:
        axes.fill_between(x, *band, color=style.colour, alpha=0.07 if faint else 0.16, linewidth=0)
    axes.patch.set_visible(False)


def regret_axis(axes: Axes, top: float, *, of: Literal["x", "y"] = "y") -> None:
    """Set the scale of regret on an axis: logarithmic, but linear between zero and `LINEAR_BELOW`."""
    highest = max(top * 1.15, LINEAR_BELOW)
    decades = int(np.ceil(np.log10(highest / LINEAR_BELOW)))
    # At most about five labels.
    powers = LINEAR_BELOW * 10.0 ** np.arange(0, decades + 1, max(1, -(-decades // 5)))
    limits = (-LINEAR_BELOW * 0.15, highest)
    if of == "x":
        axes.set_xscale("symlog", linthresh=LINEAR_BELOW, linscale=0.4)
        axes.set_xlim(*limits)
    else:
        axes.set_yscale("symlog", linthresh=LINEAR_BELOW, linscale=0.4)
        axes.set_ylim(*limits)
    axis = axes.xaxis if of == "x" else axes.yaxis
    axis.set_major_locator(FixedLocator([0.0, *powers]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda regret, _: f"{regret:g}"))


def iteration_axis(axes: Axes, iterations: int) -> None:
    """Set the horizontal axis to iterations, from 1 to the last."""
    axes.set_xlim(1 - 0.01 * iterations, iterations + 0.01 * iterations)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.set_xlabel("iteration")


def svg(figure: Figure, name: str, description: str) -> str:
    """A figure of `canvas` as an SVG element; the description is for readers who cannot see it."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]  # without the prologue of a file
    # Several figures share a page, so identifiers must differ.
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\1{name}-", text)
    # A style element would affect the whole page; the page sets the same style.
    text = re.sub(r"<style\b.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'^(<svg[^>]*?) height="[^"]*"', r"\1", text)
    text = re.sub(r'^(<svg[^>]*?) width="[^"]*"', r"\1", text)
    for stand_in, colour in _PAGE_COLOURS.items():
        text = text.replace(stand_in, colour)
    label = description.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
