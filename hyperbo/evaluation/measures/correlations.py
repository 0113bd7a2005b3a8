"""Losses of priors by method, test task and prior, and their Pearson correlations with regret.

After Section 7.4.2 "Correlations between the Test NLL, Pre-training Loss and BO Performance".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float64

from hyperbo.evaluation.measures.spread import ROUNDING
from hyperbo.evaluation.records.losses import KEY, KINDS
from hyperbo.evaluation.records.metadata import EvaluationMetadata
from hyperbo.evaluation.records.run_array import RunArray

# The three panels of Figure 10, and the pair that shows negative transfer in HPO-B (Section 7.6.3).
PAIRS = (
    ("test_nll", "regret"),
    ("training_nll", "regret"),
    ("training_nll", "test_nll"),
    ("test_ekl", "test_nll"),
)
_FEWEST_POINTS = 3


def quantity_name(kind: str) -> str:
    """The name of a kind of loss, or of `regret`, for a reader."""
    return "mean simple regret" if kind == "regret" else KINDS[kind]


def losses_of_priors(losses: pd.DataFrame, metadata: EvaluationMetadata) -> pd.DataFrame:
    """Losses by prior instead of run, as `regrets_of_priors` gives regrets.

    Runs that share a prior, as those of HPO-B do, share its losses: each loss counts once, with the number of
    the prior as its seed. If runs of one prior disagree, it is their mean.
    """
    by_prior = losses.assign(seed=losses["seed"] // metadata.get("runs_per_prior", 1))
    return by_prior.groupby(KEY, sort=False)["value"].mean().reset_index()


def loss_array(
    losses: pd.DataFrame, kind: str, regrets: RunArray, task_datasets: Mapping[str, str]
) -> Float64[np.ndarray, "methods tasks seeds"]:
    """Losses of one kind by method, test task and seed, on the axes of `regrets`; NaN if there is none.

    They are those of the prior that ran on the test task. For a loss on training tasks, this is the prior
    trained without the test task or its task dataset.
    """
    of_kind = losses[losses["kind"] == kind]
    # A prior trained without the test task alone comes before one trained without its task dataset.
    by_key = of_kind.set_index(["method", "held_out", "seed", "task"])["value"].to_dict()
    values = np.full((len(regrets.methods), len(regrets.tasks), len(regrets.seeds)), np.nan)
    for i, method in enumerate(regrets.methods):
        for j, task in enumerate(regrets.tasks):
            row_task = task if kind.startswith("test_") else ""
            for k, seed in enumerate(regrets.seeds):
                for held_out in (task, task_datasets.get(task, task)):
                    if (method, held_out, seed, row_task) in by_key:
                        values[i, j, k] = by_key[method, held_out, seed, row_task]
                        break
    return values


@dataclass(frozen=True)
class Correlation:
    """Pearson correlation of two quantities over experiments; an experiment is one prior of a method.

    Attributes:
      x: a kind of loss.
      y: another kind, or `regret`.
      x_values: x by method and seed, mean over test tasks; NaN without an experiment.
      y_values: y likewise.
      points: number of experiments.
      coefficient: the coefficient; NaN for fewer than 3 experiments, or if a quantity does not vary.
    """

    x: str
    y: str
    x_values: Float64[np.ndarray, "methods seeds"]
    y_values: Float64[np.ndarray, "methods seeds"]
    points: int
    coefficient: float


def correlate_losses(
    losses: pd.DataFrame, regrets: RunArray, iteration: int, task_datasets: Mapping[str, str]
) -> tuple[Correlation, ...]:
    """Pearson correlations between losses and regret, Figure 10 (hold-out-related-correlation).

    An experiment is a method with a seed, that is, a prior. Its quantities are means over the test tasks; an
    experiment that lacks a loss on some task is left out. The experiments of all methods are taken together,
    so the correlation is mainly one between methods.

    Args:
      losses: valid losses by prior, from `losses_of_priors`.
      regrets: complete regrets by prior, from `hyperbo.evaluation.measures.regret.regrets_of_priors`.
      iteration: the iteration whose regret counts, from 1.
      task_datasets: task dataset by test task.

    Returns:
      One correlation for each of `PAIRS` that has an experiment.

    Raises:
      InvalidInputError: a run is missing, or there is no such iteration.
    """
    regrets.require_complete()
    means = {kind: loss_array(losses, kind, regrets, task_datasets).mean(axis=1) for kind in KINDS}
    means["regret"] = regrets.at(iteration).mean(axis=1)
    found = []
    for x, y in PAIRS:
        both = np.isfinite(means[x]) & np.isfinite(means[y])
        if both.any():
            of_x, of_y = np.where(both, means[x], np.nan), np.where(both, means[y], np.nan)
            coefficient = pearson(of_x[both], of_y[both])
            found.append(Correlation(x, y, of_x, of_y, int(both.sum()), coefficient))
    return tuple(found)


def pearson(x: Float64[np.ndarray, " n"], y: Float64[np.ndarray, " n"]) -> float:
    """Pearson's correlation coefficient; NaN for fewer than 3 points, or if x or y varies only by rounding.

    >>> round(pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 5.0])), 3)
    0.982
    """
    if len(x) < _FEWEST_POINTS or any(np.ptp(each) <= ROUNDING * np.abs(each).max() for each in (x, y)):
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])
