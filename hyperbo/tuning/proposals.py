"""The next trial of a `Tuner` or a sampler: a pre-trained prior, which is not refitted, in any region."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64, Int, Int64, PRNGKeyArray

from hyperbo.acquisition import climb_each
from hyperbo.bayesopt.history import History, PaddedHistory, capacity_for, padded
from hyperbo.errors import NumericalError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.methods.universal.space_mixture import SpaceMixture
from hyperbo.tuning.axes import NumberAxis
from hyperbo.tuning.batches import Anchored, BatchStrategy, Box, acquisition_of, sampled
from hyperbo.tuning.region import Region, coordinates

logger = logging.getLogger(__name__)

# The best point reached, the candidate it was reached from, and the candidates' scores.
_Found = tuple[np.ndarray, int, np.ndarray]

# What this process has compiled programs for.
_announced: set[Any] = set()
# Number of points that are scored, of the best of them that are climbed from, and of iterations of a climb.
CANDIDATES, STARTS, ITERATIONS = 1024, 8, 50
# Number of candidates close to the best trials so far, of those trials, and standard deviation from them.
_LOCAL, _BEST_TRIALS, _LOCAL_DEVIATION = 128, 4, 0.05
# Of points with discrete parameters: the most rounds of the local search, and neighbours in each.
_ROUNDS, _NEIGHBOURS = 4, 256
# Share of the candidates close to a trial that have another level of a choice.
_OTHER_LEVEL = 1.0 / 3.0
# Of a prior in its mixture, before any trial (docs/decisions/mixture.md).
PRIOR_WEIGHT = 0.9
# Of the unit cube's sides: a discrete proposal is further from every running trial, where a prior that is
# sure of itself would try the same again.
_NEXT_TO = 0.05
_DIGITS = 9  # of a coordinate; points that agree in these digits are equal


@double_precision
def propose(
    gp: GaussianProcess | SpaceMixture,
    region: Region,
    history: History,
    random: np.random.Generator,
    strategy: BatchStrategy = "kriging_believer",
    mapped: bool = True,
    *,
    prior_weight: float,
) -> Float64[np.ndarray, " p"]:
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
      The codes of an allowed point, by the parameters of the prior's search space; `SearchSpace.values` makes
      values of them.

    Raises:
      NumericalError: the acquisition function is nowhere finite.
    """
    trials = len(history.y) + len(history.pending)
    rows = padded(history, capacity_for(trials, refits=False))
    box = Box(jnp.asarray(region.start), jnp.asarray(region.width))
    _announce(rows.x.shape, strategy, mapped, prior_weight, gp)
    key = jax.random.key(int(random.integers(2**32))) if strategy == "thompson_sampling" else None
    search = partial(_search, strategy, mapped, prior_weight, gp, rows, box, key=key)
    codes = region.every(CANDIDATES)
    if codes is not None:
        every = np.resize(random.permutation(codes), (CANDIDATES, codes.shape[1]))
        return _best_of_all(region, history, every, search)
    codes = region.codes(_shares(region, history, random))
    x, moves = coordinates(region.space, codes), region.moves(codes)
    found, start, scores = search(x, moves)
    _require_finite(scores)
    if strategy == "thompson_sampling":
        return codes[_untried(x, scores, history)[0]]
    if region.is_continuous:
        return region.at(codes[start], found)
    return _local_search(region, history, codes, (found, start, scores), search)


def _best_of_all(
    region: Region, history: History, codes: Float64[np.ndarray, "c p"], search: Callable[..., _Found]
) -> Float64[np.ndarray, " p"]:
    """The best of all points of a region, of those that no trial has had if there are any."""
    x = coordinates(region.space, codes)
    scores = search(x, np.zeros(x.shape, bool))[2]
    _require_finite(scores)
    return codes[_untried(x, scores, history)[0]]


def _local_search(
    region: Region,
    history: History,
    codes: Float64[np.ndarray, "c p"],
    found: _Found,
    search: Callable[..., _Found],
) -> Float64[np.ndarray, " p"]:
    """From the best point that a climb has found to the best of its neighbours, while this gains something.

    Neighbours take the place of the worst candidates. So every round runs the program of the first.
    """
    best, chosen = -np.inf, codes[0]
    for _ in range(_ROUNDS):
        reached, start, scores = found
        near = region.around(codes[start], reached)[:_NEIGHBOURS]
        codes = np.concatenate([near, codes[_best_first(scores)][: CANDIDATES - len(near)]])
        x = coordinates(region.space, codes)
        found = search(x, region.moves(codes))
        place = _untried(x, found[2], history)[0]
        if not found[2][place] > best:
            break
        best, chosen = found[2][place], codes[place]
    return chosen


def _require_finite(scores: Float64[np.ndarray, " c"]) -> None:
    if not np.isfinite(scores).any():
        raise NumericalError(
            "the acquisition function is nowhere finite: the prior or an objective value is too large"
        )


def _announce(shape: tuple[int, ...], *program: Any) -> None:
    """Say that the next call compiles, so that nobody takes it for a process that hangs.

    The first line of a process is a warning, which is seen where logging is not configured. Further lines, of
    longer histories, are information. So is the first where programs that were compiled are kept on disk.
    """
    *settings, gp = program
    leaves, structure = jax.tree.flatten(gp)
    key = (shape, *settings, structure, *(np.shape(leaf) for leaf in leaves))
    if key in _announced:
        return
    is_first = not _announced
    _announced.add(key)
    logger.log(
        logging.WARNING if is_first and not _programs_kept() else logging.INFO,
        "compiling the search for the next of at most %d trials: this takes seconds to a minute, once for "
        "this process; %s",
        shape[0],
        "later ones are quick"
        if jax.config.values["jax_compilation_cache_dir"]
        else "where JAX_COMPILATION_CACHE_DIR names a folder, later ones are quick",
    )


def _programs_kept() -> bool:
    """Whether there are programs on disk that an earlier process compiled."""
    folder = jax.config.values["jax_compilation_cache_dir"]
    if not folder or "://" in folder:
        return bool(folder)
    return Path(folder).is_dir() and any(Path(folder).iterdir())


def _shares(region: Region, history: History, random: np.random.Generator) -> Float64[np.ndarray, "c p"]:
    """Random points as shares of the region's widths and levels, some of them close to the best trials."""
    count = len(region.axes)
    shares = random.uniform(size=(CANDIDATES, count))
    shifts = random.normal(scale=_LOCAL_DEVIATION, size=(_LOCAL, count))
    feasible = np.flatnonzero(np.isfinite(history.y))
    best = feasible[np.argsort(-history.y[feasible], kind="stable")][:_BEST_TRIALS]
    if len(best):
        centres = region.shares(history.x[best])[np.arange(_LOCAL) % len(best)]
        # A level has no neighbours: it is kept, or drawn anew.
        kept = np.array([isinstance(axis, NumberAxis) for axis in region.axes])
        drawn = shares[:_LOCAL]
        other = np.where(drawn < _OTHER_LEVEL, drawn / _OTHER_LEVEL, centres)
        shares[:_LOCAL] = np.clip(np.where(kept, centres + shifts, other), 0.0, 1.0)
    return shares


def _untried(
    x: Float64[np.ndarray, "c d"], scores: Float64[np.ndarray, " c"], history: History
) -> Int64[np.ndarray, " m"]:
    """The places of the points that no trial has had, best score first; if there are none, of all points.

    A point next to a running trial counts as tried: of values that are believed, nothing keeps it away.
    """
    order = _best_first(scores)
    tried = set(_rows(history.x))
    apart = np.abs(x[order][:, None] - history.pending).max(axis=2, initial=0.0)
    near = (apart < _NEXT_TO).any(axis=1)
    new = np.array([row not in tried for row in _rows(x[order])]) & ~near
    return order[new] if new.any() else order


def _best_first(scores: Float64[np.ndarray, " c"]) -> Int64[np.ndarray, " c"]:
    return np.argsort(np.where(np.isnan(scores), np.inf, -scores), kind="stable")


def _rows(x: Float64[np.ndarray, "n d"]) -> list[tuple[float, ...]]:
    """Points as tuples for look-up; points that differ only by rounding are equal."""
    return [tuple(row) for row in (np.round(x, _DIGITS) + 0.0).tolist()]


def _search(
    strategy: BatchStrategy,
    mapped: bool,
    prior_weight: float,
    gp: GaussianProcess | SpaceMixture,
    history: PaddedHistory,
    box: Box,
    x: Float64[np.ndarray, "c d"],
    moves: Bool[np.ndarray, "c d"],
    key: PRNGKeyArray | None,
) -> _Found:
    found = _climbed(
        strategy, mapped, prior_weight, gp, history, box, jnp.asarray(x), jnp.asarray(moves), key
    )
    best, start, scores = map(np.asarray, found)
    return best, int(start), scores


@partial(jax.jit, static_argnums=(0, 1, 2))
def _climbed(
    strategy: BatchStrategy,
    mapped: bool,
    prior_weight: float,
    gp: GaussianProcess | SpaceMixture,
    history: PaddedHistory,
    box: Box,
    x: Float[Array, "c d"],
    moves: Bool[Array, "c d"],
    key: PRNGKeyArray | None,
) -> tuple[Float[Array, " d"], Int[Array, ""], Float[Array, " c"]]:
    """The best point reached, the candidate it was reached from, and the candidates' scores.

    Compiled once for a strategy and shapes.
    """
    if strategy == "thompson_sampling":
        assert key is not None
        scores = sampled(gp, history, x, key, mapped, prior_weight)
        best = jnp.argmax(scores)
        return x[best], best, scores
    acquisition = acquisition_of(gp, history, box, strategy, mapped, prior_weight)
    scores = acquisition(x)
    starts = jnp.argsort(jnp.where(jnp.isnan(scores), jnp.inf, -scores))[:STARTS]
    anchored = Anchored(acquisition, box, x[starts], moves[starts])
    width = jnp.where(box.width > 0.0, box.width, 1.0)
    shares = jnp.clip((x[starts] - box.start) / width, 0.0, 1.0)
    reached, heights = climb_each(anchored, shares, jnp.asarray(ITERATIONS))
    best = jnp.argmax(heights)
    return anchored.at(reached)[best], starts[best], scores
