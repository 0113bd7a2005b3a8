"""Output warpings: from a raw objective to the value `y` that is maximised, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float64

from hyperbo.errors import InvalidInputError

Values = Float64[np.ndarray, "*n"]
Direction = Literal["minimize", "maximize"]
EPSILON = 1e-10


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


# `negative_log` is r -> -ln(r + 1e-10), section "PD1": an error rate to be minimised becomes a value to be
# maximised in which a halving counts the same at every level. `negative` is r -> -r, for what is minimised
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
