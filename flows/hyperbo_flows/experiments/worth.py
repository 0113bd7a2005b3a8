"""What a prior is worth, measured before it is used: its own training tasks are left out one by one."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64, Int64

from hyperbo.bayesopt.offline import Run, simulate
from hyperbo.data.folds import Fold, all_but_test_task, held_out_related
from hyperbo.data.tuning_data import Task, TuningData
from hyperbo.data.warping import OutputWarping
from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures.worth import (
    AVERAGE,
    BUDGETS,
    PRIOR,
    RANDOM,
    TPE,
    Worth,
    measure_worth,
    random_regret,
    regret_after,
    trial_regrets,
)
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.methods import BestAverage
from hyperbo.pretrain import Job, Progress, no_progress
from hyperbo.tuning.proposals import PRIOR_WEIGHT
from hyperbo.tuning.recorded import TunerPolicy, recorded_task

# So many tasks of a task dataset are tested at most, and so many runs of TPE are averaged on each.
TESTS_PER_FOLD, TPE_SEEDS = 3, 5
# With fewer task datasets an interval over them says nothing, and tasks are left out one by one.
_FEWEST_DATASETS = 3


@dataclass(frozen=True)
class LeftOut:
    """The folds by which a prior is measured.

    Attributes:
      what: what each leaves out, `task` or `task dataset`.
      folds: those that are measured.
      of: how many there are.
      seed: of the draws.
    """

    what: str
    folds: tuple[Fold, ...]
    of: int
    seed: int


def left_out(data: TuningData, most: int, seed: int) -> LeftOut:
    """Draw the folds: each leaves a task dataset out, with all of its tasks, or a single task.

    Task datasets are left out where tasks share them and there are at least three; else a relative of each
    test task would be trained on, or nothing could be said of how sure the result is.

    Args:
      data: all tasks.
      most: how many folds are drawn at most. Of a fold's tasks at most `TESTS_PER_FOLD` are drawn.
      seed: of the draws.

    Raises:
      InvalidInputError: there is one task only.
    """
    if len(data.tasks) == 1:
        raise InvalidInputError(
            f"one task only, {data.tasks[0].name!r}: what a prior is worth is measured on a task left out",
            where=data.provenance.dataset,
            fix="add the trials of another task, or measure nothing: --worth 0",
        )
    shared = _FEWEST_DATASETS <= len(data.task_datasets) < len(data.tasks)
    folds = held_out_related(data) if shared else all_but_test_task(data)
    random = np.random.default_rng([seed, zlib.crc32(b"worth")])
    kept = sorted(random.permutation(len(folds))[:most])
    drawn = []
    for fold in (folds[place] for place in kept):
        tests = sorted(random.permutation(len(fold.tests))[:TESTS_PER_FOLD])
        drawn.append(Fold(fold.name, fold.training, tuple(fold.tests[place] for place in tests)))
    return LeftOut("task dataset" if shared else "task", tuple(drawn), len(folds), seed)


def worth_of(
    chosen: LeftOut,
    priors: Sequence[GaussianProcess],
    warping: OutputWarping,
    progress: Progress = no_progress,
) -> Worth:
    """Tune the tasks left out by priors that have not seen them, and by what needs no prior.

    All methods choose among the recorded trials of a task, those that were infeasible too, and none twice.

    Args:
      chosen: the folds.
      priors: of each fold, trained on its training tasks by the preparation `online`.
      warping: of the objective.
      progress: called with runs done and in all; a run of each method on a task counts, TPE's as one.
    """
    tested = [(fold, task) for fold in chosen.folds for task in fold.tests]
    runs = 3 * len(tested)
    # Optuna is an extra, and this module is imported also where nothing is measured.
    from optuna.samplers import TPESampler

    from hyperbo.tuning.optuna.recorded import sampler_rows

    of_prior = tuner_rows(
        [(gp, task) for fold, gp in zip(chosen.folds, priors, strict=True) for task in fold.tests],
        warping,
        PRIOR_WEIGHT,
        chosen.seed,
        lambda done, _: progress(done, runs),
    )
    of_average = _average_rows(chosen, warping)
    found: dict[str, list[Float64[np.ndarray, " b"]]] = {PRIOR: [], RANDOM: [], AVERAGE: [], TPE: []}
    for number, (fold, task) in enumerate(tested):
        progress(2 * len(tested) + number, runs)
        regrets = regrets_of(task, warping)
        found[PRIOR].append(regret_after(regrets, of_prior[number]))
        found[AVERAGE].append(regret_after(regrets, of_average[number]))
        found[RANDOM].append(random_regret(regrets))
        rows = np.stack(
            [
                sampler_rows(fold.training.search_space, task, warping, max(BUDGETS), TPESampler(seed=seed))
                for seed in range(chosen.seed, chosen.seed + TPE_SEEDS)
            ]
        )
        found[TPE].append(regret_after(regrets, rows).mean(axis=0))
    progress(runs, runs)
    return measure_worth(
        {name: np.stack(values) for name, values in found.items()},
        [fold.name for fold, _ in tested],
        left_out=chosen.what,
        of_folds=chosen.of,
        seed=chosen.seed,
    )


def regrets_of(task: Task, warping: OutputWarping) -> Float64[np.ndarray, " n"]:
    """The regret of each recorded trial of a task."""
    return trial_regrets(recorded_task(task, warping)[0].y, np.isfinite(task.objective))


@double_precision
def tuner_rows(
    priors: Sequence[tuple[GaussianProcess, Task]],
    warping: OutputWarping,
    prior_weight: float,
    seed: int,
    progress: Progress = no_progress,
) -> Int64[np.ndarray, "runs t"]:
    """The recorded trials that the tuner tries on each task with its prior, as many as the largest budget.

    Args:
      priors: pairs of a prior and the task that it tunes.
      warping: of the objective.
      prior_weight: of the priors in their mixtures.
      seed: of the runs; it decides between equal candidates.
      progress: called with runs done and in all.
    """
    runs = []
    for gp, task in priors:
        recorded, infeasible_below = recorded_task(task, warping)
        policy = TunerPolicy(jax.tree.map(jnp.asarray, gp), jnp.asarray(infeasible_below), prior_weight)
        runs.append(Run(policy, recorded, seed))
    return simulate(runs, max(BUDGETS), progress=progress).require_usable().choices


def _average_rows(chosen: LeftOut, warping: OutputWarping) -> Int64[np.ndarray, "runs t"]:
    """The recorded trials in the order of their average over the training tasks."""
    method = BestAverage()
    learned = method.fit([Job(fold.training, chosen.seed) for fold in chosen.folds])
    runs = [
        Run(method.policy(values, task), recorded_task(task, warping)[0], chosen.seed)
        for fold, values in zip(chosen.folds, learned, strict=True)
        for task in fold.tests
    ]
    return simulate(runs, max(BUDGETS)).require_usable().choices
