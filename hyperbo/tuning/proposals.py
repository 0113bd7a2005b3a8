"""The next trial of a run with a pre-trained prior, which stays as it was trained, anywhere in a region."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64, PRNGKeyArray

from hyperbo.acquisition import climb
from hyperbo.errors import NumericalError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.tuning.batches import BatchStrategy, Box, acquisition_of, sampled
from hyperbo.tuning.history import History, Trials, trials_of
from hyperbo.tuning.region import Region, coordinates

# Points that are scored, the best of them that are climbed from, and how long.
CANDIDATES, STARTS, ITERATIONS = 1024, 8, 50
# Of the candidates, so many lie close to the best trials so far, at such a distance.
_LOCAL, _BEST_TRIALS, _LOCAL_DEVIATION = 128, 4, 0.05
# So many points that may be tried are compared, where values have to be rounded.
_ROUNDED = 64
_DIGITS = 9  # of coordinates; two that agree in them are one


def trial_stream(seed: int, number: int, names: Iterable[str]) -> np.random.Generator:
    """The random numbers by which parameters of a trial are chosen: others for each trial and set of names.

    Args:
      seed: of the run.
      number: of the trial.
      names: of the parameters that are chosen together, in any order.
    """
    return np.random.default_rng([seed, number, zlib.crc32("\n".join(sorted(names)).encode())])


@double_precision
def propose(
    gp: GaussianProcess,
    region: Region,
    history: History,
    random: np.random.Generator,
    strategy: BatchStrategy = "kriging_believer",
    mapped: bool = True,
) -> Float64[np.ndarray, " d"]:
    """What to try next: the largest GP-UCB of the region, or the largest value of a function drawn.

    A program is compiled for each number of rows that histories need (`capacity_for`), not for each call.

    Args:
      gp: the prior.
      region: where.
      history: of the run so far.
      random: draws the points that are compared; equal draws, equal choices.
      strategy: what running trials mean for the choice.
      mapped: whether the prior was trained on values mapped to [-2, 2].

    Returns:
      Raw hyperparameters, in the order of the prior's search space.

    Raises:
      NumericalError: the acquisition function is nowhere finite.
    """
    trials = trials_of(history)
    box = Box(jnp.asarray(region.start), jnp.asarray(region.width))
    candidates = _candidates(region, history, random)
    key = jax.random.key(int(random.integers(2**32)))
    best, scores = _search(strategy, mapped)(gp, trials, box, jnp.asarray(candidates), key)
    scores, best = np.array(scores), np.asarray(best)
    if not np.isfinite(scores).any():
        raise NumericalError(
            "the acquisition function is nowhere finite: the prior, or a value that was told, is too large"
        )
    if region.is_continuous:
        return region.raw(best[None])[0]
    allowed = candidates[_best_first(candidates, scores)]
    if strategy == "thompson_sampling":
        return region.raw(_untried(allowed, region, history)[:1])[0]
    near = _in_cube(region, region.around(best))
    # Always as many, or another program would be compiled: where there are fewer, some are repeated.
    compared = np.resize(_untried(np.concatenate([near, allowed]), region, history), (_ROUNDED, len(best)))
    scores = np.asarray(_scores(strategy, mapped)(gp, trials, box, jnp.asarray(compared)))
    return region.raw(compared[np.nanargmax(scores)][None])[0]


def _candidates(region: Region, history: History, random: np.random.Generator) -> Float64[np.ndarray, "c d"]:
    """Points of the region's unit cube, rounded to what may be tried."""
    dimension = region.space.dimension
    t = random.uniform(size=(CANDIDATES, dimension))
    shifts = random.normal(scale=_LOCAL_DEVIATION, size=(_LOCAL, dimension))
    feasible = np.flatnonzero(np.isfinite(history.y))
    best = feasible[np.argsort(-history.y[feasible], kind="stable")][:_BEST_TRIALS]
    if len(best):
        centres = region.own(history.x[best])[np.arange(_LOCAL) % len(best)]
        t[:_LOCAL] = np.clip(centres + shifts, 0.0, 1.0)
    return t if region.is_continuous else _in_cube(region, region.raw(t))


def _best_first(t: Float64[np.ndarray, "c d"], scores: Float64[np.ndarray, " c"]) -> np.ndarray:
    """Rows of points that differ, by falling score."""
    _, first = np.unique(t, axis=0, return_index=True)
    return first[np.argsort(np.where(np.isnan(scores[first]), np.inf, -scores[first]), kind="stable")]


def _untried(t: Float64[np.ndarray, "c d"], region: Region, history: History) -> Float64[np.ndarray, "m d"]:
    """The points that no trial has had; all where there is no other: only then is one worth another trial."""
    tried = set(_rows(np.concatenate([history.x, history.pending])))
    new = np.array([row not in tried for row in _rows(region.start + region.width * t)])
    return t[new] if new.any() else t


def _rows(x: Float64[np.ndarray, "n d"]) -> list[tuple[float, ...]]:
    """Points that can be looked up: what differs by rounding alone is equal."""
    return [tuple(row) for row in (np.round(x, _DIGITS) + 0.0).tolist()]


def _in_cube(region: Region, raw: Float64[np.ndarray, "n d"]) -> Float64[np.ndarray, "n d"]:
    return region.own(coordinates(region.space, raw))


@cache
def _search(strategy: BatchStrategy, mapped: bool) -> Callable[..., Any]:
    """The best point of the unit cube and the candidates' scores; compiled once for a strategy and shapes."""

    @jax.jit
    def search(
        gp: GaussianProcess, trials: Trials, box: Box, t: Float[Array, "c d"], key: PRNGKeyArray
    ) -> tuple[Float[Array, " d"], Float[Array, " c"]]:
        if strategy == "thompson_sampling":
            scores = sampled(gp, trials, box, t, key, mapped)
            return t[jnp.argmax(scores)], scores
        acquisition = acquisition_of(gp, trials, box, strategy, mapped)
        scores = acquisition(t)
        starts = t[jnp.argsort(jnp.where(jnp.isnan(scores), jnp.inf, -scores))[:STARTS]]
        return climb(acquisition, starts, jnp.asarray(ITERATIONS))[0], scores

    return search


@cache
def _scores(strategy: BatchStrategy, mapped: bool) -> Callable[..., Any]:
    """The scores of points of the unit cube; compiled once for a strategy and shapes."""

    @jax.jit
    def scores(gp: GaussianProcess, trials: Trials, box: Box, t: Float[Array, "c d"]) -> Float[Array, " c"]:
        return acquisition_of(gp, trials, box, strategy, mapped)(t)

    return scores
