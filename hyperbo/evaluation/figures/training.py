"""The figure of a prior's training: its loss along the steps."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import MaxNLocator

from hyperbo.evaluation.figures.style import canvas, size, svg
from hyperbo.priors.file import PriorDescription

_BLUE = "#0072b2"
# The first losses, in this share of the training, may be so large that the others would look equal.
_FIRST = 0.05


def training_figure(name: str, description: PriorDescription) -> str:
    """Draw the training loss of a prior; the largest losses, those of the beginning, are cut off."""
    losses = np.array(description.losses)
    # NLL has one loss per call of many steps; L-BFGS one before each iteration, and the last one.
    per_loss = description.training.get("steps_per_call", 0)
    at = np.arange(1, len(losses) + 1) * per_loss if per_loss else np.arange(len(losses))
    shown = losses[int(_FIRST * len(losses)) :]
    margin = 0.05 * max(float(np.ptp(shown)), 1e-6)
    with canvas(*size((), small=True)) as figure:
        axes = figure.add_subplot()
        axes.plot(at, losses, color=_BLUE)
        axes.set_ylim(shown.min() - margin, shown.max() + margin)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.set_xlabel("steps" if per_loss else "iterations")
        axes.set_ylabel("training loss (nats)")
        return svg(figure, name, f"Training loss: {losses[0]:.4g} at first, {losses[-1]:.4g} at last")
