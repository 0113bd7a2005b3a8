"""What a prior believes, as arrays: its most promising region, planes, slices, functions and correlations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64
from scipy.stats import qmc

from hyperbo.acquisition import climb
from hyperbo.errors import NumericalError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.kernels import Linear
from hyperbo.gp.numerics import double_precision, softplus
from hyperbo.gp.pytree import pytree
from hyperbo.prior import Prior
from hyperbo.prior_cuts import Planes, Slices, marginals, planes_through, slices_through
from hyperbo.search_space import SearchSpace
from hyperbo.tuning import History, Region, coordinates, propose, trial_stream

# Of points spread evenly over the space, those of the largest mean, and what of them a range leaves out.
POINTS, PROMISING_SHARE, RANGE = 2**13, 0.05, (0.1, 0.9)
PROPOSALS = 5
_STARTS, _ITERATIONS = 8, 200
# Means that differ by less, relative to their size, differ by rounding.
_FLAT = 1e-9


@dataclass(frozen=True)
class Promising:
    """Where the prior mean is large, in the coordinates of the unit cube.

    Attributes:
      best: the point of the largest mean; the centre where the mean is flat.
      best_mean: mean there.
      best_deviation: standard deviation of the function there.
      is_flat: whether the mean is the same everywhere, so that no region is more promising than another.
      points: those of the largest means, 5 % of all that were looked at; all where the mean is flat.
      ranges: from their 10th to their 90th percentile, for each parameter alone.
      proposals: the points that tuning with the prior tries first, before any of them has a result.
      proposal_means: means there.
      proposal_deviations: standard deviations there.
    """

    best: Float64[np.ndarray, " d"]
    best_mean: float
    best_deviation: float
    is_flat: bool
    points: Float64[np.ndarray, "n d"]
    ranges: Float64[np.ndarray, "d 2"]
    proposals: Float64[np.ndarray, "q d"]
    proposal_means: Float64[np.ndarray, " q"]
    proposal_deviations: Float64[np.ndarray, " q"]


@dataclass(frozen=True)
class PriorView:
    """What a prior believes.

    Attributes:
      promising: its most promising region.
      planes: over pairs of parameters; None where there is only one parameter.
      slices: along each parameter.
      lengthscales: of the features, as the kernel has them.
      feature_spans: from the smallest to the largest value of each feature over the space.
      noise_deviation: standard deviation of the observation noise.
    """

    promising: Promising
    planes: Planes | None
    slices: Slices
    lengthscales: Float64[np.ndarray, " e"]
    feature_spans: Float64[np.ndarray, " e"]
    noise_deviation: float


@double_precision
def view_prior(prior: Prior) -> PriorView:
    """Compute what there is to be seen of a prior; the same prior gives the same numbers.

    Raises:
      NumericalError: the prior is not finite everywhere.
    """
    # One that was read from files holds NumPy's arrays.
    prior = replace(prior, gp=jax.tree.map(jnp.asarray, prior.gp))
    gp, space = prior.gp, prior.description.search_space
    points = qmc.Sobol(space.dimension, rng=0).random(POINTS)
    features, means, deviations = map(np.asarray, marginals(gp, points))
    if not (np.isfinite(means).all() and np.isfinite(deviations).all()):
        raise NumericalError("the prior's mean or variance is not finite: its training has failed")
    promising = _promising(prior, points, means)
    kernel = gp.kernel
    lengthscales = kernel.raw_scale if isinstance(kernel, Linear) else kernel.raw_lengthscales
    return PriorView(
        promising,
        planes_through(gp, promising.best) if space.dimension > 1 else None,
        slices_through(gp, promising.best),
        np.broadcast_to(np.asarray(softplus(lengthscales)), features.shape[1:]).copy(),
        np.ptp(features, axis=0),
        float(np.sqrt(gp.noise_variance)),
    )


def _promising(
    prior: Prior, points: Float64[np.ndarray, "n d"], means: Float64[np.ndarray, " n"]
) -> Promising:
    gp, space = prior.gp, prior.description.search_space
    is_flat = bool(np.ptp(means) <= _FLAT * np.abs(means).max())
    if is_flat:
        best = np.full(space.dimension, 0.5)
    else:
        order = np.argsort(-means, kind="stable")
        best = np.asarray(_highest(gp, points[order[:_STARTS]]))
        points = points[order[: round(PROMISING_SHARE * len(points))]]
    proposals = _proposals(prior)
    _, mean, deviation = map(np.asarray, marginals(gp, np.concatenate([best[None], proposals])))
    return Promising(
        best,
        float(mean[0]),
        float(deviation[0]),
        is_flat,
        points,
        np.quantile(points, RANGE, axis=0).T,
        proposals,
        mean[1:],
        deviation[1:],
    )


@pytree
class _Mean:
    """The prior mean, to be maximised."""

    gp: GaussianProcess

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        return self.gp.mean(self.gp.features(x))


@jax.jit
def _highest(gp: GaussianProcess, starts: Float[Array, "s d"]) -> Float[Array, " d"]:
    return climb(_Mean(gp), starts, jnp.asarray(_ITERATIONS))[0]


def _proposals(prior: Prior) -> Float64[np.ndarray, "q d"]:
    """What a `Tuner` of seed 0 over the whole space is asked for first, as long as it is told nothing."""
    space = prior.description.search_space
    mapped = prior.description.is_mapped
    region, none = Region.of(space, {}), np.zeros((0, space.dimension))
    tried = none
    for number in range(PROPOSALS):
        history = History(none, np.zeros(0), _within(space, tried))
        raw = propose(prior.gp, region, history, trial_stream(0, number, space.names), mapped=mapped)
        tried = np.concatenate([tried, raw[None]])
    return _within(space, tried)


def _within(space: SearchSpace, raw: Float64[np.ndarray, "q d"]) -> Float64[np.ndarray, "q d"]:
    return np.clip(coordinates(space, raw), 0.0, 1.0)
