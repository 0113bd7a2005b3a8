"""The tuner on recorded trials: what it would try next, if only what a task has tried could be tried."""

from __future__ import annotations

from dataclasses import field, replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.bayesopt.history import PaddedHistory, conditioned_values
from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.data.warping import OutputWarping
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.methods.protocol import Scores
from hyperbo.tuning.mixture import LogImprovement, mixture_posterior


@pytree
class TunerState:
    """The candidates, and the trials observed so far.

    Attributes:
      candidates: inputs in the unit cube.
      history: of the run, with room for all of its trials.
    """

    candidates: Float[Array, "c d"]
    history: PaddedHistory


@pytree
class TunerPolicy:
    """The choices of `hyperbo.Tuner` by a prior of the preparation `online`, one trial at a time.

    As in the tuner, the values are mapped to [-2, 2] anew over the trials so far, and the mixture with its
    uninformed processes is weighed anew; what differs is that candidates are compared, and nothing is
    climbed. The number of uninformed processes that are kept is that of the whole run's length.

    Attributes:
      gp: the prior.
      infeasible_below: an observation below this value stands for an infeasible trial (`recorded_task`).
      prior_weight: of the prior in the mixture before any trial, above 0 and below 1.
    """

    gp: GaussianProcess
    infeasible_below: Float[Array, ""]
    prior_weight: float = field(metadata={"static": True})

    def start(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int) -> TunerState:
        """No trial yet."""
        zero, dtype = jnp.zeros((), jnp.int32), candidates.dtype
        x = jnp.zeros((capacity, candidates.shape[1]), dtype)
        history = PaddedHistory(x, jnp.zeros(capacity, dtype), jnp.zeros(capacity, bool), zero, zero)
        return TunerState(candidates, history)

    def score(self, state: TunerState, step: Int[Array, ""], key: PRNGKeyArray) -> tuple[TunerState, Scores]:
        """The mixture's mean before the first trial, then the logarithm of its expected improvement."""
        history = state.history
        values = conditioned_values(self.gp, history, mapped=True)
        posterior = mixture_posterior(self.gp, self.prior_weight, history, values, mapped=True)
        best = jnp.max(jnp.where(history.ended, values, -jnp.inf))
        return state, Scores.without_prediction(LogImprovement(posterior, best)(state.candidates))

    def observe(
        self, state: TunerState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> TunerState:
        """Add a trial to the history."""
        history = state.history
        added = PaddedHistory(
            history.x.at[step].set(state.candidates[candidate]),
            history.y.at[step].set(y),
            history.feasible.at[step].set(y >= self.infeasible_below),
            history.ended_count + 1,
            history.pending_count,
        )
        return TunerState(state.candidates, added)


def recorded_task(task: Task, warping: OutputWarping) -> tuple[Task, float]:
    """A task as its runs find it: every trial with its own warped value, those without one far below.

    A task of the preparation `online` has values that are mapped over all of its trials, which a run does not
    know.

    Args:
      task: the task; its objective is NaN where a trial is infeasible.
      warping: of its objective.

    Returns:
      The task, and the value below which a trial is infeasible.
    """
    feasible = np.isfinite(task.objective)
    y = warping.warp(np.where(feasible, task.objective, 1.0))
    lowest = float(np.min(y[feasible])) if feasible.any() else 0.0
    return replace(task, y=np.where(feasible, y, lowest - 2.0)), lowest - 1.0
