"""The policy of every method that fits its Gaussian process again before each choice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.compute.optimizers import minimise_lbfgs
from hyperbo.compute.pytree import pytree
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.posterior import predict
from hyperbo.methods.decision import AcquisitionDecision
from hyperbo.methods.protocol import Scores
from hyperbo.objectives.nll import task_nll

# Refits are compiled for a few numbers of rows; early ones need not pay for all that may come.
CAPACITIES = (10, 25, 50, 75, 100)
# A refit ends where an iteration does not lower its objective: at a minimum every further line search fails,
# at twenty evaluations each. A share above 0, as L-BFGS-B has it, made STBO worse (docs/decisions).
CONVERGED = 0.0

# Whatever pytree of unconstrained arrays a refit moves.
Parameters = Any


@runtime_checkable
class Refit(Protocol):
    """How a Gaussian process is fitted to a test task: type-II maximum likelihood, or a posteriori."""

    @property
    def iterations(self) -> int:
        """L-BFGS iterations of each refit."""
        ...

    def model(self, parameters: Parameters) -> GaussianProcess:
        """The Gaussian process with these parameters."""
        ...

    def penalty(self, parameters: Parameters) -> Float[Array, ""]:
        """Negative log density of the parameters under their prior, up to a constant."""
        ...


@dataclass(frozen=True)
class FineTuning:
    """Refit a pre-trained prior to the test task, without a prior on its parameters.

    Section 7.2 "Description of All Compared Methods": re-training is optional for HyperBO; the paper's online
    experiments use it, its offline ones do not.

    Attributes:
      iterations: of L-BFGS, each time from the prior as it was pre-trained.
    """

    iterations: int

    def model(self, parameters: GaussianProcess) -> GaussianProcess:
        """The parameters are the Gaussian process."""
        return parameters

    def penalty(self, parameters: GaussianProcess) -> Float[Array, ""]:
        """Zero: there is no prior on the parameters."""
        return jnp.zeros((), jnp.float64)


@pytree
class RefitState:
    """Observations so far."""

    candidates: Float[Array, "c d"]
    mask: Bool[Array, " c"]
    x: Float[Array, "t d"]
    y: Float[Array, " t"]


@pytree
class RefitPolicy:
    """Refit to the observations before each choice, then score.

    Every refit starts from the same parameters. Started from the last fit instead, the noise variance
    falls to zero in the first fits and, as its gradient vanishes there, never comes back.

    Attributes:
      origin: parameters from which every refit starts, and which hold before the first observation.
      training_tasks: N of the prior; 0 where there was none.
      refit: how to fit.
      decision: how to choose.
      spread: of the training tasks' y, the unit of PI's threshold; 1 where there was none.
    """

    origin: Parameters
    training_tasks: Int[Array, ""]
    refit: Refit = field(metadata={"static": True})
    decision: AcquisitionDecision = field(metadata={"static": True})
    spread: Float[Array, ""] = field(default_factory=lambda: jnp.ones((), jnp.float64))

    def start(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int) -> RefitState:
        """The state without observations."""
        x = jnp.zeros((capacity, candidates.shape[1]), candidates.dtype)
        return RefitState(candidates, mask, x, jnp.zeros(capacity, candidates.dtype))

    def score(self, state: RefitState, step: Int[Array, ""], key: PRNGKeyArray) -> tuple[RefitState, Scores]:
        """Refit and score; before any observation there is nothing to fit."""
        capacity = state.y.shape[0]
        sizes = [0, *sorted({min(size, capacity) for size in (*CAPACITIES, capacity)})]
        models = [self._fitted_to(size) if size else self._unfitted for size in sizes]
        noise_variance, mean, variance = lax.switch(
            jnp.searchsorted(jnp.array(sizes), step), models, self.origin, state, step
        )
        seen = jnp.arange(capacity) < step
        best = jnp.max(jnp.where(seen, state.y, -jnp.inf))
        tasks = self.training_tasks
        return state, self.decision.scores(
            mean, variance, noise_variance, best, state.mask, tasks, step, key, self.spread
        )

    def _fitted_to(self, size: int) -> _Model:
        """The model fitted to the first `step` of `size` rows of observations."""

        def model(origin: Parameters, state: RefitState, step: Array) -> _Moments:
            x, y, mask = state.x[:size], state.y[:size], jnp.arange(size) < step

            # In one vector: L-BFGS on a pytree spends more on its many small operations than on the NLL.
            start, unravel = ravel_pytree(origin)

            def negative_log_posterior(flat: Array) -> Array:
                parameters = unravel(flat)
                return task_nll(self.refit.model(parameters), x, y, mask)[0] + self.refit.penalty(parameters)

            found, _ = minimise_lbfgs(negative_log_posterior, start, self.refit.iterations, CONVERGED)
            gp = self.refit.model(unravel(found))
            return gp.noise_variance, *predict(gp, x, y, mask, state.candidates)

        return model

    def _unfitted(self, origin: Parameters, state: RefitState, step: Array) -> _Moments:
        gp = self.refit.model(origin)
        features = gp.features(state.candidates)
        return gp.noise_variance, gp.mean(features), gp.kernel.diagonal(features)

    def observe(
        self, state: RefitState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> RefitState:
        """Record the observation."""
        return replace(state, x=state.x.at[step].set(state.candidates[candidate]), y=state.y.at[step].set(y))


# Noise variance, and mean and variance at the candidates; and what gives them.
_Moments = tuple[Array, Array, Array]
_Model = Callable[[Parameters, RefitState, Array], _Moments]
