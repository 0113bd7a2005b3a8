"""A prior over planes and along lines through a point: means, deviations, functions, correlations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Float64

from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.kernels import Stationary
from hyperbo.gp.posterior import condition

FUNCTIONS, HALF = 5, 0.5
_CELLS, _STEPS, _FINE_STEPS = 48, 101, 1001


@dataclass(frozen=True)
class Planes:
    """The prior over each pair of parameters; the other parameters are fixed at one point.

    Attributes:
      pairs: columns of x of the first and second parameter of each plane.
      at: coordinates along both parameters.
      mean: prior mean, by plane, second and first parameter.
      deviation: standard deviation of the function, by the same axes.
      after_trial: whether the deviation is that after a trial at the point. It is so for a stationary kernel,
        whose prior deviation is the same everywhere.
    """

    pairs: tuple[tuple[int, int], ...]
    at: Float64[np.ndarray, " c"]
    mean: Float64[np.ndarray, "p c c"]
    deviation: Float64[np.ndarray, "p c c"]
    after_trial: bool


@dataclass(frozen=True)
class Slices:
    """The prior along each parameter; the other parameters are fixed at one point.

    Attributes:
      at: coordinates along the parameter.
      mean: prior mean.
      deviation: standard deviation of the function.
      functions: functions drawn from the prior; a function is the same one in all slices.
      correlation: correlation of the function with its value at the point.
      half: coordinates below and above the point at which the correlation first falls to 1/2; NaN if it stays
        larger within the range.
    """

    at: Float64[np.ndarray, " s"]
    mean: Float64[np.ndarray, "d s"]
    deviation: Float64[np.ndarray, "d s"]
    functions: Float64[np.ndarray, "f d s"]
    correlation: Float64[np.ndarray, "d s"]
    half: Float64[np.ndarray, "d 2"]


@jax.jit
def marginals(
    gp: GaussianProcess, x: Float[Array, "n d"]
) -> tuple[Float[Array, "n e"], Float[Array, " n"], Float[Array, " n"]]:
    """Features, prior means and prior standard deviations at points x."""
    features = gp.features(x)
    return features, gp.mean(features), jnp.sqrt(gp.kernel.diagonal(features))


def planes_through(gp: GaussianProcess, best: Float64[np.ndarray, " d"], axes: Sequence[int]) -> Planes:
    """The prior over each pair of some columns of x, through one point; needs 64-bit JAX."""
    pairs = tuple(itertools.combinations(axes, 2))
    at = np.linspace(0.0, 1.0, _CELLS)
    x = np.tile(best, (len(pairs), _CELLS, _CELLS, 1))
    for plane, (first, second) in zip(x, pairs, strict=True):
        plane[:, :, first], plane[:, :, second] = at, at[:, None]
    is_stationary = isinstance(gp.kernel, Stationary)
    flat = x.reshape(len(pairs), -1, len(best))
    moments = _moments_of_planes(gp, flat, best[None], jnp.array([is_stationary]))
    mean, deviation = (np.asarray(each).reshape(-1, _CELLS, _CELLS) for each in moments)
    return Planes(pairs, at, mean, deviation, is_stationary)


@jax.jit
def _moments_of_planes(
    gp: GaussianProcess, x: Float[Array, "p n d"], tried: Float[Array, "t d"], mask: Bool[Array, " t"]
) -> tuple[Float[Array, "p n"], Float[Array, "p n"]]:
    """Prior means, and standard deviations after the trials in the mask."""
    # The variance does not depend on the value of the trial.
    known = condition(gp, tried, jnp.zeros(len(mask)), mask)
    # One plane at a time, because the features of all take much memory.
    return lax.map(lambda plane: (gp.mean(gp.features(plane)), jnp.sqrt(known.variance(plane))), x)


def slices_through(gp: GaussianProcess, best: Float64[np.ndarray, " d"]) -> Slices:
    """The prior along each parameter, through one point; needs 64-bit JAX."""
    at = np.linspace(0.0, 1.0, _STEPS)
    mean, deviation, functions, correlation = map(np.asarray, _moments_of_slices(gp, _along(best, at), best))
    share = np.linspace(0.0, 1.0, _FINE_STEPS)
    half = np.empty((len(best), 2))
    for side, edge in enumerate((0.0, 1.0)):
        # All axes at once, each from the point to its edge.
        x = np.tile(best, (len(best), _FINE_STEPS, 1))
        for axis, slice_ in enumerate(x):
            slice_[:, axis] += share * (edge - best[axis])
        fine = np.asarray(_correlation(gp, x.reshape(-1, len(best)), best)).reshape(len(best), -1)
        reached = np.array([_first_half(share, each) for each in fine])
        half[:, side] = best + reached * (edge - best)
    return Slices(at, mean, deviation, functions, correlation, half)


def _along(best: Float64[np.ndarray, " d"], at: Float64[np.ndarray, " s"]) -> Float64[np.ndarray, "d s d"]:
    """Points along each axis, through one point."""
    x = np.tile(best, (len(best), len(at), 1))
    for axis, slice_ in enumerate(x):
        slice_[:, axis] = at
    return x


@jax.jit
def _moments_of_slices(
    gp: GaussianProcess, x: Float[Array, "d s d"], best: Float[Array, " d"]
) -> tuple[Float[Array, "d s"], Float[Array, "d s"], Float[Array, "f d s"], Float[Array, "d s"]]:
    """Means, standard deviations, functions, and correlations with the value at a point."""
    flat = x.reshape(-1, x.shape[2])
    _, mean, deviation = marginals(gp, flat)
    nothing_known = condition(gp, best[None], jnp.zeros(1), jnp.zeros(1, bool))
    functions = nothing_known.sample(jax.random.key(0), FUNCTIONS, flat)
    shape = x.shape[:2]
    correlation = _correlation(gp, flat, best).reshape(shape)
    return mean.reshape(shape), deviation.reshape(shape), functions.reshape(-1, *shape), correlation


@jax.jit
def _correlation(
    gp: GaussianProcess, x: Float[Array, "n d"], point: Float[Array, " d"]
) -> Float[Array, " n"]:
    """Correlation of the function's value at one point with those at others; 0 for a variance of 0."""
    features, at_point = gp.features(x), gp.features(point[None])
    variances = gp.kernel.diagonal(features) * gp.kernel.diagonal(at_point)
    return gp.kernel(features, at_point)[:, 0] / jnp.sqrt(jnp.maximum(variances, jnp.finfo(x.dtype).tiny))


def _first_half(share: Float64[np.ndarray, " n"], correlation: Float64[np.ndarray, " n"]) -> float:
    """The first share of the way at which the correlation falls to 1/2; NaN if it never does."""
    below = np.flatnonzero(correlation < HALF)
    if not len(below) or below[0] == 0:
        return np.nan
    last, next_ = below[0] - 1, below[0]
    part = (correlation[last] - HALF) / (correlation[last] - correlation[next_])
    return float(share[last] + part * (share[next_] - share[last]))
