"""The next trial of a `Tuner` or a sampler: a pre-trained prior, which is not refitted, in any region."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64, PRNGKeyArray

from hyperbo.acquisition import climb
from hyperbo.bayesopt.history import History, PaddedHistory, capacity_for, padded
from hyperbo.errors import NumericalError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.tuning.batches import BatchStrategy, Box, acquisition_of, sampled
from hyperbo.tuning.region import Region, coordinates

logger = logging.getLogger(__name__)

# What this process has compiled programs for.
_announced: set[Any] = set()
# Number of points that are scored, of the best of them that are climbed from, and of iterations of a climb.
CANDIDATES, STARTS, ITERATIONS = 1024, 8, 50
# Number of candidates close to the best trials so far, of those trials, and standard deviation from them.
_LOCAL, _BEST_TRIALS, _LOCAL_DEVIATION = 128, 4, 0.05
# Number of allowed points that are compared where values have to be rounded.
_ROUNDED = 64
# Of a prior in its mixture, before any trial (docs/decisions/mixture.md).
PRIOR_WEIGHT = 0.9
_DIGITS = 9  # of a coordinate; points that agree in these digits are equal


@double_precision
def propose(
    gp: GaussianProcess,
    region: Region,
    history: History,
    random: np.random.Generator,
    strategy: BatchStrategy = "kriging_believer",
    mapped: bool = True,
    *,
    prior_weight: float,
) -> Float64[np.ndarray, " d"]:
    """What to try next: the largest acquisition function of the region, or the largest value of a drawn one.

    A program is compiled for each number of rows that histories need (`capacity_for`), not for each call.
    This takes seconds, and a line in the log says so before.

    Args:
      gp: the prior.
      region: where to search.
      history: of the run so far.
      random: draws the points that are compared; equal draws give equal proposals.
      strategy: how running trials change the proposal.
      mapped: whether the prior was trained on values mapped to [-2, 2].
      prior_weight: of the prior in a mixture with uninformed processes, before any trial; 1: the prior alone,
        by GP-UCB. Tuner and sampler have a default, `PRIOR_WEIGHT`.

    Returns:
      Raw hyperparameters, in the order of the prior's search space.

    Raises:
      NumericalError: the acquisition function is nowhere finite.
    """
    trials = len(history.y) + len(history.pending)
    rows = padded(history, capacity_for(trials, refits=False))
    box = Box(jnp.asarray(region.start), jnp.asarray(region.width))
    _announce(rows.x.shape, strategy, mapped, prior_weight, gp)
    candidates = _candidates(region, history, random)
    key = jax.random.key(int(random.integers(2**32)))
    best, scores = _search(strategy, mapped, prior_weight, gp, rows, box, jnp.asarray(candidates), key)
    scores, best = np.array(scores), np.asarray(best)
    if not np.isfinite(scores).any():
        raise NumericalError(
            "the acquisition function is nowhere finite: the prior or an objective value is too large"
        )
    if region.is_continuous:
        return region.raw(best[None])[0]
    allowed = candidates[_best_first(candidates, scores)]
    if strategy == "thompson_sampling":
        return region.raw(_untried(allowed, region, history)[:1])[0]
    near = _in_cube(region, region.around(best))
    # Always the same number, because another number would be compiled anew; some points are repeated.
    compared = np.resize(_untried(np.concatenate([near, allowed]), region, history), (_ROUNDED, len(best)))
    scores = np.asarray(_scores(gp, rows, box, strategy, mapped, prior_weight, jnp.asarray(compared)))
    return region.raw(compared[np.nanargmax(scores)][None])[0]


def _announce(shape: tuple[int, ...], *program: Any) -> None:
    """Say that the next call compiles, so that nobody takes it for a process that hangs.

    A warning is seen in a script or notebook that has not configured logging. Where compiled programs are
    kept on disk, as commands keep them, mostly nothing is compiled: the line is information then.
    """
    *settings, gp = program
    leaves, structure = jax.tree.flatten(gp)
    key = (shape, *settings, structure, *(np.shape(leaf) for leaf in leaves))
    if key in _announced:
        return
    _announced.add(key)
    logger.log(
        logging.INFO if _programs_kept() else logging.WARNING,
        "compiling the choice of the next of at most %d trials, once for this process: some seconds; "
        "where JAX_COMPILATION_CACHE_DIR names a folder, later processes are quick",
        shape[0],
    )


def _programs_kept() -> str | None:
    return jax.config.jax_compilation_cache_dir


def _candidates(region: Region, history: History, random: np.random.Generator) -> Float64[np.ndarray, "c d"]:
    """Random points of the region's unit cube, rounded to allowed values."""
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
    """The rows of different points, best score first."""
    _, first = np.unique(t, axis=0, return_index=True)
    return first[np.argsort(np.where(np.isnan(scores[first]), np.inf, -scores[first]), kind="stable")]


def _untried(t: Float64[np.ndarray, "c d"], region: Region, history: History) -> Float64[np.ndarray, "m d"]:
    """The points that no trial has had; if there are none, all points."""
    tried = set(_rows(np.concatenate([history.x, history.pending])))
    new = np.array([row not in tried for row in _rows(region.start + region.width * t)])
    return t[new] if new.any() else t


def _rows(x: Float64[np.ndarray, "n d"]) -> list[tuple[float, ...]]:
    """Points as tuples for look-up; points that differ only by rounding are equal."""
    return [tuple(row) for row in (np.round(x, _DIGITS) + 0.0).tolist()]


def _in_cube(region: Region, raw: Float64[np.ndarray, "n d"]) -> Float64[np.ndarray, "n d"]:
    return region.own(coordinates(region.space, raw))


@partial(jax.jit, static_argnums=(0, 1, 2))
def _search(
    strategy: BatchStrategy,
    mapped: bool,
    prior_weight: float,
    gp: GaussianProcess,
    history: PaddedHistory,
    box: Box,
    t: Float[Array, "c d"],
    key: PRNGKeyArray,
) -> tuple[Float[Array, " d"], Float[Array, " c"]]:
    """The best point of the unit cube and the candidates' scores; compiled once for a strategy and shapes."""
    if strategy == "thompson_sampling":
        scores = sampled(gp, history, box, t, key, mapped, prior_weight)
        return t[jnp.argmax(scores)], scores
    acquisition = acquisition_of(gp, history, box, strategy, mapped, prior_weight)
    scores = acquisition(t)
    starts = t[jnp.argsort(jnp.where(jnp.isnan(scores), jnp.inf, -scores))[:STARTS]]
    return climb(acquisition, starts, jnp.asarray(ITERATIONS))[0], scores


@partial(jax.jit, static_argnums=(3, 4, 5))
def _scores(
    gp: GaussianProcess,
    history: PaddedHistory,
    box: Box,
    strategy: BatchStrategy,
    mapped: bool,
    prior_weight: float,
    t: Float[Array, "c d"],
) -> Float[Array, " c"]:
    """The scores of points of the unit cube; compiled once for a strategy and shapes."""
    return acquisition_of(gp, history, box, strategy, mapped, prior_weight)(t)
