"""Points that are tried at the same time: how the trials that are still running change the next choice.

Every strategy makes an acquisition function of the region's unit cube. Without running trials the first three
are GP-UCB with the paper's online coefficient, Eq. (acfun-ucb).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from hyperbo.acquisition import ONLINE_UCB_COEFFICIENT, upper_confidence_bound
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.posterior import Posterior, condition
from hyperbo.gp.pytree import pytree
from hyperbo.tuning.history import Trials, conditioned_values

BatchStrategy = Literal["kriging_believer", "constant_liar", "local_penalization", "thompson_sampling"]
BATCH_STRATEGIES: tuple[BatchStrategy, ...] = get_args(BatchStrategy)
Acquisition = Callable[[Float[Array, "n d"]], Float[Array, " n"]]
# Where the largest slope of the mean is looked for, and a function drawn from the posterior is known.
_SLOPES, _SAMPLED = 256, 512


def require_strategy(name: str) -> BatchStrategy:
    """The name, if it is that of a strategy.

    Raises:
      InvalidInputError: it is not.
    """
    for known in BATCH_STRATEGIES:
        if name == known:
            return known
    raise InvalidInputError(
        f"unknown batch strategy {name!r}", fix=f"use one of {', '.join(BATCH_STRATEGIES)}"
    )


@pytree
class Box:
    """The region in the prior's coordinates: `start + width * t` for t in the unit cube."""

    start: Float[Array, " d"]
    width: Float[Array, " d"]

    def __call__(self, t: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Points of the region's unit cube in the prior's coordinates."""
        return self.start + self.width * t


@pytree
class UpperConfidenceBound:
    """GP-UCB of points of the region's unit cube."""

    posterior: Posterior
    box: Box

    def __call__(self, t: Float[Array, "n d"]) -> Float[Array, " n"]:
        """The posterior's mean and 1.8 of its standard deviations, noise included."""
        x = self.box(t)
        mean, variance = self.posterior.mean(x), self.posterior.variance(x)
        noise = self.posterior.gp.noise_variance
        return upper_confidence_bound(mean, variance, noise, jnp.zeros_like(noise), ONLINE_UCB_COEFFICIENT)


@pytree
class LocallyPenalised:
    r"""The logarithm of softplus(GP-UCB), less what lies in the balls around the running trials.

    Around a running trial x_j the maximum M cannot be nearer than (M - f(x_j)) / L, where L bounds the slope:

    .. math:: \ln \mathrm{softplus}(\alpha(x)) + \sum_j \ln \Phi\left(
              \frac{L \lVert x - x_j \rVert - M + \mu(x_j)}{\sigma(x_j)} \right)

    Source: Gonzalez, Dai, Hennig and Lawrence, "Batch Bayesian Optimization via Local Penalization", 2016.

    Attributes:
      inner: GP-UCB.
      centres: inputs of all trials.
      pending: which of them run.
      mean: posterior mean there.
      deviation: posterior standard deviation there, never 0.
      slope: L.
      best: M, the largest value so far or posterior mean seen.
    """

    inner: UpperConfidenceBound
    centres: Float[Array, "t d"]
    pending: Bool[Array, " t"]
    mean: Float[Array, " t"]
    deviation: Float[Array, " t"]
    slope: Float[Array, ""]
    best: Float[Array, ""]

    def __call__(self, t: Float[Array, "n d"]) -> Float[Array, " n"]:
        """The penalised score of each point."""
        apart = self.inner.box(t)[:, None, :] - self.centres[None, :, :]
        # The root of zero has no derivative; 1e-12 is far below any distance that matters.
        distance = jnp.sqrt(jnp.sum(apart**2, axis=2) + 1e-12)
        outside = norm.logcdf((self.slope * distance - self.best + self.mean) / self.deviation)
        penalty = jnp.sum(jnp.where(self.pending, outside, 0.0), axis=1)
        return _log_softplus(self.inner(t)) + penalty


def acquisition_of(
    gp: GaussianProcess, trials: Trials, box: Box, strategy: BatchStrategy, mapped: bool
) -> Acquisition:
    """The acquisition function of a strategy that is maximised; that of `thompson_sampling` is `sampled`.

    Args:
      gp: the prior.
      trials: of the run.
      box: the region.
      strategy: `kriging_believer` takes a running trial's value to be the posterior mean, which leaves the
        mean as it is and the variance smaller (Ginsbourger, Le Riche and Carraro 2010); `constant_liar` takes
        it to be the worst value so far (CL-min there); `local_penalization` keeps away from it.
      mapped: whether the prior was trained on mapped values.
    """
    values = conditioned_values(gp, trials, mapped)
    posterior = condition(gp, trials.x, values, trials.finished)
    if strategy == "local_penalization":
        return _penalised(posterior, trials, box, values)
    worst = jnp.min(jnp.where(trials.finished, values, jnp.inf))

    def taken(posterior: Posterior, x: Float[Array, " d"]) -> Float[Array, ""]:
        believed = posterior.mean(x[None])[0]
        if strategy == "kriging_believer":
            return believed
        return jnp.where(jnp.isfinite(worst), worst, believed)

    finished, pending = jnp.sum(trials.finished), jnp.sum(trials.pending)
    believing = lax.fori_loop(
        finished,
        finished + pending,
        lambda row, known: known.observe(trials.x[row], taken(known, trials.x[row])),
        posterior,
    )
    return UpperConfidenceBound(believing, box)


def sampled(
    gp: GaussianProcess,
    trials: Trials,
    box: Box,
    t: Float[Array, "n d"],
    key: PRNGKeyArray,
    mapped: bool,
) -> Float[Array, " n"]:
    """A function drawn from the posterior, at points of the region's unit cube: Thompson sampling.

    Running trials take no part: the draws differ (Kandasamy et al., "Parallelised Bayesian Optimisation via
    Thompson Sampling", AISTATS 2018). Only the first points have a value, the others -inf: the
    covariance of all would be most of the cost of a choice.
    """
    values = conditioned_values(gp, trials, mapped)
    drawn = condition(gp, trials.x, values, trials.finished).sample(key, 1, box(t[:_SAMPLED]))[0]
    return jnp.pad(drawn, (0, max(len(t) - _SAMPLED, 0)), constant_values=-jnp.inf)


def _penalised(
    posterior: Posterior, trials: Trials, box: Box, values: Float[Array, " t"]
) -> LocallyPenalised:
    # The same points for every choice: the slope is that of the mean, not of a draw.
    grid = box(jax.random.uniform(jax.random.key(0), (_SLOPES, trials.x.shape[1]), trials.x.dtype))
    means, pull_back = jax.vjp(posterior.mean, grid)
    # Along a value that is held there is no distance.
    slopes = jnp.where(box.width > 0.0, pull_back(jnp.ones_like(means))[0], 0.0)
    at_trials = posterior.mean(trials.x)
    steepest = jnp.max(jnp.linalg.norm(slopes, axis=1))
    best = jnp.max(jnp.where(trials.finished, values, -jnp.inf))
    tiny = 1e-6 * jnp.sqrt(jnp.mean(posterior.gp.kernel.diagonal(posterior.gp.features(trials.x))))
    return LocallyPenalised(
        UpperConfidenceBound(posterior, box),
        trials.x,
        trials.pending,
        at_trials,
        jnp.maximum(jnp.sqrt(posterior.variance(trials.x)), tiny),
        # A mean that is flat wherever it was looked at has no slope to say how far apart trials should be.
        jnp.maximum(steepest, 1e-3),
        jnp.maximum(best, jnp.max(jnp.where(trials.pending, at_trials, jnp.max(means)))),
    )


def _log_softplus(value: Float[Array, " n"]) -> Float[Array, " n"]:
    """Ln ln(1 + e^v), which for very negative v is v: there the softplus itself would be 0."""
    is_low = value < -30.0
    return jnp.where(is_low, value, jnp.log(jax.nn.softplus(jnp.where(is_low, 0.0, value))))
