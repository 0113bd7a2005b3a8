"""EGP: a prior whose mean and covariance on the matched inputs are estimated from the training tasks by EM.

Lin, Ament, Tiao, Eriksson, Balandat and Bakshy, "Empirical Gaussian Processes", ICML 2026, arXiv 2602.12082.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.compute.optimizers import minimise_lbfgs
from hyperbo.compute.parallel import batched, pad_batch, unstack
from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task, TuningData
from hyperbo.errors import InvalidInputError, NumericalError, require_positive
from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.gp.em import EmpiricalMoments, em_step
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.gp.numerics import double_precision, factorise
from hyperbo.methods.decision import AcquisitionDecision
from hyperbo.methods.pretrained import GPState
from hyperbo.methods.protocol import Scores
from hyperbo.objectives.nll import task_nll
from hyperbo.pretrain.jobs import Job, Progress, all_trained, check_jobs, no_progress

# Of the kernel's variance, at which the matched inputs are interpolated: two that are close stay apart.
INTERPOLATION_NOISE = 1e-10


@dataclass(frozen=True)
class EGP:
    """Settings of EGP.

    Between the matched inputs a Matern 5/2 kernel interpolates. It is fitted to what the tasks' values have
    left of their mean at each input, and it is what the covariance is shrunk to.

    Attributes:
      iterations: of EM.
      prior_tasks: how many tasks the kernel counts as in the covariance.
      kernel_points: matched inputs that the kernel is fitted on, drawn uniformly.
      kernel_iterations: of L-BFGS in that fit.
      decision: expected improvement.
    """

    iterations: int = 20
    prior_tasks: float = 5.0
    kernel_points: int = 100
    kernel_iterations: int = 50
    decision: AcquisitionDecision = field(default_factory=lambda: AcquisitionDecision("expected_improvement"))

    def __post_init__(self) -> None:
        require_positive(self, "iterations", "prior_tasks", "kernel_points", "kernel_iterations")

    @double_precision
    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[EmpiricalPrior]:
        """Estimate one prior per job from its matched blocks, missing values and all.

        Nothing is drawn by the seed: jobs of equal blocks are computed once.

        Raises:
          InvalidInputError: there is no job, or one has no matched block.
          TrainingError: a job's estimate is not finite; what the other jobs learned comes with the error.
        """
        check_jobs(jobs)
        tables = {_key(job.training): _table(job.training) for job in jobs}
        inputs = max(len(x) for x, _ in tables.values())
        tasks = max(len(y) for _, y in tables.values())
        padded = [_padded(x, y, inputs, tasks) for x, y in tables.values()]
        progress(0, 1)
        arrays = pad_batch(tuple(np.stack(each) for each in zip(*padded, strict=True)))
        learned = dict(
            zip(tables, unstack(batched(partial(_estimate, self))(*arrays), len(tables)), strict=True)
        )
        progress(1, 1)
        return all_trained([_usable(job, learned[_key(job.training)]) for job in jobs])

    def policy(self, fitted: EmpiricalPrior, task: Task) -> EGPPolicy:
        """Bayesian optimization with the prior; of the test task it uses the observations only."""
        return EGPPolicy(fitted, self.decision)


@pytree
class EmpiricalPrior:
    """Moments at the matched inputs, and the process that carries them to all others.

    Attributes:
      x: the matched inputs.
      mask: which of them are no padding.
      moments: the estimate; 0 in padding.
      level: mean of the estimated mean, which is the prior mean far from all matched inputs.
      kernel: of mean 0; its noise is that of the observations.
      training_tasks: N.
      spread: of these tasks' y at the matched inputs, the unit of PI's threshold.
    """

    x: Float[Array, "m d"]
    mask: Bool[Array, " m"]
    moments: EmpiricalMoments
    level: Float[Array, ""]
    kernel: GaussianProcess
    training_tasks: Int[Array, ""]
    spread: Float[Array, ""]


@pytree
class EmpiricalOnCandidates:
    r"""The prior at candidates, by :math:`W = k(c, x) k(x, x)^{-1}`, at matched inputs a row of the identity.

    .. math:: m(c) = l + W (\mu - l), \qquad S(c, c') = k(c, c') + W (\Sigma - k(x, x)) W^\top

    Attributes:
      prior: what was learned.
      candidates: inputs c.
      interpolation: W.
      difference: W (Sigma - k(x, x)).
    """

    prior: EmpiricalPrior
    candidates: Float[Array, "c d"]
    interpolation: Float[Array, "c m"]
    difference: Float[Array, "c m"]

    @classmethod
    def of(cls, prior: EmpiricalPrior, candidates: Float[Array, "c d"]) -> EmpiricalOnCandidates:
        """Interpolate at candidates."""
        kernel, mask = prior.kernel.kernel, prior.mask
        among = jnp.where(mask[:, None] & mask[None, :], kernel(prior.x, prior.x), 0.0)
        noise = INTERPOLATION_NOISE * jnp.max(jnp.diagonal(among)) * jnp.eye(len(mask), dtype=among.dtype)
        inverse_factor = factorise(among + noise, mask).inverse_factor
        cross = jnp.where(mask, kernel(candidates, prior.x), 0.0)
        interpolation = (cross @ inverse_factor.T) @ inverse_factor
        return cls(prior, candidates, interpolation, interpolation @ (prior.moments.covariance - among))

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """sigma^2 of the observations."""
        return self.prior.kernel.noise_variance

    def covariance_row(self, candidate: Int[Array, ""]) -> Float[Array, " c"]:
        """S between one candidate and all."""
        at = self.candidates[candidate][None]
        row = self.prior.kernel.kernel(at, self.candidates)[0]
        return row + self.difference[candidate] @ self.interpolation.T

    def unobserved(self, capacity: int) -> CandidatePosterior:
        """The prior over the candidates, ready to be conditioned up to `capacity` times."""
        prior = self.prior
        departure = jnp.where(prior.mask, prior.moments.mean - prior.level, 0.0)
        mean = prior.level + self.interpolation @ departure
        variance = prior.kernel.kernel.diagonal(self.candidates)
        variance = variance + jnp.sum(self.difference * self.interpolation, axis=1)
        return CandidatePosterior.unobserved(self, mean, jnp.maximum(variance, 0.0), capacity)


@pytree
class EGPPolicy:
    """Observations condition the prior; nothing is trained again."""

    prior: EmpiricalPrior
    decision: AcquisitionDecision = field(metadata={"static": True})

    def start(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int) -> GPState:
        """The prior over the candidates."""
        posterior = EmpiricalOnCandidates.of(self.prior, candidates).unobserved(capacity)
        return GPState(posterior, mask, jnp.asarray(-jnp.inf, candidates.dtype))

    def score(self, state: GPState, step: Int[Array, ""], key: PRNGKeyArray) -> tuple[GPState, Scores]:
        """The acquisition function at every candidate."""
        known, tasks = state.posterior, self.prior.training_tasks
        moments = known.mean, known.variance, known.noise_variance
        return state, self.decision.scores(
            *moments, state.best, state.mask, tasks, step, key, self.prior.spread
        )

    def observe(
        self, state: GPState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> GPState:
        """Condition on one more observation."""
        posterior = state.posterior.observe(step, candidate, y)
        return replace(state, posterior=posterior, best=jnp.maximum(state.best, y))


def _key(data: TuningData) -> tuple[object, ...]:
    return tuple((block.tasks, block.x.tobytes(), block.y.tobytes()) for block in data.blocks)


def _table(data: TuningData) -> tuple[np.ndarray, np.ndarray]:
    """The inputs of all blocks that were observed, and the values, one row per task; NaN is missing."""
    names = sorted({name for block in data.blocks for name in block.tasks})
    if not names:
        raise InvalidInputError(
            "EGP needs matched data", where=data.provenance.dataset, fix="use RGPE or CGP"
        )
    x = np.concatenate([block.x for block in data.blocks])
    y = np.full((len(names), len(x)), np.nan)
    begin = 0
    for block in data.blocks:
        rows = [names.index(name) for name in block.tasks]
        y[rows, begin : begin + len(block.x)] = block.y.T
        begin += len(block.x)
    kept = np.isfinite(y).any(axis=0)
    return x[kept], y[np.isfinite(y).any(axis=1)][:, kept]


def _padded(x: np.ndarray, y: np.ndarray, inputs: int, tasks: int) -> tuple[np.ndarray, ...]:
    rows, columns = (0, tasks - len(y)), (0, inputs - len(x))
    seen = np.isfinite(y)
    values = np.pad(np.where(seen, y, 0.0), (rows, columns))
    return np.pad(x, (columns, (0, 0))), values, np.pad(seen, (rows, columns))


def _estimate(
    settings: EGP, x: Float[Array, "m d"], y: Float[Array, "n m"], seen: Bool[Array, "n m"]
) -> EmpiricalPrior:
    mask, own = jnp.any(seen, axis=0), jnp.any(seen, axis=1)
    means = jnp.sum(jnp.where(seen, y, 0.0), axis=0) / jnp.maximum(jnp.sum(seen, axis=0), 1)
    kernel = _fit_kernel(settings, x, y - means, seen)
    inside = mask[:, None] & mask[None, :]
    prior_covariance = jnp.where(inside, kernel.kernel(x, x), 0.0)
    start = EmpiricalMoments(means, prior_covariance)

    def iterate(moments: EmpiricalMoments, _: None) -> tuple[EmpiricalMoments, None]:
        return em_step(moments, y, seen, kernel.noise_variance, prior_covariance, settings.prior_tasks), None

    moments, _ = lax.scan(iterate, start, length=settings.iterations)
    level = jnp.sum(jnp.where(mask, moments.mean, 0.0)) / jnp.sum(mask)
    deviations = jnp.std(y, axis=1, where=seen | ~own[:, None])
    spread = jnp.nanmedian(jnp.where(own, deviations, jnp.nan))
    spread = jnp.where(spread > 0.0, spread, 1.0)
    return EmpiricalPrior(x, mask, moments, level, kernel, jnp.sum(own), spread)


def _fit_kernel(
    settings: EGP, x: Float[Array, "m d"], residuals: Float[Array, "n m"], seen: Bool[Array, "n m"]
) -> GaussianProcess:
    """Minimise the NLL, summed over tasks, of what the values have left of their mean at each input."""
    # Those that are observed come before padding; the rest of the order is random.
    order = jax.random.uniform(jax.random.key(0), (len(x),)) + ~jnp.any(seen, axis=0)
    rows = jnp.argsort(order)[: settings.kernel_points]
    start = initialise(jax.random.key(0), x.shape[1], Architecture((), mean="zero"))

    def loss(gp: GaussianProcess) -> Array:
        values = lax.map(
            lambda task: jnp.where(jnp.any(task[1]), task_nll(gp, x[rows], *task)[0], 0.0),
            (residuals[:, rows], seen[:, rows]),
        )
        return jnp.sum(values)

    return minimise_lbfgs(loss, start, settings.kernel_iterations)[0]


def _usable(job: Job, prior: EmpiricalPrior) -> EmpiricalPrior | NumericalError:
    if all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(prior)):
        return prior
    return NumericalError(
        f"the empirical prior of {job.training.provenance.dataset} is not finite; look for extreme y values"
    )
