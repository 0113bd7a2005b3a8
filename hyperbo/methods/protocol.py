"""What a method and a policy are; a method of one's own is a class that satisfies `Method`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.pretrain.jobs import Job, Progress, no_progress

# Whatever pytree a policy carries from one observation to the next.
State = Any
# Whatever pytree a method learns, or draws, before it sees a test task.
Fitted = Any


@pytree
class Scores:
    """A policy's view of the candidates before a choice.

    Attributes:
      values: the candidate with the highest is observed next.
      mean: predictive mean of an observation at each candidate; NaN where the policy predicts nothing.
      deviation: predictive standard deviation of an observation, noise included; NaN likewise.
    """

    values: Float[Array, " c"]
    mean: Float[Array, " c"]
    deviation: Float[Array, " c"]

    @classmethod
    def without_prediction(cls, values: Float[Array, " c"]) -> Scores:
        """Scores of a policy that has no predictive distribution."""
        nothing = jnp.full_like(values, jnp.nan)
        return cls(values, nothing, nothing)


@runtime_checkable
class Policy(Protocol):
    """Scores candidates given the observations so far; a pytree, so that many run as one program.

    Policies of one method differ in their arrays alone. What they do is traced once and compiled: no Python
    control flow on arrays.
    """

    def start(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int) -> State:
        """The state before any observation.

        Args:
          candidates: inputs in the unit cube.
          mask: which rows are candidates; the others are padding.
          capacity: how many observations there will be at most.
        """
        ...

    def score(self, state: State, step: Int[Array, ""], key: PRNGKeyArray) -> tuple[State, Scores]:
        """Score every candidate after `step` observations; the caller decides which of them may be chosen."""
        ...

    def observe(
        self, state: State, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> State:
        """Condition on an observation that comes after `step` others."""
        ...


@runtime_checkable
class Method(Protocol):
    """A compared method: a frozen dataclass of settings, of plain values, that learns and then chooses."""

    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[Fitted]:
        """Learn from the training tasks of each job, with the job's seed; all jobs as one batch.

        Args:
          jobs: training tasks and seeds.
          progress: called with units of work done and in all.

        Returns:
          What was learned, one pytree of arrays per job; of one structure.

        Raises:
          TrainingError: a job failed alone; what was learned from the others comes with the error.
        """
        ...

    def policy(self, fitted: Fitted, task: Task) -> Policy:
        """The policy for one test task.

        Args:
          fitted: what `fit` returned for the job.
          task: the test task. A policy may use its candidates, `task.x`. Its values are what the run is
            about to discover: a method that looks at them must say so.
        """
        ...
