"""Output warpings: from a raw objective to the value `y` that is maximised, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Float64

from hyperbo.errors import InvalidInputError

Values = Float64[np.ndarray, "*n"]
Direction = Literal["minimize", "maximize"]
EPSILON = 1e-10
# What an infeasible trial counts as under the online map, its smallest value.
INFEASIBLE = -2.0


@dataclass(frozen=True)
class OutputWarping:
    """A named, strictly monotone map of the objective; `unwarp(warp(r)) == r` up to rounding.

    Attributes:
      name: the name that datasets and priors record.
      direction: whether the raw objective is minimised or maximised where `y` is maximised.
      warp: raw objective -> `y`.
      unwarp: `y` -> raw objective.
    """

    name: str
    direction: Direction
    warp: Callable[[Values], Values]
    unwarp: Callable[[Values], Values]


def _negative_log(error: Values) -> Values:
    return -np.log(error + EPSILON)


def _inverse_negative_log(y: Values) -> Values:
    return np.exp(-y) - EPSILON


def _negative(value: Values) -> Values:
    return -np.asarray(value, np.float64)


def _identity(value: Values) -> Values:
    return np.asarray(value, np.float64)


# `negative_log` is r -> -ln(r + 1e-10), section 7.1 "PD1": an error rate to be minimised becomes a value to
# be maximised in which a halving counts the same at every level. `negative` is r -> -r, for what is minimised
# and may be negative.
WARPINGS: dict[str, OutputWarping] = {
    warping.name: warping
    for warping in (
        OutputWarping("negative_log", "minimize", _negative_log, _inverse_negative_log),
        OutputWarping("identity", "maximize", _identity, _identity),
        OutputWarping("negative", "minimize", _negative, _negative),
    )
}


def output_warping(name: str) -> OutputWarping:
    """Look a warping up by the name that datasets and priors record.

    >>> float(output_warping("negative_log").warp(np.array([1.0]))[0])
    -1.000000082690371e-10

    Raises:
      InvalidInputError: no warping has that name.
    """
    if name not in WARPINGS:
        raise InvalidInputError(f"unknown output warping {name!r}", fix=f"use one of {', '.join(WARPINGS)}")
    return WARPINGS[name]


def online_map(y: Float[Any, " n"], feasible: Bool[Any, " n"]) -> Float[Any, " n"]:
    r"""Map the values of one task to [-2, 2], with -2 for infeasible trials.

    Section 7.5 "Results on the PD1 Online Hyperparameter Tuning Tasks".

    .. math:: y \gets 4 \, \frac{\mathrm{softplus}(y - \overline y)}
              {\mathrm{softplus}(y_{\max} - \overline y)} - 2

    Median and maximum are those of the feasible values. The largest becomes 2 (the paper writes [-2, 2), its
    equation reaches 2); values far below the median approach -2. A value that stands alone, or values that
    are all equal, become 2; without a feasible value all are -2.

    Args:
      y: values to be maximised, as `OutputWarping.warp` makes them; values of infeasible trials are
        ignored and may be NaN.
      feasible: which trials have a value. Padding is infeasible too.

    Returns:
      The mapped values: an array of the library of `y`, NumPy or JAX, and compiled code may call it.

    >>> y = np.array([0.0, np.log(7.0), -1.0, np.nan])
    >>> online_map(y, np.array([True, True, True, False])).round(6).tolist()
    [-0.666667, 2.0, -1.397412, -2.0]
    """
    library = y.__array_namespace__()
    count = library.sum(feasible)
    # Infeasible trials are sorted behind the others: in compiled code nothing can be cut off.
    ordered = library.sort(library.where(feasible, y, library.inf))
    middle = 0.5 * (ordered[(count - 1) // 2] + ordered[count // 2])
    median = library.where(count > 0, middle, 0.0)
    values = library.where(feasible, y, median)
    largest = library.max(library.where(feasible, y, -library.inf))
    span = _softplus(library.where(count > 0, largest, 0.0) - median)
    return library.where(feasible, 4.0 * (_softplus(values - median) / span) + INFEASIBLE, INFEASIBLE)


def _softplus(value: Any) -> Any:
    library = value.__array_namespace__()
    return library.logaddexp(value, library.zeros_like(value))
