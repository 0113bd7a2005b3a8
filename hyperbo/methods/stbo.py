"""STBO: single-task Bayesian optimization, its Gaussian process refitted to the test task alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperbo.acquisition import probability_of_improvement
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.gp.kernels import Stationary
from hyperbo.gp.numerics import double_precision, softplus
from hyperbo.gp.posterior import predict
from hyperbo.gp.pytree import pytree
from hyperbo.objectives import task_nll
from hyperbo.optimizers import minimise_lbfgs
from hyperbo.parameter_priors import LogNormal, Normal

# Refits are compiled for a few numbers of rows; early ones need not pay for all that may come.
CAPACITIES = (10, 25, 50, 100)


@dataclass(frozen=True)
class STBO:
    """Settings of STBO, section "Description of All Compared Methods": H-NLL's structure, no training tasks.

    Attributes:
      architecture: as H-NLL's.
      iterations: of L-BFGS in each refit.
      log_scale: standard deviation of the Lognormal(0, 0.1) prior on lengthscales and signal variance.
      noise_scale: standard deviation of the Normal(0, 0.1) prior on the noise variance.
    """

    architecture: Architecture = field(default_factory=Architecture)
    iterations: int = 100
    log_scale: float = 0.1
    noise_scale: float = 0.1

    @double_precision
    def policy(self, dimension: int, seed: int) -> STBOPolicy:
        """The policy of one seed: the seed draws the network that every run of it starts from."""
        gp = initialise(jax.random.key(seed), dimension, self.architecture)
        return STBOPolicy(gp, self)


def penalty(gp: GaussianProcess, settings: STBO) -> Float[Array, ""]:
    """Negative log density, up to a constant, of the priors on the positive parameters.

    Lognormal(0, s) on lengthscales and signal variance, Normal(0, s) on the noise variance.

    Raises:
      InvalidInputError: the kernel has no lengthscales.
    """
    if not isinstance(gp.kernel, Stationary):
        raise InvalidInputError(
            f"the kernel {type(gp.kernel).__name__} has no lengthscales, which STBO has priors on",
            where="STBO",
            fix="choose squared_exponential, matern32 or matern52",
        )
    positive = softplus(jnp.append(gp.kernel.raw_lengthscales, gp.kernel.raw_signal_variance))
    lognormal = jnp.sum(LogNormal(0.0, settings.log_scale).penalty(positive))
    return lognormal + Normal(0.0, settings.noise_scale).penalty(gp.noise_variance)


@pytree
class STBOState:
    """Observations so far."""

    candidates: Float[Array, "c d"]
    x: Float[Array, "t d"]
    y: Float[Array, " t"]


@pytree
class STBOPolicy:
    """Refit by type-II maximum likelihood before each choice, then thresholded PI.

    Every refit starts from the network as drawn. Started from the last fit instead, the noise variance
    falls to zero in the first fits and, as its gradient vanishes there, never comes back.
    """

    gp: GaussianProcess
    settings: STBO = field(metadata={"static": True})

    def start(self, candidates: Float[Array, "c d"], capacity: int) -> STBOState:
        """No observations."""
        x = jnp.zeros((capacity, candidates.shape[1]), candidates.dtype)
        return STBOState(candidates, x, jnp.zeros(capacity, candidates.dtype))

    def score(
        self, state: STBOState, step: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[STBOState, Float[Array, " c"]]:
        """Refit and score by thresholded PI; before any observation there is nothing to fit."""
        capacity = state.y.shape[0]
        sizes = [0, *sorted({min(size, capacity) for size in (*CAPACITIES, capacity)})]
        models = [self.fit_to(size) if size else _as_drawn for size in sizes]
        gp, mean, variance = lax.switch(
            jnp.searchsorted(jnp.array(sizes), step), models, self.gp, state, step
        )
        seen = jnp.arange(capacity) < step
        best = jnp.max(jnp.where(seen, state.y, -jnp.inf))
        return state, probability_of_improvement(mean, variance, gp.noise_variance, best)

    def fit_to(self, size: int) -> _Model:
        """The model fitted to the first `step` of `size` rows of observations."""

        def model(gp: GaussianProcess, state: STBOState, step: Array) -> _Moments:
            x, y, mask = state.x[:size], state.y[:size], jnp.arange(size) < step

            def negative_log_posterior(gp: GaussianProcess) -> Array:
                return task_nll(gp, x, y, mask)[0] + penalty(gp, self.settings)

            gp, _ = minimise_lbfgs(negative_log_posterior, gp, self.settings.iterations)
            return gp, *predict(gp, x, y, mask, state.candidates)

        return model

    def observe(
        self, state: STBOState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> STBOState:
        """Write the observation down."""
        return replace(state, x=state.x.at[step].set(state.candidates[candidate]), y=state.y.at[step].set(y))


# A Gaussian process with its mean and variance at the candidates, and what gives one.
_Moments = tuple[GaussianProcess, Array, Array]
_Model = Callable[[GaussianProcess, STBOState, Array], _Moments]


def _as_drawn(gp: GaussianProcess, state: STBOState, step: Array) -> _Moments:
    features = gp.features(state.candidates)
    return gp, gp.mean(features), gp.kernel.diagonal(features)
