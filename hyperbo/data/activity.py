"""The columns of `x` of a parameter that may be inactive: its own, and one that says whether it is active."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float64

from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Parameter


def column_names(parameter: Parameter | Choice) -> tuple[str, ...]:
    """Names of the columns of `x`, that of its activity included."""
    if parameter.condition is None:
        return parameter.columns
    return (*parameter.columns, f"{parameter.name}:active") if parameter.columns else ()


def with_activity(
    parameter: Parameter | Choice, known: Float64[np.ndarray, "n c"], active: Bool[np.ndarray, " n"]
) -> Float64[np.ndarray, "n e"]:
    """All columns of `x` of a parameter: of a conditional one, the centre where it is inactive, and activity.

    Args:
      parameter: whose columns they are.
      known: its own columns; what stands where it is inactive does not count.
      active: where it is active.
    """
    if parameter.condition is None or not parameter.columns:
        return known
    lit = active[:, None]
    return np.concatenate([np.where(lit, known, parameter.centre), lit.astype(np.float64)], axis=1)
