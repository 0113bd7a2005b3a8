"""Portfolio: the candidate that helps most training tasks most, given those that were tried before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.methods.baselines.task_values import TaskValues, recorded_values, share_of_range
from hyperbo.methods.protocol import Scores
from hyperbo.pretrain.jobs import Job, Progress, no_progress

# A smaller gain, in shares of a task's range, is rounding.
_SMALLEST_GAIN = 1e-9


@pytree
class PortfolioState:
    """The portfolio so far.

    Attributes:
      values: of the training tasks at the candidates, 0 to 1.
      best: the best of each task among the candidates tried.
      average: of the training tasks at each candidate.
      untried: which candidates were not tried yet; padding counts as tried.
    """

    values: Float[Array, "c t"]
    best: Float[Array, " t"]
    average: Float[Array, " c"]
    untried: Bool[Array, " c"]


@pytree
class PortfolioPolicy:
    """Adds the candidate of the largest gain; where none has a gain, that of the highest average."""

    recorded: TaskValues

    def start(
        self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int
    ) -> PortfolioState:
        """The empty portfolio: the normalised regret of every training task is 1."""
        values = self.recorded.at(candidates)
        average = jnp.sum(values, axis=1) / jnp.sum(self.recorded.tasks)
        return PortfolioState(values, jnp.zeros(values.shape[1], values.dtype), average, mask)

    def score(
        self, state: PortfolioState, step: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[PortfolioState, Scores]:
        """By how much each candidate lowers the sum of normalised regrets, or the averages."""
        gain = jnp.sum(jnp.maximum(state.values - state.best, 0.0), axis=1)
        improves = jnp.max(jnp.where(state.untried, gain, 0.0)) > _SMALLEST_GAIN
        values = jnp.where(improves, gain, state.average)
        return state, Scores.without_prediction(jnp.where(state.untried, values, -jnp.inf))

    def observe(
        self, state: PortfolioState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> PortfolioState:
        """Add the candidate; its value on the test task changes nothing."""
        return replace(
            state,
            best=jnp.maximum(state.best, state.values[candidate]),
            untried=state.untried.at[candidate].set(False),
        )


@dataclass(frozen=True)
class Portfolio:
    r"""Portfolio has no settings: it is greedy, and all of it is known before the first trial.

    .. math:: x_{t+1} = \arg\min_x \sum_{i=1}^N \min\{r_i(x), \min_{s \le t} r_i(x_s)\}, \qquad
              r_i(x) = \frac{\max y_i - y_i(x)}{\max y_i - \min y_i}

    y_i(x) is as in `BestAverage`, and x is among the candidates of the test task. Where no candidate lowers
    the sum, the portfolio is complete, and the others follow by their average.

    Wistuba, Schilling and Schmidt-Thieme, "Sequential model-free hyperparameter tuning", ICDM 2015;
    Pfisterer, van Rijn, Probst, Mueller and Bischl, "Learning multiple defaults for machine learning
    algorithms", GECCO 2021 (companion).
    """

    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[TaskValues]:
        """The trials of the training tasks, each task's values divided by its range; the seed has no say."""
        return recorded_values(jobs, share_of_range)

    def policy(self, fitted: TaskValues, task: Task) -> PortfolioPolicy:
        """The same for every test task: its values are not looked at."""
        return PortfolioPolicy(fitted)
