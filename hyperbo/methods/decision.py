"""How a method with a Gaussian process chooses: the acquisition function and what goes into it."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.acquisition import (
    OFFLINE_UCB_COEFFICIENT,
    estimated_max_value,
    log_expected_improvement,
    max_value_probability_of_improvement,
    probability_of_improvement,
    random_scores,
    upper_confidence_bound,
)
from hyperbo.errors import InvalidInputError
from hyperbo.methods.protocol import Scores

ACQUISITIONS = (
    "probability_of_improvement",
    "expected_improvement",
    "upper_confidence_bound",
    "max_value_probability_of_improvement",
    "random",
)


@dataclass(frozen=True)
class Decision:
    """The choice of the next candidate from a posterior, section "Impact of Acquisition Functions".

    Attributes:
      acquisition: one of `ACQUISITIONS`; thresholded PI in all of the paper's main experiments.
      coefficient: of the standard deviation in `upper_confidence_bound`: 3 offline, 1.8 online.
      correct_variance: multiply the predictive variance by N / (N - t), Theorem posterior_bound, N the number
        of training tasks and t that of the iteration; by N where t >= N, of which the theorem says nothing.
    """

    acquisition: str = "probability_of_improvement"
    coefficient: float = OFFLINE_UCB_COEFFICIENT
    correct_variance: bool = False

    def __post_init__(self) -> None:
        if self.acquisition not in ACQUISITIONS:
            raise InvalidInputError(
                f"unknown acquisition function {self.acquisition!r}",
                where="Decision",
                fix=f"use {', '.join(ACQUISITIONS)}",
            )
        if not 0.0 <= self.coefficient < float("inf"):
            raise InvalidInputError(f"coefficient = {self.coefficient}", where="Decision", fix="0 or more")

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
        """
        if self.correct_variance:
            # The theorem's variance includes the noise, so both parts are scaled.
            factor = training_tasks / jnp.maximum(training_tasks - step - 1.0, 1.0)
            variance, noise_variance = factor * variance, factor * noise_variance
        posterior = (mean, variance, noise_variance, best)
        match self.acquisition:
            case "probability_of_improvement":
                values = probability_of_improvement(*posterior)
            case "expected_improvement":
                values = log_expected_improvement(*posterior)
            case "upper_confidence_bound":
                values = upper_confidence_bound(*posterior, self.coefficient)
            case "max_value_probability_of_improvement":
                max_value = estimated_max_value(mean, variance, mask)
                values = max_value_probability_of_improvement(*posterior, max_value)
            case _:
                values = random_scores(*posterior, key)
        return Scores(values, mean, jnp.sqrt(variance + noise_variance))
