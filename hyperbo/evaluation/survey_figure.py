"""The heat map of a survey: rank correlations between tasks."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hyperbo.evaluation.figure_style import canvas, svg

_CELL = 14  # points


def heat_map(correlations: pd.DataFrame) -> str:
    """Draw rank correlations between tasks, as an SVG element.

    Args:
      correlations: tasks by tasks; NaN is left blank.
    """
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
