"""GP-UCB maximised over the unit cube, given observations: what all methods with a Gaussian process share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from hyperbo.acquisition import climb, upper_confidence_bound
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.posterior import Posterior, condition
from hyperbo.gp.pytree import pytree
from hyperbo.methods.decision import Decision
from hyperbo.methods.refit_policy import CONVERGED
from hyperbo.online.protocol import Observations, Proposal
from hyperbo.optimizers import minimise_lbfgs


@dataclass(frozen=True)
class Maximisation:
    """How the acquisition function is maximised: the paper does not say.

    Attributes:
      random_starts: uniformly random points that are climbed from.
      observed_starts: so many of the best observed points besides, as many as there are.
      iterations: at most so many of each climb.
    """

    random_starts: int = 32
    observed_starts: int = 4
    iterations: int = 50

    def __post_init__(self) -> None:
        if self.random_starts < 1 or self.observed_starts < 0 or self.iterations < 1:
            raise InvalidInputError(
                f"{self}", fix="give at least one random start and one iteration, and no negative number"
            )


def require_online(decision: Decision, where: str) -> None:
    """Refuse what a method does not do online.

    Raises:
      InvalidInputError: the decision is not GP-UCB, or corrects the variance.
    """
    if decision.acquisition != "upper_confidence_bound":
        raise InvalidInputError(
            f"{decision.acquisition} is not maximised over a whole search space",
            where=where,
            fix="use upper_confidence_bound",
        )
    decision.require_no_correction(where)


def refit(
    loss: Callable[[Any], Float[Array, ""]], origin: Any, observations: Observations, iterations: int
) -> Any:
    """Parameters fitted by L-BFGS, always from the same ones; those themselves before any observation.

    Args:
      loss: what is minimised, of the parameters.
      origin: a pytree of unconstrained arrays.
      observations: of the run so far.
      iterations: at most so many; none after one that does not lower the loss.
    """
    start, unravel = ravel_pytree(origin)

    def fitted() -> Array:
        return minimise_lbfgs(lambda flat: loss(unravel(flat)), start, iterations, CONVERGED)[0]

    return unravel(lax.cond(observations.count > 0, fitted, lambda: start))


@pytree
class _UpperConfidenceBound:
    """GP-UCB as a function of inputs, one per row."""

    posterior: Posterior
    best: Float[Array, ""]
    coefficient: Float[Array, ""]

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        posterior = self.posterior
        return upper_confidence_bound(
            posterior.mean(x), posterior.variance(x), posterior.gp.noise_variance, self.best, self.coefficient
        )


def maximise_ucb(
    gp: GaussianProcess,
    observations: Observations,
    coefficient: float,
    maximisation: Maximisation,
    key: PRNGKeyArray,
) -> Proposal:
    """The point of the unit cube at which GP-UCB, Eq. (acfun-ucb), is largest.

    Args:
      gp: the prior, refitted or not.
      observations: what it is conditioned on, their values mapped.
      coefficient: of the standard deviation, which includes the noise.
      maximisation: the starts and their climbs.
      key: draws the random starts.
    """
    y, seen = observations.mapped, observations.seen
    acquisition = _UpperConfidenceBound(
        condition(gp, observations.x, y, seen),
        jnp.max(jnp.where(seen, y, -jnp.inf)),
        jnp.asarray(coefficient, y.dtype),
    )
    dimension = observations.x.shape[1]
    observed_starts = min(maximisation.observed_starts, y.shape[0])
    count = maximisation.random_starts + observed_starts
    starts = jax.random.uniform(key, (count, dimension), y.dtype)
    # Rows that are room for observations come last, and leave the random starts where they are.
    best = jnp.argsort(jnp.where(seen, -y, jnp.inf))[:observed_starts]
    starts = starts.at[:observed_starts].set(
        jnp.where(seen[best][:, None], observations.x[best], starts[:observed_starts])
    )
    return Proposal(*climb(acquisition, starts, jnp.asarray(maximisation.iterations)))
