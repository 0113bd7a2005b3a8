"""The next trial of a run: GP-UCB maximised over the whole search space, for many runs at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Float64, PRNGKeyArray, UInt32

from hyperbo.acquisition import climb
from hyperbo.acquisition.functions import upper_confidence_bound
from hyperbo.bayesopt.history import History, PaddedHistory, capacity_for, padded, run_key
from hyperbo.compute.optimizers import minimise_lbfgs
from hyperbo.compute.parallel import batched, pad_batch, stack
from hyperbo.compute.pytree import pytree
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.gp.posterior import Posterior, condition
from hyperbo.methods.single_task.refit_policy import CONVERGED
from hyperbo.pretrain import Job, Progress, no_progress


@pytree
class Proposal:
    """What a run tries next.

    Attributes:
      x: a point of the unit cube.
      score: of the acquisition function there; NaN or infinite where the method failed.
    """

    x: Float[Array, " d"]
    score: Float[Array, ""]


@runtime_checkable
class OnlineMethod(Protocol):
    """A method that tunes over the whole search space: a frozen dataclass of settings."""

    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[Any]:
        """Learn from the training tasks of each job, as `hyperbo.methods.Method.fit` does.

        The values of the training tasks are mapped to [-2, 2].
        """
        ...

    def propose(self, fitted: Any, history: PaddedHistory, key: PRNGKeyArray) -> Proposal:
        """Choose what one run tries next, in compiled code.

        Args:
          fitted: what `fit` returned for the job.
          history: of the run so far; no trial is running.
          key: random key of the run and iteration.
        """
        ...


@double_precision
def propose_for_runs(
    method: OnlineMethod,
    fitted: Sequence[Any],
    histories: Sequence[History],
    streams: Sequence[UInt32[np.ndarray, " 2"]],
) -> tuple[Float64[np.ndarray, "runs d"], Float64[np.ndarray, " runs"]]:
    """What runs of one method try next, as one compiled program.

    A program is compiled for each capacity (`capacity_for`) and number of runs, and serves every later call.
    The random numbers of a run depend on its stream, of `run_stream`, and its number of trials.

    Returns:
      Points of the unit cube, and the scores of the acquisition function there. The score of a run that
      failed is NaN or infinite.
    """
    capacity = capacity_for(max(len(history.y) for history in histories), refits=True)
    rows = [padded(history, capacity) for history in histories]
    found = _program(method)(*pad_batch((stack(fitted), stack(rows), np.stack(streams))))
    runs = len(histories)
    return np.asarray(found.x)[:runs], np.asarray(found.score)[:runs]


@cache
def _program(method: OnlineMethod) -> Callable[..., Any]:
    """Compiled once per method and shapes."""

    def of_run(fitted: Any, history: PaddedHistory, stream: UInt32[Array, " 2"]) -> Proposal:
        return method.propose(fitted, history, jax.random.fold_in(run_key(stream), history.ended_count))

    return batched(of_run)


@pytree
class UpperConfidenceBound:
    """GP-UCB, Eq. 21 (acfun-ucb), as a function of inputs; the standard deviation includes the noise."""

    posterior: Posterior
    coefficient: Float[Array, ""]

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """The score of each row."""
        noise = self.posterior.gp.noise_variance
        mean, variance = self.posterior.mean(x), self.posterior.variance(x)
        return upper_confidence_bound(mean, variance, noise, jnp.zeros_like(noise), self.coefficient)


@dataclass(frozen=True)
class Maximisation:
    """How the acquisition function is maximised; the paper does not say.

    Attributes:
      random_starts: number of uniformly random points to climb from.
      observed_starts: number of the best observed points to climb from as well.
      iterations: largest number of iterations of each climb.
    """

    random_starts: int = 32
    observed_starts: int = 4
    iterations: int = 50

    def __post_init__(self) -> None:
        if self.random_starts < 1 or self.observed_starts < 0 or self.iterations < 1:
            raise InvalidInputError(
                f"{self}", fix="give at least one random start and one iteration, and no negative number"
            )


def refit(
    loss: Callable[[Any], Float[Array, ""]], origin: Any, history: PaddedHistory, iterations: int
) -> Any:
    """Fit parameters by L-BFGS, always from the same start, the pytree `origin`; before any trial, return it.

    The fit ends after an iteration that does not lower the loss.
    """
    start, unravel = ravel_pytree(origin)

    def fitted() -> Array:
        return minimise_lbfgs(lambda flat: loss(unravel(flat)), start, iterations, CONVERGED)[0]

    return unravel(lax.cond(history.ended_count > 0, fitted, lambda: start))


def maximise_ucb(
    gp: GaussianProcess,
    history: PaddedHistory,
    coefficient: float,
    maximisation: Maximisation,
    key: PRNGKeyArray,
) -> Proposal:
    """The point of the unit cube at which GP-UCB, Eq. 21 (acfun-ucb), is largest.

    The prior, refitted or not, is conditioned on the mapped values of the history.
    """
    y, ended = history.mapped, history.ended
    posterior = condition(gp, history.x, y, ended)
    dimension = history.x.shape[1]
    observed_starts = min(maximisation.observed_starts, y.shape[0])
    count = maximisation.random_starts + observed_starts
    starts = jax.random.uniform(key, (count, dimension), y.dtype)
    # Unused rows come last, and leave the random starts in place.
    best = jnp.argsort(jnp.where(ended, -y, jnp.inf))[:observed_starts]
    starts = starts.at[:observed_starts].set(
        jnp.where(ended[best][:, None], history.x[best], starts[:observed_starts])
    )
    acquisition = UpperConfidenceBound(posterior, jnp.asarray(coefficient, y.dtype))
    return Proposal(*climb(acquisition, starts, jnp.asarray(maximisation.iterations)))
