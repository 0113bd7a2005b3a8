"""STBO: single-task Bayesian optimization, its Gaussian process refitted to the test task alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperbo.data.tuning_data import Task
from hyperbo.errors import InvalidInputError, require_positive
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.gp.kernels import CORRELATIONS, Stationary
from hyperbo.gp.numerics import double_precision, softplus
from hyperbo.gp.parameter_priors import LogNormal, Normal
from hyperbo.methods.decision import AcquisitionDecision
from hyperbo.methods.single_task.refit_policy import RefitPolicy
from hyperbo.pretrain.jobs import Job, Progress, no_progress


@dataclass(frozen=True)
class STBO:
    """Settings of STBO, section 7.2 "Description of All Compared Methods".

    The structure of H-NLL, fitted to the test task alone.

    Attributes:
      architecture: as H-NLL's.
      iterations: of L-BFGS in each refit.
      log_scale: standard deviation of the Lognormal(0, 0.1) prior on lengthscales and signal variance.
      noise_scale: standard deviation of the Normal(0, 0.1) prior on the noise variance.
      decision: thresholded PI.

    >>> STBO(Architecture(kernel="linear"))
    Traceback (most recent call last):
        ...
    hyperbo.errors.InvalidInputError: STBO: the kernel 'linear' has no lengthscales to put priors on; \
use squared_exponential, matern32, matern52
    """

    architecture: Architecture = field(default_factory=Architecture)
    iterations: int = 100
    log_scale: float = 0.1
    noise_scale: float = 0.1
    decision: AcquisitionDecision = field(default_factory=AcquisitionDecision)

    def __post_init__(self) -> None:
        self.decision.require_no_correction("STBO")
        if self.architecture.kernel not in CORRELATIONS:
            raise InvalidInputError(
                f"the kernel {self.architecture.kernel!r} has no lengthscales to put priors on",
                where="STBO",
                fix=f"use {', '.join(CORRELATIONS)}",
            )
        require_positive(self, "iterations")
        self._priors()  # their own checks

    def _priors(self) -> tuple[LogNormal, Normal]:
        return LogNormal(0.0, self.log_scale), Normal(0.0, self.noise_scale)

    @double_precision
    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[GaussianProcess]:
        """The seed draws the network that every refit starts from; no training task is looked at."""
        return [
            initialise(jax.random.key(job.seed), job.training.search_space.dimension, self.architecture)
            for job in jobs
        ]

    @double_precision
    def policy(self, fitted: GaussianProcess, task: Task) -> RefitPolicy:
        """The policy of one seed, the same for every task."""
        return RefitPolicy(fitted, jnp.zeros((), jnp.int32), self, self.decision)

    def model(self, parameters: GaussianProcess) -> GaussianProcess:
        """The parameters are the Gaussian process."""
        return parameters

    def penalty(self, parameters: GaussianProcess) -> Float[Array, ""]:
        """Negative log density, up to a constant, of the priors on the positive parameters.

        Lognormal(0, s) on lengthscales and signal variance, Normal(0, s) on the noise variance.
        """
        kernel = parameters.kernel
        assert isinstance(kernel, Stationary)  # checked with the settings
        lognormal, normal = self._priors()
        positive = softplus(jnp.append(kernel.raw_lengthscales, kernel.raw_signal_variance))
        return jnp.sum(lognormal.penalty(positive)) + normal.penalty(parameters.noise_variance)
