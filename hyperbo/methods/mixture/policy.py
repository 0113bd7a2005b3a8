r"""Bayesian optimization by a mixture over Gaussian processes, exact and without a refit.

Notation. Component m = 1, ..., M is a Gaussian process of unknown scale (`hyperbo.methods.mixture.scale`)
with the prior weight :math:`w_m(0)`; the weights sum to 1. Given t - 1 observations it predicts the next one
by the density :math:`p_m(y_t \mid y_1, \ldots, y_{t-1})`, a Student's t, and then has the weight

.. math:: \ln w_m(t) = \ln w_m(t - 1) + \ln p_m(y_t \mid y_1, \ldots, y_{t-1}) - \ln Z_t,

where Z_t makes the weights sum to 1. The product of the predictive densities is the evidence
:math:`p_m(y_1, \ldots, y_t)`, so the weights are the posterior over components (Hoeting, Madigan, Raftery
and Volinsky, "Bayesian Model Averaging: A Tutorial", 1999). The mixture's own evidence is at least any one
term of its sum,

.. math:: p(y_1, \ldots, y_t) = \sum_m w_m(0) \, p_m(y_1, \ldots, y_t)
          \quad\Rightarrow\quad
          -\ln p(y_1, \ldots, y_t) \le -\ln p_m(y_1, \ldots, y_t) + \ln \frac{1}{w_m(0)}
          \quad \text{for every } m,

whatever the observations: its cumulative log loss is within :math:`\ln(1 / w_m(0))` of that of the best
component. With a pre-trained prior of weight 0.9 this is 0.11 nats where that prior is best; where one of 48
uninformed components is, it is :math:`\ln 480 = 6.2` nats. The points may be chosen in any way, also by the
mixture. This bounds predictions.

What it means for the choices: where the observations come from component m, the ratio
:math:`w_m(0) / w_m(t) = p / p_m` is a martingale of mean 1, whatever points are chosen. So by the inequality
of Ville ("Etude critique de la notion de collectif", 1939)

.. math:: \mathrm{P}\left(\text{some } t: \; w_m(t) \le \delta \, w_m(0)\right) \le \delta,

and every chosen point has an expected improvement by the mixture of at least :math:`w_m(t)` times the largest
one by the true component: a prior of weight 0.9 that is right keeps a weight above 0.09 in all trials with a
probability of at least 0.9. A bound on the regret does not follow.

The first choice is the largest mean of the mixture; later ones maximise expected improvement over the best
observation, which is linear in the distribution, so that it is the average of the components'. That of a
component is computed as if its prediction were normal with the mean and the variance of the Student's t:

.. math:: \ln \mathrm{EI}(x) = \ln \sum_m \exp\left(\ln w_m(t) + \ln \mathrm{EI}_m(x)\right).

The state of C candidates, M components and room for t observations takes 8 M t C bytes: 59 MB for 1,500
candidates, 49 components and 100 observations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.acquisition.functions import log_expected_improvement
from hyperbo.compute.pytree import pytree
from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.methods.mixture.scale import log_density, variance_factor
from hyperbo.methods.protocol import Scores


@pytree
class Mixture:
    """Gaussian processes and their weights.

    Attributes:
      groups: the components: processes of one structure are stacked along a leading axis.
      log_weights: ln w_m(0) of the components of all groups, in their order.
    """

    groups: tuple[GaussianProcess, ...]
    log_weights: Float[Array, " m"]


@pytree
class MixtureState:
    """What the observations have made of a mixture.

    Attributes:
      groups: the posterior of each component over the candidates, at the scale 1; groups as in the mixture.
      log_weights: ln w_m(t).
      quadratic: q_m, the sum of squared standardised errors.
      count: number t of observations.
      best: the largest y so far.
    """

    groups: tuple[CandidatePosterior, ...]
    log_weights: Float[Array, " m"]
    quadratic: Float[Array, " m"]
    count: Float[Array, ""]
    best: Float[Array, ""]


@pytree
class MixturePolicy:
    """Weighs the components by their evidence; each is conditioned on the observations, none is fitted."""

    mixture: Mixture

    def start(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int) -> MixtureState:
        """The components before any observation."""
        condition = partial(CandidatePosterior.of, candidates=candidates, capacity=capacity)
        groups = tuple(jax.vmap(condition)(group) for group in self.mixture.groups)
        zero = jnp.zeros((), candidates.dtype)
        log_weights = self.mixture.log_weights
        return MixtureState(groups, log_weights, jnp.zeros_like(log_weights), zero, zero - jnp.inf)

    def score(
        self, state: MixtureState, step: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[MixtureState, Scores]:
        """The mixture's mean before any observation, then the logarithm of its expected improvement."""
        weights = jnp.exp(state.log_weights)
        means, variances = self._predicted(state)
        # What a component of no weight predicts may be no number, and must not count.
        counts = weights[:, None] > 0.0
        means, variances = jnp.where(counts, means, 0.0), jnp.where(counts, variances, 1.0)
        mean = weights @ means
        deviation = jnp.sqrt(weights @ (variances + (means - mean) ** 2))
        improvement = jax.vmap(log_expected_improvement, (0, 0, None, None))
        improvements = improvement(means, variances, jnp.zeros_like(state.best), state.best)
        values = logsumexp(state.log_weights[:, None] + improvements, axis=0)
        return state, Scores(jnp.where(jnp.isneginf(state.best), mean, values), mean, deviation)

    def observe(
        self, state: MixtureState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> MixtureState:
        """Multiply the weights by the predictive densities of y, then condition every component on it."""

        def predicted(known: CandidatePosterior) -> Float[Array, " 2"]:
            return jnp.array([known.mean[candidate], known.variance[candidate] + known.noise_variance])

        mean, variance = _of_components(predicted, state.groups).T
        gained = log_density(y - mean, variance, state.quadratic, state.count)
        # A component whose noise is 0 may predict no number any more: it explains nothing.
        gained = jnp.where(jnp.isnan(gained), -jnp.inf, gained)
        log_weights = jax.nn.log_softmax(state.log_weights + gained)
        observe = partial(CandidatePosterior.observe, step=step, candidate=candidate, y=y)
        return MixtureState(
            tuple(jax.vmap(observe)(group) for group in state.groups),
            log_weights,
            state.quadratic + (y - mean) ** 2 / variance,
            state.count + 1.0,
            jnp.maximum(state.best, y),
        )

    def _predicted(self, state: MixtureState) -> tuple[Float[Array, "m c"], Float[Array, "m c"]]:
        """Mean and variance of an observation, by component and candidate."""
        factor = variance_factor(state.quadratic, state.count)
        means = _of_components(lambda known: known.mean, state.groups)
        noisy = _of_components(lambda known: known.variance + known.noise_variance, state.groups)
        return means, factor[:, None] * noisy


def _of_components(
    function: Callable[[CandidatePosterior], Any], groups: tuple[CandidatePosterior, ...]
) -> Array:
    """A function of every component, along the leading axis; the groups one after another."""
    return jnp.concatenate([jax.vmap(function)(group) for group in groups])
