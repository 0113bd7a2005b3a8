"""STBOH: single-task GP-UCB under hand-tuned priors on the parameters of its Gaussian process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperbo.acquisition.functions import ONLINE_UCB_COEFFICIENT
from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.errors import require_positive
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.gp.numerics import double_precision, inverse_softplus
from hyperbo.gp.parameter_priors import NormalOfLogarithm
from hyperbo.methods.decision import AcquisitionDecision
from hyperbo.methods.single_task.refit_policy import RefitPolicy
from hyperbo.pretrain.jobs import Job, Progress, no_progress

# Constant mean and ARD Matern 5/2, both on the inputs themselves.
ARCHITECTURE = Architecture(hidden=(), kernel="matern52", mean="constant")


@pytree
class STBOHParameters:
    """What a refit moves: the constant mean, on which there is no prior, and unconstrained numbers that the
    priors' soft clip maps to positive parameters.
    """

    mean: Float[Array, ""]
    signal_variance: Float[Array, ""]
    lengthscales: Float[Array, " d"]
    noise_variance: Float[Array, ""]


@dataclass(frozen=True)
class STBOH:
    """Settings of STBOH, section 7.2 "Description of All Compared Methods".

    The parameters are kept between the 1st and the 99th percentile of their priors.

    Attributes:
      signal_variance: (mean, standard deviation) of the Normal prior on the log signal variance.
      lengthscale: the same of every log lengthscale.
      noise_variance: the same of the log noise variance.
      iterations: of L-BFGS in each refit; the paper says that the marginal likelihood is maximised, not how:
        STBO's number.
      decision: GP-UCB with 1.8.
    """

    signal_variance: tuple[float, float] = (-1.0, 1.0)
    lengthscale: tuple[float, float] = (0.0, 1.0)
    noise_variance: tuple[float, float] = (-6.0, 3.0)
    iterations: int = 100
    decision: AcquisitionDecision = field(
        default_factory=lambda: AcquisitionDecision("upper_confidence_bound", ONLINE_UCB_COEFFICIENT)
    )

    def __post_init__(self) -> None:
        self.decision.require_no_correction("STBOH")
        require_positive(self, "iterations")
        self._priors()  # their own checks

    def _priors(self) -> tuple[NormalOfLogarithm, NormalOfLogarithm, NormalOfLogarithm]:
        """Of signal variance, lengthscales and noise variance."""
        noise = NormalOfLogarithm(*self.noise_variance)
        return NormalOfLogarithm(*self.signal_variance), NormalOfLogarithm(*self.lengthscale), noise

    @double_precision
    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[STBOHParameters]:
        """Where every refit starts: the priors' medians and the mean 0. The seed breaks ties alone."""
        signal, lengthscale, noise = self._priors()

        def median(prior: NormalOfLogarithm) -> Array:
            return prior.unclipped(jnp.exp(jnp.asarray(prior.location, jnp.float64)))

        return [
            STBOHParameters(
                jnp.zeros((), jnp.float64),
                median(signal),
                jnp.full(job.training.search_space.dimension, median(lengthscale)),
                median(noise),
            )
            for job in jobs
        ]

    @double_precision
    def policy(self, fitted: STBOHParameters, task: Task) -> RefitPolicy:
        """The policy of one seed, the same for every task."""
        return RefitPolicy(fitted, jnp.zeros((), jnp.int32), self, self.decision)

    def model(self, parameters: STBOHParameters) -> GaussianProcess:
        """The Gaussian process whose parameters are the clipped ones."""
        signal, lengthscale, noise = self._priors()
        gp = initialise(jax.random.key(0), len(parameters.lengthscales), ARCHITECTURE)
        return replace(
            gp,
            mean=replace(gp.mean, value=parameters.mean),
            kernel=replace(
                gp.kernel,
                raw_signal_variance=inverse_softplus(signal.clipped(parameters.signal_variance)),
                raw_lengthscales=inverse_softplus(lengthscale.clipped(parameters.lengthscales)),
            ),
            raw_noise_variance=inverse_softplus(noise.clipped(parameters.noise_variance)),
        )

    def penalty(self, parameters: STBOHParameters) -> Float[Array, ""]:
        """Negative log density, up to a constant, of the clipped parameters under their priors."""
        signal, lengthscale, noise = self._priors()
        return (
            signal.penalty(signal.clipped(parameters.signal_variance))
            + jnp.sum(lengthscale.penalty(lengthscale.clipped(parameters.lengthscales)))
            + noise.penalty(noise.clipped(parameters.noise_variance))
        )
