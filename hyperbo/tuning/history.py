"""What a prior is conditioned on: the trials of a run so far, and those that are still running."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64

from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.pytree import pytree
from hyperbo.warping import online_map

# Rows that programs have room for: few sizes, for each is compiled once.
_SMALLEST, _LARGEST_FACTOR_FOUR = 16, 1024


class History(NamedTuple):
    """The trials of a run.

    Attributes:
      x: inputs of those that ended, in the prior's coordinates.
      y: warped objective, NaN where the trial was infeasible.
      pending: inputs of those that are running.
    """

    x: Float64[np.ndarray, "n d"]
    y: Float64[np.ndarray, " n"]
    pending: Float64[np.ndarray, "q d"]


@pytree
class Trials:
    """A history as arrays with room: first the trials that ended, then those that run, then nothing.

    Attributes:
      x: inputs.
      y: warped objective; any number where the trial has none.
      feasible: which trials ended with a value.
      finished: which trials ended.
      pending: which trials run.
    """

    x: Float[Array, "t d"]
    y: Float[Array, " t"]
    feasible: Bool[Array, " t"]
    finished: Bool[Array, " t"]
    pending: Bool[Array, " t"]


def trials_of(history: History) -> Trials:
    """A history as arrays, with as many rows as the smallest program for it has."""
    finished, pending = len(history.y), len(history.pending)
    rows = np.arange(capacity_for(finished + pending))
    room = (0, len(rows) - finished)
    feasible = np.isfinite(history.y)
    x = np.zeros((len(rows), history.x.shape[1]))
    x[: finished + pending] = np.concatenate([history.x, history.pending])
    return Trials(
        jnp.asarray(x),
        jnp.asarray(np.pad(np.where(feasible, history.y, 0.0), room)),
        jnp.asarray(np.pad(feasible, room)),
        jnp.asarray(rows < finished),
        jnp.asarray((rows >= finished) & (rows < finished + pending)),
    )


def capacity_for(trials: int) -> int:
    """How many rows the program for so many trials has: 16, 64, 256, 1024, then doubling.

    >>> [capacity_for(trials) for trials in (0, 16, 17, 100, 1024, 1025)]
    [16, 16, 64, 256, 1024, 2048]
    """
    capacity = _SMALLEST
    while capacity < trials:
        capacity *= 4 if capacity < _LARGEST_FACTOR_FOUR else 2
    return capacity


def conditioned_values(gp: GaussianProcess, trials: Trials, mapped: bool) -> Float[Array, " t"]:
    r"""The values that the prior is conditioned on, in the unit that it was trained on.

    A prior of the preparation `online` sees values in [-2, 2], `hyperbo.warping.online_map` over the trials
    so far, with -2 for infeasible ones. Any other sees the warped objective as it is; infeasible trials, of
    which its training data has none, count as the worst value so far, or, while there is none, as the prior's
    mean there less two standard deviations.

    Args:
      gp: the prior.
      trials: of the run; rows that did not finish get any number.
      mapped: whether the prior was trained on mapped values.
    """
    if mapped:
        return online_map(trials.y, trials.feasible)
    features = gp.features(trials.x)
    low = gp.mean(features) - 2.0 * jnp.sqrt(gp.kernel.diagonal(features))
    worst = jnp.min(jnp.where(trials.feasible, trials.y, jnp.inf))
    return jnp.where(trials.feasible, trials.y, jnp.where(jnp.isfinite(worst), worst, low))
