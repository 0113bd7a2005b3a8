r"""The prior of a tuner in a mixture with uninformed Gaussian processes, conditioned at any input.

The mathematics is that of `hyperbo.methods.mixture.policy` and `hyperbo.methods.mixture.scale`. Here the
values change with every trial, because they are mapped over the trials so far. So the weights are computed
anew from the evidence each time,

.. math:: \ln w_m(t) = \ln w_m(0) + \ln p_m(y_1, \ldots, y_e) - \ln Z, \qquad e = \min(t, 64),

and of the uninformed components only those of largest weight are conditioned. Both bounds keep the time of a
proposal within about twice that of the prior alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from hyperbo.acquisition.functions import log_expected_improvement
from hyperbo.bayesopt.history import PaddedHistory
from hyperbo.compute.pytree import pytree
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.posterior import Posterior, condition
from hyperbo.methods.mixture.scale import log_evidence, variance_factor
from hyperbo.methods.mixture.uninformed import UNINFORMED, uninformed_processes
from hyperbo.methods.universal.extended import unit_of_prior
from hyperbo.methods.universal.space_mixture import SpaceMixture

# Number of trials whose evidence weighs the components.
EVIDENCE = 64
# Rows of all uninformed components that are kept, together; one component is kept however many rows it has.
KEPT_ROWS = 512
# Components of less weight are not computed.
_NEGLIGIBLE = 1e-6


@pytree
class MixturePosterior:
    """The components that are kept, given the trials.

    Attributes:
      prior: the pre-trained process.
      others: the uninformed processes, stacked along a leading axis.
      log_weights: of the prior, then of the others; they sum to 1.
      factors: by what their variances, those of function and noise, are multiplied: the expected scales.
    """

    prior: Posterior
    others: Posterior
    log_weights: Float[Array, " m"]
    factors: Float[Array, " m"]

    def components(self, x: Float[Array, "n d"]) -> tuple[Array, Array, Array]:
        """Mean and variance of the function by component and row, and noise variance by component.

        A component of negligible weight is taken for a standard normal one.
        """

        def moments(known: Posterior) -> tuple[Array, Array, Array]:
            # A prior that was unpickled where JAX's default is float32 has parameters of that type.
            return known.mean(x), known.variance(x), known.gp.noise_variance.astype(x.dtype)

        def nothing(*shape: int) -> tuple[Array, Array, Array]:
            zeros = jnp.zeros((*shape, len(x)), x.dtype)
            return zeros, zeros + 1.0, jnp.zeros(shape, x.dtype)

        counts = self.counts
        first = lax.cond(counts[0], lambda: moments(self.prior), nothing)
        rest = lax.cond(
            jnp.any(counts[1:]), lambda: jax.vmap(moments)(self.others), lambda: nothing(len(counts) - 1)
        )
        mean, variance, noise = (
            jnp.concatenate([one[None], several]) for one, several in zip(first, rest, strict=True)
        )
        shown, variance, noise = counts[:, None], self.factors[:, None] * variance, self.factors * noise
        return jnp.where(shown, mean, 0.0), jnp.where(shown, variance, 1.0), jnp.where(counts, noise, 0.0)

    @property
    def counts(self) -> Bool[Array, " m"]:
        """Which components have more than a negligible weight."""
        return self.log_weights > math.log(_NEGLIGIBLE)

    @property
    def kept_log_weights(self) -> Float[Array, " m"]:
        """The logarithms of the weights, -inf where they are negligible."""
        return jnp.where(self.counts, self.log_weights, -jnp.inf)

    def moments(self, x: Float[Array, "n d"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Mean and variance of the function, by the law of total variance."""
        means, variances, _ = self.components(x)
        weights = jnp.exp(self.kept_log_weights)
        mean = weights @ means
        return mean, weights @ (variances + (means - mean) ** 2)

    def mean(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Mean of the function."""
        return self.moments(x)[0]

    def taking(
        self, x: Float[Array, " d"], taken: Callable[[Float[Array, ""]], Float[Array, ""]]
    ) -> MixturePosterior:
        """Given one more trial, whose value each component takes by its own mean; the weights stay."""

        def observe(known: Posterior) -> Posterior:
            return known.observe(x, taken(known.mean(x[None])[0]))

        others = jax.vmap(observe)(self.others)
        return MixturePosterior(observe(self.prior), others, self.log_weights, self.factors)

    def sample(self, key: PRNGKeyArray, at: Float[Array, "n d"]) -> Float[Array, " n"]:
        """A function of one component, which is drawn by the weights; its scale is the expected one."""
        component_key, key = jax.random.split(key)
        drawn = jax.random.categorical(component_key, self.log_weights)
        other = jax.tree.map(lambda leaf: leaf[jnp.maximum(drawn - 1, 0)], self.others)

        def draw(known: Posterior) -> Float[Array, " n"]:
            mean = known.mean(at)
            return mean + jnp.sqrt(self.factors[drawn]) * (known.sample(key, 1, at)[0] - mean)

        return lax.cond(drawn == 0, lambda: draw(self.prior), lambda: draw(other))


@pytree
class LogImprovement:
    """The logarithm of the mixture's expected improvement over the best value; without trials its mean.

    Attributes:
      best: the largest value of a trial, taken or told; -inf where there is no trial.
    """

    posterior: MixturePosterior
    best: Float[Array, ""]

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """The score of each row."""
        mean, variance, noise = self.posterior.components(x)
        improvement = jax.vmap(log_expected_improvement, (0, 0, 0, None))(mean, variance, noise, self.best)
        averaged = logsumexp(self.posterior.kept_log_weights[:, None] + improvement, axis=0)
        return jnp.where(jnp.isneginf(self.best), jnp.exp(self.posterior.kept_log_weights) @ mean, averaged)


def mixture_posterior(
    gp: GaussianProcess | SpaceMixture,
    prior_weight: float,
    history: PaddedHistory,
    values: Float[Array, " t"],
    mapped: bool,
) -> MixturePosterior:
    """The mixture given the trials that have ended.

    Args:
      gp: the prior; of a `SpaceMixture`, which has its own weights and no others, the likeliest processes.
      prior_weight: its weight before any trial, between 0 and 1.
      history: of the run so far.
      values: of the ended trials, in the unit of the prior.
      mapped: whether that unit is that of values mapped to [-2, 2].
    """
    capacity, dimension = history.x.shape
    rows = min(capacity, EVIDENCE)
    seen = history.x[:rows], values[:rows], history.ended[:rows]

    def evidence(process: GaussianProcess) -> Float[Array, ""]:
        value = log_evidence(process, *seen)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    def given(process: GaussianProcess) -> Posterior:
        return condition(process, history.x, values, history.ended)

    most = max(1, KEPT_ROWS // capacity)
    if isinstance(gp, SpaceMixture):
        likely, places = lax.top_k(
            gp.log_weights + jax.vmap(evidence)(gp.processes), min(len(gp.log_weights), 1 + most)
        )
        both = jax.vmap(given)(jax.tree.map(lambda leaf: leaf[places], gp.processes))
        prior, conditioned = (jax.tree.map(lambda leaf, at=at: leaf[at], both) for at in (0, np.s_[1:]))
    else:
        centre, spread = (0.0, 1.0) if mapped else unit_of_prior(gp, dimension)
        others = uninformed_processes(UNINFORMED, dimension, centre, spread)
        of_prior = math.log(prior_weight) + evidence(gp)
        of_others = math.log((1.0 - prior_weight) / UNINFORMED) + jax.vmap(evidence)(others)
        kept, places = lax.top_k(of_others, min(UNINFORMED, most))
        likely = jnp.append(of_prior, kept)
        prior = given(gp)
        conditioned = jax.vmap(given)(jax.tree.map(lambda leaf: leaf[places], others))
    quadratic = jnp.append(jnp.sum(prior.whitened**2), jnp.sum(conditioned.whitened**2, axis=1))
    factors = variance_factor(quadratic, history.ended_count.astype(values.dtype))
    return MixturePosterior(prior, conditioned, jax.nn.log_softmax(likely), factors)
