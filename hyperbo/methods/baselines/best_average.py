"""Best-average: the training tasks' inputs in the order of their average value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Array, Bool, Float

from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.methods.baselines.in_order import InOrder
from hyperbo.methods.baselines.task_values import TaskValues, recorded_values, share_of_range
from hyperbo.pretrain.jobs import Job, Progress, no_progress


@pytree
class BestAveragePolicy(InOrder):
    """The candidate with the highest average over training tasks goes first."""

    values: TaskValues

    def priority(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"]) -> Float[Array, " c"]:
        """The mean over training tasks of their values at the candidate."""
        return self.values.average_at(candidates)


@dataclass(frozen=True)
class BestAverage:
    r"""Best-average has no settings: the order of all candidates is known before the first trial.

    .. math:: s(x) = \frac1N \sum_{i=1}^N \frac{y_i(x) - \min y_i}{\max y_i - \min y_i}

    y_i(x) is the value on task i: that of the trial nearest to x where the task has not tried x. So matched
    inputs, partly matched ones and inputs of no task have one rule.

    Brazdil and Soares, "A comparison of ranking methods for classification algorithm selection", ECML 2000,
    order algorithms by their average ranks on past tasks; Wistuba, Schilling and Schmidt-Thieme, "Sequential
    model-free hyperparameter tuning", ICDM 2015, tune without a model by past values in one range. The
    nearest trial is our addition.
    """

    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[TaskValues]:
        """The trials of the training tasks, each task's values divided by its range; the seed has no say."""
        return recorded_values(jobs, share_of_range)

    def policy(self, fitted: TaskValues, task: Task) -> BestAveragePolicy:
        """The same for every test task: its values are not looked at."""
        return BestAveragePolicy(fitted)
