"""H-Mix and Mix: settings of the mixture over Gaussian processes, with and without a pre-trained one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp

from hyperbo.data.tuning_data import Task, TuningData
from hyperbo.errors import InvalidInputError, require_positive
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.methods.mixture.policy import Mixture, MixturePolicy
from hyperbo.methods.mixture.uninformed import UNINFORMED, uninformed_processes, unit_of
from hyperbo.methods.pretrained import HNLL, PretrainedMethod
from hyperbo.pretrain.jobs import Job, Progress, no_progress
from hyperbo.pretrain.nll import NLLTraining, pretrain_nll


@dataclass(frozen=True)
class HMix(PretrainedMethod):
    """Settings of H-Mix: H-NLL's prior, in a mixture with uninformed Gaussian processes.

    The mathematics is in `hyperbo.methods.mixture.policy`. The prior is trained as H-NLL's; one file serves
    both methods.

    Attributes:
      training: as H-NLL's.
      prior_weight: of the pre-trained process before any observation, between 0 and 1; the others share the
        rest equally.
      uninformed: number of the others; their unit of y is that of the training tasks.
    """

    training: NLLTraining = field(default_factory=NLLTraining)
    prior_weight: float = 0.9
    uninformed: int = UNINFORMED
    _pretrain = staticmethod(pretrain_nll)

    def __post_init__(self) -> None:
        require_positive(self, "uninformed", where="HMix")
        if not 0.0 < self.prior_weight < 1.0:
            raise InvalidInputError(
                f"prior_weight = {self.prior_weight}", where="HMix", fix="give a number between 0 and 1"
            )

    @property
    def trained_as(self) -> HNLL:
        """H-NLL with the same structure and training."""
        return HNLL(self.architecture, self.training)

    @double_precision
    def in_use(self, gp: GaussianProcess, training: TuningData) -> Mixture:
        """The prior, and the uninformed processes in the unit of the training tasks."""
        pretrained = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], gp)
        others = uninformed_processes(self.uninformed, training.search_space.dimension, *unit_of(training))
        share = math.log((1.0 - self.prior_weight) / self.uninformed)
        return Mixture(
            (pretrained, others),
            jnp.array([math.log(self.prior_weight), *[share] * self.uninformed]),
        )

    def policy(self, fitted: Mixture, task: Task) -> MixturePolicy:
        """The policy of one prior, the same for every task."""
        return MixturePolicy(fitted)


@dataclass(frozen=True)
class Mix:
    """Settings of Mix: H-Mix without a prior, a method for the test task alone that never refits.

    Its first choice is uniformly random, since all its components expect the same everywhere.

    Attributes:
      uninformed: number of components.
      centre: where the constant means are expected, in units of y.
      spread: standard deviation of the function, in units of y; it is integrated out around this value.
        Preparations give y of order one: error rates from 1 to 0.05 are 0 to 3, and mapped values are in
        [-2, 2].
    """

    uninformed: int = UNINFORMED
    centre: float = 0.0
    spread: float = 1.0

    def __post_init__(self) -> None:
        require_positive(self, "uninformed", "spread", where="Mix")
        if not math.isfinite(self.centre):
            raise InvalidInputError(f"centre = {self.centre}", where="Mix", fix="give a finite number")

    @double_precision
    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[Mixture]:
        """Nothing is learned: the same components for every seed."""
        log_weights = jnp.full(self.uninformed, -math.log(self.uninformed))
        return [
            Mixture(
                (
                    uninformed_processes(
                        self.uninformed, job.training.search_space.dimension, self.centre, self.spread
                    ),
                ),
                log_weights,
            )
            for job in jobs
        ]

    def policy(self, fitted: Mixture, task: Task) -> MixturePolicy:
        """The policy of every seed and task."""
        return MixturePolicy(fitted)
