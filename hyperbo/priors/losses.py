"""Losses of pre-trained priors on training and test tasks, which the paper tabulates beside regret."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import lax
from jaxtyping import Array, Bool, Float, Float64

from hyperbo.compute.parallel import batched, pad_batch
from hyperbo.data.folds import Fold
from hyperbo.data.subsets import at_most_points, only_tasks
from hyperbo.data.tuning_data import MatchedBlock, Task, TuningData, pad_tasks
from hyperbo.errors import NumericalError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.objectives import mean_ekl
from hyperbo.objectives.nll import task_nll

# Above the largest task of PD1, about 1,960 trials. HPO-B has tasks of a hundred thousand trials, whose
# covariance cannot be factorised.
MOST_POINTS = 2048


@double_precision
def prior_losses(
    data: TuningData,
    priors: Sequence[tuple[GaussianProcess, Fold, Sequence[str]]],
) -> list[pd.DataFrame]:
    """Losses of priors, Section 7.4.2 (pd1_nll) and its correlations.

    Test losses are computed on every task outside the fold's training data, even if the fold does not test
    it. NLLs, Eq. 14 (singleml), use all trials of a task, or 2,048 random ones where a task has more; the
    draw is the same for every prior. EKLs, Eq. 8 (multi-kl) with Eq. 6 (degenerate), use all matched inputs.
    A loss that is not finite has no row.

    Args:
      data: all tasks.
      priors: for each prior the model, the fold it was trained for, and the names of its training tasks.

    Returns:
      For each prior, rows of `hyperbo.evaluation.records.losses` without method and seed: `held_out`, `task`,
      `kind`, `value`.
    """
    few = at_most_points(data, MOST_POINTS, seed=0)
    nlls = _task_nlls(few, [gp for gp, _, _ in priors])
    column = {task.name: number for number, task in enumerate(data.tasks)}
    frames = []
    for (gp, fold, training), of_prior in zip(priors, nlls, strict=True):
        rows: list[tuple[str, str, str, float]] = []
        learned = float(np.mean(of_prior[[column[name] for name in training]]))
        learned_ekl = _ekl(gp, only_tasks(data, training).complete_blocks)
        whole = {task.name for task in fold.training.tasks}
        outside = [task for task in data.tasks if task.name not in whole]
        # If nothing was held out, there are training losses only.
        for held_out in dict.fromkeys(_held_out(fold, task) for task in outside) or ("",):
            rows.append((held_out, "", "training_nll", learned))
            rows.append((held_out, "", "training_ekl", learned_ekl))
        for task in outside:
            both, held_out = only_tasks(data, {*whole, task.name}), _held_out(fold, task)
            rows.append((held_out, task.name, "test_nll", float(of_prior[column[task.name]])))
            rows.append((held_out, task.name, "test_ekl", _ekl(gp, both.complete_blocks)))
        frame = pd.DataFrame(rows, columns=["held_out", "task", "kind", "value"])
        frames.append(frame[np.isfinite(frame["value"])].reset_index(drop=True))
    return frames


def _held_out(fold: Fold, task: Task) -> str:
    """The name of what was held out: the fold's task dataset, or else the task itself."""
    return fold.name if fold.name == task.dataset else task.name


def _ekl(gp: GaussianProcess, blocks: Sequence[MatchedBlock]) -> float:
    try:
        return mean_ekl(gp, blocks) if blocks else float("nan")
    except NumericalError:
        return float("nan")


def _task_nlls(data: TuningData, gps: Sequence[GaussianProcess]) -> Float64[np.ndarray, "priors tasks"]:
    padded = pad_tasks(data.tasks)
    tasks: Any = tuple(jnp.asarray(array) for array in (padded.x, padded.y, padded.mask))
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *gps)
    return np.asarray(_program()(tasks, pad_batch(stacked)))[: len(gps)]


@cache
def _program() -> Any:
    """Compiled once for all calls of one shape.

    It computes one covariance of one prior at a time, also on an accelerator: those of 100 priors together
    would take about 15 GB.
    """
    return batched(_nlls_of_tasks, shared=1, at_once=False)


def _nlls_of_tasks(
    tasks: tuple[Float[Array, "t n d"], Float[Array, "t n"], Bool[Array, "t n"]], gp: GaussianProcess
) -> Float[Array, " t"]:
    return lax.map(lambda task: task_nll(gp, *task)[0], tasks)
