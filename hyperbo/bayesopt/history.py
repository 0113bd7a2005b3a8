"""What the next proposal of a run depends on: the run's trials so far and its stream of random numbers."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64, Int, PRNGKeyArray, UInt32

from hyperbo.compute.pytree import pytree
from hyperbo.data.warping import online_map
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.methods.single_task.refit_policy import CAPACITIES as REFIT_CAPACITIES
from hyperbo.methods.universal.space_mixture import SpaceMixture
from hyperbo.methods.universal.values import normal_scores

# Sizes beyond the largest of `REFIT_CAPACITIES` lie this far apart.
_REFIT_CAPACITY_STEP = 50
_FIXED_PRIOR_CAPACITIES = (16, 64, 256, 1024)


class History(NamedTuple):
    """The trials of a run.

    Attributes:
      x: inputs of the trials that have ended, in the prior's coordinates, in the order of the trials.
      y: their warped objective values, to be maximised; NaN where the trial was infeasible.
      pending: inputs of the trials that are still running.
    """

    x: Float64[np.ndarray, "n d"]
    y: Float64[np.ndarray, " n"]
    pending: Float64[np.ndarray, "q d"]


@pytree
class PaddedHistory:
    """A history as arrays of a fixed length: ended trials, then running trials, then unused rows.

    Compiled programs take it in place of a `History`, so that one program serves many lengths.

    Attributes:
      y: warped objective values; any number where a trial has none.
      feasible: which trials ended with a value.
    """

    x: Float[Array, "t d"]
    y: Float[Array, " t"]
    feasible: Bool[Array, " t"]
    ended_count: Int[Array, ""]
    pending_count: Int[Array, ""]

    @property
    def ended(self) -> Bool[Array, " t"]:
        """Which rows are ended trials."""
        return jnp.arange(self.y.shape[0]) < self.ended_count

    @property
    def pending(self) -> Bool[Array, " t"]:
        """Which rows are running trials."""
        return ~self.ended & (jnp.arange(self.y.shape[0]) < self.ended_count + self.pending_count)

    @property
    def mapped(self) -> Float[Array, " t"]:
        """The values mapped to [-2, 2] over the trials so far, -2 where a trial was infeasible."""
        return online_map(self.y, self.feasible)


def padded(history: History, capacity: int) -> PaddedHistory:
    """A history as arrays of `capacity` rows, as `capacity_for` chooses them."""
    ended, trials = len(history.y), len(history.y) + len(history.pending)
    feasible = np.isfinite(history.y)
    x = np.zeros((capacity, history.x.shape[1]))
    x[:trials] = np.concatenate([history.x, history.pending])
    return PaddedHistory(
        jnp.asarray(x),
        jnp.asarray(np.pad(np.where(feasible, history.y, 0.0), (0, capacity - ended))),
        jnp.asarray(np.pad(feasible, (0, capacity - ended))),
        jnp.asarray(ended),
        jnp.asarray(trials - ended),
    )


def capacity_for(trials: int, *, refits: bool) -> int:
    """How many rows the arrays for a number of trials have. There are few sizes: each is compiled once.

    A refit costs more with every row, so its sizes lie close together: 10, 25, 50, 75, 100, then every 50. A
    fixed prior uses each row once, so compiling costs more than rows do: 16, 64, 256, 1024, then doubling.
    The size does not depend on how many trials will follow. So a longer run begins exactly as a shorter one.

    >>> [capacity_for(trials, refits=True) for trials in (0, 10, 11, 100, 101, 151)]
    [10, 10, 25, 100, 150, 200]
    >>> [capacity_for(trials, refits=False) for trials in (0, 16, 17, 100, 1024, 1025)]
    [16, 16, 64, 256, 1024, 2048]
    """
    known = REFIT_CAPACITIES if refits else _FIXED_PRIOR_CAPACITIES
    for capacity in known:
        if trials <= capacity:
            return capacity
    if refits:
        return -(-trials // _REFIT_CAPACITY_STEP) * _REFIT_CAPACITY_STEP
    capacity = known[-1]
    while capacity < trials:
        capacity *= 2
    return capacity


def conditioned_values(
    gp: GaussianProcess | SpaceMixture, history: PaddedHistory, mapped: bool
) -> Float[Array, " t"]:
    r"""The values that a prior is conditioned on, in the unit of its training data.

    A prior of the preparation `online` (`mapped`) sees values in [-2, 2]: `hyperbo.data.warping.online_map`
    over the trials so far, -2 for infeasible trials. Any other prior sees the warped objective itself. Its
    training data has no infeasible trials; here they count as the worst value so far. While there is no
    value, they count as the prior's mean less two standard deviations. Rows that are no ended trials get any
    number. The universal prior sees normal scores; infeasible trials have the lowest.
    """
    if isinstance(gp, SpaceMixture):
        if gp.is_scored:
            return normal_scores(jnp.where(history.feasible, history.y, -jnp.inf), history.ended)
        first: GaussianProcess = jax.tree.map(lambda leaf: leaf[0], gp.processes)
    else:
        first = gp
    if mapped:
        return history.mapped
    features = first.features(history.x)
    low = first.mean(features) - 2.0 * jnp.sqrt(first.kernel.diagonal(features))
    worst = jnp.min(jnp.where(history.feasible, history.y, jnp.inf))
    return jnp.where(history.feasible, history.y, jnp.where(jnp.isfinite(worst), worst, low))


def run_stream(task: str, seed: int) -> UInt32[np.ndarray, " 2"]:
    """Seed and task of a run as numbers. Runs of one seed on several tasks draw different random numbers."""
    return np.array([seed, zlib.crc32(task.encode())], np.uint32)


def run_key(stream: UInt32[Array, " 2"]) -> PRNGKeyArray:
    """The random key of a run, from its `run_stream`, in compiled code."""
    seed, task = stream
    return jax.random.fold_in(jax.random.key(seed), task)


def trial_stream(seed: int, number: int, names: Iterable[str]) -> np.random.Generator:
    """The random numbers for some parameters, chosen together, of one trial of a `Tuner` or a sampler."""
    return np.random.default_rng([seed, number, zlib.crc32("\n".join(sorted(names)).encode())])
