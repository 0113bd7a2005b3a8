"""How a method with a Gaussian process chooses: the acquisition function and what goes into it."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.acquisition.by_name import check_acquisition, score_candidates
from hyperbo.acquisition.functions import OFFLINE_UCB_COEFFICIENT, PI_THRESHOLD
from hyperbo.errors import InvalidInputError
from hyperbo.gp.posterior import variance_correction
from hyperbo.methods.protocol import Scores

THRESHOLD_UNITS = ("spread", "absolute")


@dataclass(frozen=True)
class AcquisitionDecision:
    """The choice of the next candidate from a posterior, section D.2 "Impact of Acquisition Functions".

    Attributes:
      acquisition: one of `hyperbo.acquisition.ACQUISITIONS`; thresholded PI in all of the paper's main
        experiments.
      coefficient: of the standard deviation in `upper_confidence_bound`: 3 offline, 1.8 online.
      correct_variance: multiply the predictive variance by `hyperbo.gp.variance_correction`, N the number of
        tasks that the prior was learned from.
      threshold: by how much an observation must improve, in `probability_of_improvement`.
      threshold_unit: `spread`: the threshold is a multiple of the spread of the training tasks' y
        (`hyperbo.data.tuning_data.TuningData.spread`), or of 1 for a method that learns from no training
        task; `absolute`: it is in the unit of y, as in the paper.
    """

    acquisition: str = "probability_of_improvement"
    coefficient: float = OFFLINE_UCB_COEFFICIENT
    correct_variance: bool = False
    threshold: float = PI_THRESHOLD
    threshold_unit: str = "spread"

    def __post_init__(self) -> None:
        check_acquisition(self.acquisition, self.coefficient, self.threshold, "decision")
        if self.threshold_unit not in THRESHOLD_UNITS:
            raise InvalidInputError(
                f"threshold_unit = {self.threshold_unit!r}",
                where="decision",
                fix=f"use {' or '.join(THRESHOLD_UNITS)}",
            )

    def require_no_correction(self, where: str) -> None:
        """Refuse the variance correction for a method that has no prior from N tasks.

        Raises:
          InvalidInputError: `correct_variance` is set.
        """
        if self.correct_variance:
            raise InvalidInputError(
                "decision.correct_variance is for priors that were estimated from training tasks",
                where=where,
                fix="leave it out",
            )

    def scores(
        self,
        mean: Float[Array, " c"],
        variance: Float[Array, " c"],
        noise_variance: Float[Array, ""],
        best: Float[Array, ""],
        mask: Bool[Array, " c"],
        training_tasks: Int[Array, ""],
        step: Int[Array, ""],
        key: PRNGKeyArray,
        spread: Float[Array, ""] | float = 1.0,
    ) -> Scores:
        """Score candidates.

        Args:
          mean: posterior mean at each candidate.
          variance: posterior variance of the function.
          noise_variance: of the observations.
          best: largest y observed so far, -inf where there is none.
          mask: which candidates are no padding.
          training_tasks: N, of the prior.
          step: number of observations so far, t - 1.
          key: random key, for `random` alone.
          spread: of the training tasks' y; 1 where there is no training task.
        """
        if self.correct_variance:
            # The theorem's variance includes the noise, so both parts are scaled.
            factor = variance_correction(training_tasks, step)
            variance, noise_variance = factor * variance, factor * noise_variance
        threshold = self.threshold * spread if self.threshold_unit == "spread" else self.threshold
        values = score_candidates(
            self.acquisition, mean, variance, noise_variance, best, mask, self.coefficient, threshold, key
        )
        return Scores(values, mean, jnp.sqrt(variance + noise_variance))
