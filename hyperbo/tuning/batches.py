"""Trials that run at the same time: how the running trials change the next proposal.

Every strategy gives an acquisition function of the prior's coordinates. Without running trials the first
three are the expected improvement of the mixture (`hyperbo.tuning.mixture`), or, for the prior alone, GP-UCB,
Eq. 21 (acfun-ucb), with the paper's online coefficient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from hyperbo.acquisition import ONLINE_UCB_COEFFICIENT
from hyperbo.bayesopt.history import PaddedHistory, conditioned_values
from hyperbo.bayesopt.propose import UpperConfidenceBound
from hyperbo.compute.pytree import pytree
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.posterior import Posterior, condition
from hyperbo.tuning.mixture import LogImprovement, MixturePosterior, mixture_posterior

BatchStrategy = Literal["kriging_believer", "constant_liar", "local_penalization", "thompson_sampling"]
BATCH_STRATEGIES: tuple[BatchStrategy, ...] = get_args(BatchStrategy)
Acquisition = Callable[[Float[Array, "n d"]], Float[Array, " n"]]
# Number of points at which the slope of the mean is computed, and at which a function is drawn.
_SLOPES, _SAMPLED = 256, 512


def require_strategy(name: str) -> BatchStrategy:
    """Check the name of a strategy, and return it.

    Raises:
      InvalidInputError: there is no such strategy.
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
class Anchored:
    """A score as a function of the region's unit cube, of which each row moves some coordinates only.

    Attributes:
      inner: the score, in the prior's coordinates.
      box: the region.
      anchors: points in the prior's coordinates.
      moves: the coordinates in which a row leaves its anchor.
    """

    inner: Acquisition
    box: Box
    anchors: Float[Array, "n d"]
    moves: Bool[Array, "n d"]

    def at(self, t: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The rows in the prior's coordinates."""
        return jnp.where(self.moves, self.box(t), self.anchors)

    def __call__(self, t: Float[Array, "n d"]) -> Float[Array, " n"]:
        """The score of each row."""
        return self.inner(self.at(t))


@pytree
class LocallyPenalised:
    r"""The logarithm of a positive score, with a penalty in the balls around the running trials.

    The score is softplus(GP-UCB), or the expected improvement of the mixture. The maximum M cannot be nearer
    to a running trial x_j than (M - f(x_j)) / L, where L bounds the slope:

    .. math:: \ln \alpha(x) + \sum_j \ln \Phi\left(
              \frac{L \lVert x - x_j \rVert - M + \mu(x_j)}{\sigma(x_j)} \right)

    Source: Gonzalez, Dai, Hennig and Lawrence, "Batch Bayesian Optimization via Local Penalization", 2016.

    Attributes:
      centres: inputs of all trials; `pending` says which are running.
      deviation: posterior standard deviation there, never 0; `mean` likewise.
      best: M, the largest value so far or the largest posterior mean found; `slope` is L.
    """

    score: UpperConfidenceBound | LogImprovement
    centres: Float[Array, "t d"]
    pending: Bool[Array, " t"]
    mean: Float[Array, " t"]
    deviation: Float[Array, " t"]
    slope: Float[Array, ""]
    best: Float[Array, ""]

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """The penalised score of each point."""
        apart = x[:, None, :] - self.centres[None, :, :]
        # The root of zero has no derivative; 1e-12 is far below any distance that matters.
        distance = jnp.sqrt(jnp.sum(apart**2, axis=2) + 1e-12)
        outside = norm.logcdf((self.slope * distance - self.best + self.mean) / self.deviation)
        penalty = jnp.sum(jnp.where(self.pending, outside, 0.0), axis=1)
        score = self.score(x)
        is_logarithm = isinstance(self.score, LogImprovement)
        return (score if is_logarithm else _log_softplus(score)) + penalty


def acquisition_of(
    gp: GaussianProcess,
    history: PaddedHistory,
    box: Box,
    strategy: BatchStrategy,
    mapped: bool,
    prior_weight: float,
) -> Acquisition:
    """The acquisition function that a strategy maximises; for `thompson_sampling` see `sampled`.

    `kriging_believer` assumes that a running trial has the value of the posterior mean, which leaves the mean
    unchanged and the variance smaller (Ginsbourger, Le Riche and Carraro 2010). `constant_liar` assumes the
    worst value so far (their CL-min). `local_penalization` penalises points near running trials. In a mixture
    each component believes its own mean.
    """
    values = conditioned_values(gp, history, mapped)
    if prior_weight < 1.0:
        posterior = mixture_posterior(gp, prior_weight, history, values, mapped)
    else:
        posterior = condition(gp, history.x, values, history.ended)
    if strategy == "local_penalization":
        return _penalised(posterior, history, box, values)
    worst = jnp.min(jnp.where(history.ended, values, jnp.inf))

    def taken(believed: Float[Array, "*n"]) -> Float[Array, "*n"]:
        if strategy == "kriging_believer":
            return believed
        return jnp.where(jnp.isfinite(worst), worst, believed)

    def take(row: Array, known: Any) -> Any:
        x = history.x[row]
        if isinstance(known, MixturePosterior):
            return known.taking(x, taken)
        return known.observe(x, taken(known.mean(x[None])[0]))

    trials = history.ended_count + history.pending_count
    believing = lax.fori_loop(history.ended_count, trials, take, posterior)
    return _score(believing, history, values, taken(posterior.mean(history.x)))


def sampled(
    gp: GaussianProcess,
    history: PaddedHistory,
    x: Float[Array, "n d"],
    key: PRNGKeyArray,
    mapped: bool,
    prior_weight: float,
) -> Float[Array, " n"]:
    """A function drawn from the posterior, at points in the prior's coordinates: Thompson sampling.

    Of a mixture, first a component is drawn. Running trials are ignored, because the draws of different
    trials differ (Kandasamy et al., "Parallelised Bayesian Optimisation via Thompson Sampling", AISTATS
    2018). Only the first points get a value, the others -inf: the covariance of all points would be most of
    the cost.
    """
    values = conditioned_values(gp, history, mapped)
    at = x[:_SAMPLED]
    if prior_weight < 1.0:
        drawn = mixture_posterior(gp, prior_weight, history, values, mapped).sample(key, at)
    else:
        drawn = condition(gp, history.x, values, history.ended).sample(key, 1, at)[0]
    return jnp.pad(drawn, (0, max(len(x) - _SAMPLED, 0)), constant_values=-jnp.inf)


def _score(
    posterior: Posterior | MixturePosterior,
    history: PaddedHistory,
    values: Float[Array, " t"],
    running: Float[Array, " t"],
) -> UpperConfidenceBound | LogImprovement:
    """GP-UCB of a process, expected improvement of a mixture over the values of ended and running trials."""
    if isinstance(posterior, Posterior):
        coefficient = jnp.asarray(ONLINE_UCB_COEFFICIENT, values.dtype)
        return UpperConfidenceBound(posterior, coefficient)
    known = jnp.where(history.pending, running, jnp.where(history.ended, values, -jnp.inf))
    return LogImprovement(posterior, jnp.max(known))


def _penalised(
    posterior: Posterior | MixturePosterior, history: PaddedHistory, box: Box, values: Float[Array, " t"]
) -> LocallyPenalised:
    # The same points for every proposal: the slope is that of the mean, not of a draw.
    grid = box(jax.random.uniform(jax.random.key(0), (_SLOPES, history.x.shape[1]), history.x.dtype))
    means, pull_back = jax.vjp(posterior.mean, grid)
    # Along a value that is held there is no distance.
    slopes = jnp.where(box.width > 0.0, pull_back(jnp.ones_like(means))[0], 0.0)
    at_trials = posterior.mean(history.x)
    steepest = jnp.max(jnp.linalg.norm(slopes, axis=1))
    best = jnp.max(jnp.where(history.ended, values, -jnp.inf))
    variance = (
        posterior.variance(history.x) if isinstance(posterior, Posterior) else posterior.moments(history.x)[1]
    )
    gp = posterior.gp if isinstance(posterior, Posterior) else posterior.prior.gp
    tiny = 1e-6 * jnp.sqrt(jnp.mean(gp.kernel.diagonal(gp.features(history.x))))
    return LocallyPenalised(
        _score(posterior, history, values, at_trials),
        history.x,
        history.pending,
        at_trials,
        jnp.maximum(jnp.sqrt(variance), tiny),
        # A mean that is flat at all these points has no slope that could keep trials apart.
        jnp.maximum(steepest, 1e-3),
        jnp.maximum(best, jnp.max(jnp.where(history.pending, at_trials, jnp.max(means)))),
    )


def _log_softplus(value: Float[Array, " n"]) -> Float[Array, " n"]:
    """The logarithm of softplus, ln ln(1 + e^v); for very negative v it is v, where softplus would be 0."""
    is_low = value < -30.0
    return jnp.where(is_low, value, jnp.log(jax.nn.softplus(jnp.where(is_low, 0.0, value))))
