"""A prior as arrays for its page: promising region, planes, slices, length scales, noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64
from scipy.stats import qmc

from hyperbo.acquisition import climb
from hyperbo.bayesopt.history import History, trial_stream
from hyperbo.compute.pytree import pytree
from hyperbo.data.parameter import Parameter
from hyperbo.data.search_space import SearchSpace
from hyperbo.errors import NumericalError
from hyperbo.evaluation.prior.cuts import Planes, Slices, marginals, planes_through, slices_through
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.kernels import Linear
from hyperbo.gp.numerics import double_precision, softplus
from hyperbo.priors.file import Prior
from hyperbo.tuning.proposals import PRIOR_WEIGHT, propose
from hyperbo.tuning.region import Region, coordinates

# Number of points spread evenly over the space, share of them that is promising, quantiles of a range.
POINTS, PROMISING_SHARE, RANGE = 2**13, 0.05, (0.1, 0.9)
PROPOSALS = 5
_STARTS, _ITERATIONS = 8, 200
# Number of parameters of which all pairs are drawn.
_MOST_PLANAR = 8
# Means with a smaller relative difference differ only by rounding.
_FLAT = 1e-9


@dataclass(frozen=True)
class Promising:
    """The most promising region, where the prior mean is large, in coordinates of the unit cube.

    Attributes:
      best: the point with the largest mean; the centre if the mean is flat.
      best_mean: prior mean at `best`.
      best_deviation: standard deviation of the function at `best`.
      is_flat: whether the mean is the same everywhere, so that no region is more promising than another.
      points: the 5 % of all points with the largest means; all points if the mean is flat.
      ranges: 10th and 90th percentile of `points`, for each parameter separately.
      proposals: the first proposals of a tuner with this prior, before any result.
      proposal_means: prior means at the proposals.
      proposal_deviations: standard deviations of the function at the proposals.
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
    """All that the page of a prior shows.

    Attributes:
      promising: its most promising region.
      planes: the prior over pairs of parameters; None if there is only one parameter.
      slices: the prior along each parameter.
      lengthscales: length scales of the kernel, one for each feature.
      feature_spans: largest minus smallest value of each feature over the space.
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
    """Compute all that the page of a prior shows; the same prior gives the same numbers.

    Raises:
      NumericalError: the mean or the variance of the prior is not finite somewhere.
    """
    # A prior that was read from a file holds NumPy arrays.
    prior = replace(prior, gp=jax.tree.map(jnp.asarray, prior.gp))
    gp, space = prior.gp, prior.description.search_space
    points = _points_of(space, qmc.Sobol(space.dimension, rng=0).random(POINTS))
    features, means, deviations = map(np.asarray, marginals(gp, points))
    if not (np.isfinite(means).all() and np.isfinite(deviations).all()):
        raise NumericalError("the prior's mean or variance is not finite: its training has failed")
    promising = _promising(prior, points, means)
    planar = [i for i, each in enumerate(parameters_of_columns(space)) if each.name in _numbers(space)]
    planar = planar[:_MOST_PLANAR]
    kernel = gp.kernel
    lengthscales = kernel.raw_scale if isinstance(kernel, Linear) else kernel.raw_lengthscales
    return PriorView(
        promising,
        planes_through(gp, promising.best, planar) if len(planar) > 1 else None,
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
        (best,) = _points_of(space, np.full((1, space.dimension), 0.5))
    else:
        order = np.argsort(-means, kind="stable")
        # A climb would leave the levels; of so many points, the best one is close enough to the largest mean.
        best = np.asarray(_highest(gp, points[order[:_STARTS]])) if space.is_real else points[order[0]]
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


def parameters_of_columns(space: SearchSpace) -> tuple[Parameter, ...]:
    """For each column of x the number that it is; a column of levels or activity is one from 0 to 1."""
    return tuple(
        each if isinstance(each, Parameter) and name == each.name else Parameter(name, 0.0, 1.0)
        for each, own in zip(space.parameters, space.slices, strict=True)
        for name in space.columns[own]
    )


def _numbers(space: SearchSpace) -> set[str]:
    return {each.name for each in space.parameters if isinstance(each, Parameter)}


def _points_of(space: SearchSpace, x: Float64[np.ndarray, "n d"]) -> Float64[np.ndarray, "n d"]:
    """The points of a space next to those of its unit cube."""
    return x if space.is_real else space.to_unit(space.from_unit(x))


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
    """The first proposals of a `Tuner` with seed 0 over the whole space, before any result."""
    space = prior.description.search_space
    mapped = prior.description.is_mapped
    region, none = Region.of(space, {}), np.zeros((0, space.dimension))
    tried = np.zeros((0, len(space.parameters)))
    for number in range(PROPOSALS):
        history = History(none, np.zeros(0), _within(space, tried))
        stream = trial_stream(0, number, space.names)
        codes = propose(prior.gp, region, history, stream, mapped=mapped, prior_weight=PRIOR_WEIGHT)
        tried = np.concatenate([tried, codes[None]])
    return _within(space, tried)


def _within(space: SearchSpace, codes: Float64[np.ndarray, "q p"]) -> Float64[np.ndarray, "q d"]:
    return np.clip(coordinates(space, codes), 0.0, 1.0)
