"""CTS and CGP: transfer of the distribution of values, each task's brought to normal scores by its ranks.

Salinas, Shen and Perrone, "A quantile-based approach for hyperparameter transfer learning", ICML 2020: copula
Thompson sampling and copula Gaussian process.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.compute.parallel import stack
from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.gp.numerics import double_precision
from hyperbo.gp.posterior import predict
from hyperbo.methods.decision import AcquisitionDecision
from hyperbo.methods.protocol import Scores
from hyperbo.methods.transfer.observed import Observed, best_explaining
from hyperbo.methods.transfer.quantiles import Quantiles, QuantileTraining, fit_quantiles, normal_scores
from hyperbo.pretrain.jobs import Job, Progress, no_progress


@dataclass(frozen=True)
class CTS:
    """Settings of copula Thompson sampling: the largest of draws from N(m(x), s(x)^2) is observed next.

    What the run observes changes nothing.

    Attributes:
      training: of m and s.
    """

    training: QuantileTraining = field(default_factory=QuantileTraining)

    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[Quantiles]:
        """The distribution of normal scores at each input, over the training tasks of each job."""
        return fit_quantiles(self.training, jobs, progress)

    def policy(self, fitted: Quantiles, task: Task) -> CTSPolicy:
        """Of the test task only the candidates are used."""
        return CTSPolicy(fitted)


@pytree
class CTSState:
    """Mean and standard deviation of the normal score at each candidate."""

    mean: Float[Array, " c"]
    deviation: Float[Array, " c"]


@pytree
class CTSPolicy:
    """Scores candidates by independent draws of their normal scores; it predicts ranks, not values."""

    quantiles: Quantiles

    def start(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int) -> CTSState:
        """The learned distribution at the candidates."""
        return CTSState(*self.quantiles(candidates))

    def score(self, state: CTSState, step: Int[Array, ""], key: PRNGKeyArray) -> tuple[CTSState, Scores]:
        """A draw for every candidate."""
        draws = jax.random.normal(key, state.mean.shape, state.mean.dtype)
        return state, Scores.without_prediction(state.mean + state.deviation * draws)

    def observe(
        self, state: CTSState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> CTSState:
        """Forget the observation."""
        return state


@dataclass(frozen=True)
class CGP:
    """Settings of the copula Gaussian process: one on what the learned distribution leaves unexplained.

    Its residual (z - m(x)) / s(x) has a Gaussian process of mean 0 and variance 1, Matern 5/2. Length scale
    and noise are those of a grid under which the observations are most probable.

    Attributes:
      training: of m and s.
      lengthscales: of the grid, the same for all inputs of the unit cube.
      noise_variances: of the grid.
      decision: expected improvement of the normal score.
    """

    training: QuantileTraining = field(default_factory=QuantileTraining)
    lengthscales: tuple[float, ...] = (0.1, 0.2, 0.5, 1.0, 2.0)
    noise_variances: tuple[float, ...] = (1e-3, 1e-2, 1e-1)
    decision: AcquisitionDecision = field(default_factory=lambda: AcquisitionDecision("expected_improvement"))

    def __post_init__(self) -> None:
        self.decision.require_no_correction("CGP")
        for name in ("lengthscales", "noise_variances"):
            values = getattr(self, name)
            if not values or not all(0.0 < value < float("inf") for value in values):
                raise InvalidInputError(f"{name} = {values}", where="CGP", fix="give positive numbers")

    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[Quantiles]:
        """The distribution of normal scores at each input, over the training tasks of each job."""
        return fit_quantiles(self.training, jobs, progress)

    @double_precision
    def policy(self, fitted: Quantiles, task: Task) -> CGPPolicy:
        """Of the test task it uses the observations only."""
        grid = [
            initialise(
                jax.random.key(0),
                task.x.shape[1],
                Architecture((), 1.0, lengthscale, noise_variance, mean="zero"),
            )
            for lengthscale, noise_variance in itertools.product(self.lengthscales, self.noise_variances)
        ]
        return CGPPolicy(fitted, stack(grid), self.decision)


@pytree
class CGPState:
    """What is learned of the candidates, and the observations."""

    candidates: Float[Array, "c d"]
    mask: Bool[Array, " c"]
    mean: Float[Array, " c"]
    deviation: Float[Array, " c"]
    observed: Observed


@pytree
class CGPPolicy:
    """Scores candidates by the process of the residual; it predicts ranks, not values."""

    quantiles: Quantiles
    grid: GaussianProcess
    decision: AcquisitionDecision = field(metadata={"static": True})

    def start(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int) -> CGPState:
        """The learned distribution at the candidates."""
        observed = Observed.none(capacity, candidates.dtype)
        return CGPState(candidates, mask, *self.quantiles(candidates), observed)

    def score(self, state: CGPState, step: Int[Array, ""], key: PRNGKeyArray) -> tuple[CGPState, Scores]:
        """The acquisition function of the normal score at every candidate."""
        chosen, seen = state.observed.candidates, state.observed.seen(step)
        z = normal_scores(state.observed.y, seen)
        residual = jnp.where(seen, (z - state.mean[chosen]) / state.deviation[chosen], 0.0)
        x = state.candidates[chosen]
        gp = best_explaining(self.grid, x, residual, seen)
        mean, variance = predict(gp, x, residual, seen, state.candidates)
        moments = (
            state.mean + state.deviation * mean,
            state.deviation**2 * (variance + gp.noise_variance),
            jnp.zeros((), z.dtype),
        )
        best = jnp.max(jnp.where(seen, z, -jnp.inf))
        scores = self.decision.scores(*moments, best, state.mask, jnp.zeros((), jnp.int32), step, key)
        return state, Scores.without_prediction(scores.values)

    def observe(
        self, state: CGPState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> CGPState:
        """Record the observation."""
        return replace(state, observed=state.observed.add(step, candidate, y))
