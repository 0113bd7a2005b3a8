"""The figure of a prior over pairs of parameters: means below the diagonal, deviations above it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from hyperbo.data.parameter import Parameter
from hyperbo.evaluation.figures.prior import raw_axis
from hyperbo.evaluation.figures.style import canvas, svg
from hyperbo.evaluation.prior.cuts import Planes

# Both are ordered for colour-blind readers and in shades of grey.
MEAN_COLOURS, DEVIATION_COLOURS = "viridis", "cividis"
_LEVELS = 7
# Margins of the matrix in points: left, top, right, and bottom with the colour bars.
_LEFT, _TOP, _RIGHT, _BOTTOM = 74, 8, 14, 106
_GAP = 0.08


def matrix_figure(
    name: str, planes: Planes, best: Float64[np.ndarray, " d"], columns: Sequence[Parameter]
) -> tuple[str, int]:
    """Draw the planes through the point `best` as one matrix: means below the diagonal, deviations above it.

    Returns:
      The figure, and the width at which its text has the size of a caption.
    """
    shown = sorted({column for pair in planes.pairs for column in pair})
    count, parameters = len(shown), [columns[column] for column in shown]
    panel = max(84, 150 - 10 * count)
    inside = panel * count
    width, height = _LEFT + inside + _RIGHT, _TOP + inside + _BOTTOM
    with canvas(width, height) as figure:
        figure.set_layout_engine("none")
        grid = figure.add_gridspec(
            count,
            count,
            left=_LEFT / width,
            right=1.0 - _RIGHT / width,
            top=1.0 - _TOP / height,
            bottom=_BOTTOM / height,
            wspace=_GAP,
            hspace=_GAP,
        )
        panels = [[figure.add_subplot(grid[row, column]) for column in range(count)] for row in range(count)]
        images = {}
        for (first, second), mean, deviation in zip(planes.pairs, planes.mean, planes.deviation, strict=True):
            row, column = shown.index(second), shown.index(first)
            images["mean"] = _plane(
                panels[row][column], mean, planes.mean, MEAN_COLOURS, best[[first, second]]
            )
            images["deviation"] = _plane(
                panels[column][row], deviation.T, planes.deviation, DEVIATION_COLOURS, best[[second, first]]
            )
        for row in range(count):
            for column in range(count):
                axes = panels[row][column]
                if row == column:
                    _name_panel(axes, parameters[row].name)
                raw_axis(axes, "x", parameters[column], 3, labelled=row == count - 1)
                raw_axis(axes, "y", parameters[row], 3, labelled=column == 0)
            panels[row][0].set_ylabel(_wrapped(parameters[row].name), fontsize=9)
            panels[-1][row].set_xlabel(_wrapped(parameters[row].name), fontsize=9)
        # Two colour bars of equal length, side by side below the matrix.
        half = (inside - 24) / 2
        said = ("standard deviation", "after one trial at \N{WHITE DIAMOND}" if planes.after_trial else "")
        labels = {"mean": "prior mean", "deviation": " ".join(said).strip()}
        for number, (what, image) in enumerate(images.items()):
            left = (_LEFT + number * (half + 24)) / width
            bar = figure.colorbar(
                image,
                cax=figure.add_axes((left, 38 / height, half / width, 9 / height)),
                orientation="horizontal",
                ticks=MaxNLocator(4),
            )
            bar.outline.set_visible(False)
            bar.ax.tick_params(labelsize=9)
            bar.set_label(labels[what], fontsize=10)
        names = ", ".join(each.name for each in parameters)
        description = (
            f"Prior mean over each pair of {names}, from {planes.mean.min():.2f} to "
            f"{planes.mean.max():.2f}; standard deviation from {planes.deviation.min():.2f} to "
            f"{planes.deviation.max():.2f}"
        )
        return svg(figure, name, description), width


def _plane(
    axes: Axes,
    values: Float64[np.ndarray, "c c"],
    of_all: Float64[np.ndarray, "p c c"],
    colours: str,
    best: Float64[np.ndarray, " d"],
) -> AxesImage:
    lowest, highest = of_all.min(), of_all.max()
    image = axes.imshow(
        values,
        origin="lower",
        extent=(0.0, 1.0, 0.0, 1.0),
        aspect="auto",
        cmap=colours,
        vmin=lowest,
        vmax=highest,
        # As pixels that the browser enlarges: a shape for each cell would make a large page.
        interpolation="none",
    )
    levels = [each for each in MaxNLocator(_LEVELS).tick_values(lowest, highest) if lowest < each < highest]
    if values.max() > values.min() and levels:
        at = np.linspace(0.0, 1.0, len(values))
        # White lines on dark colours, black lines on light ones.
        shades = ["white" if level < (lowest + highest) / 2 else "black" for level in levels]
        axes.contour(
            at, at, values, levels=levels, colors=shades, linewidths=0.6, alpha=0.6, linestyles="solid"
        )
    axes.plot(*best[:, None], "D", color="white", markeredgecolor="black", markersize=5, clip_on=False)
    return image


def _name_panel(axes: Axes, name: str) -> None:
    axes.text(0.5, 0.5, _wrapped(name), ha="center", va="center", fontsize=10, transform=axes.transAxes)
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.patch.set_visible(False)


def _wrapped(name: str) -> str:
    """A name broken at underscores into lines of about a dozen letters."""
    lines = [""]
    for part in name.replace("_", "_ ").split(" "):
        if lines[-1] and len(lines[-1]) + len(part) > 12:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)
