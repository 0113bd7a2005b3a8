"""Surveys of tuning data: how its tasks differ, how hard they are, and how much priors gain on them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float64

from hyperbo.data.tuning_data import TuningData
from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures.regret import simple_regrets
from hyperbo.evaluation.records.metadata import EvaluationMetadata

RANDOM_SEARCH_AT = (10, 50, 100)
GAIN_AT = (10, 50)
# With fewer inputs in common, a rank correlation has no meaning.
_FEWEST_COMMON = 10


def expected_regret(y: Float64[np.ndarray, " n"], draws: int) -> float:
    """Expected simple regret of random search among finitely many candidates, with replacement, exactly.

        E[max y - best of t] = sum_k (y_(n) - y_(k)) ((k / n)^t - ((k - 1) / n)^t),  y_(1) <= ... <= y_(n)

    >>> expected_regret(np.array([0.0, 1.0]), draws=1)
    0.5
    """
    ordered = np.sort(y)
    below = (np.arange(len(y) + 1) / len(y)) ** draws
    return float(np.sum((ordered[-1] - ordered) * np.diff(below)))


def chance_of_best(y: Float64[np.ndarray, " n"], draws: int) -> float:
    """Probability that random search with replacement finds a best candidate.

    >>> chance_of_best(np.array([0.0, 1.0]), draws=2)
    0.75
    """
    return float(1 - (1 - np.mean(y == y.max())) ** draws)


def survey_tasks(trials: pd.DataFrame, data: TuningData) -> pd.DataFrame:
    """Describe every task: its trials, divergence, the spread of y, and how hard it is for random search.

    Args:
      trials: all records of a version, with the columns `task`, `split` and `diverged`.
      data: the tuning data made from the same version.

    Returns:
      A row per task, indexed by its name: the numbers of `matched` and `unmatched` trials; the share
      `diverged`; the `best`, `median` and `worst` objective of the other trials; the standard deviation
      `spread` and the `range` of y; the expected regret of random search after t draws, `rand_<t>`; and
      `chance_10`, the probability that ten draws find the best.

    Raises:
      InvalidInputError: a task has no trial.
    """
    rows = {}
    for task in data.tasks:
        own = trials[trials["task"] == task.name]
        if own.empty:
            raise InvalidInputError(f"no trial of task {task.name!r}", where="survey")
        splits = own["split"].value_counts()
        # The best objective has the largest y, whether it is minimised or maximised.
        order = np.argsort(task.y)
        rows[task.name] = {
            "matched": int(splits.get("matched", 0)),
            "unmatched": int(splits.get("unmatched", 0)),
            "diverged": float(own["diverged"].mean()),
            "best": float(task.objective[order[-1]]),
            "median": float(np.median(task.objective)),
            "worst": float(task.objective[order[0]]),
            "spread": float(task.y.std()),
            "range": float(np.ptp(task.y)),
            **{f"rand_{draws}": expected_regret(task.y, draws) for draws in RANDOM_SEARCH_AT},
            "chance_10": chance_of_best(task.y, 10),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def rank_correlations(data: TuningData) -> pd.DataFrame:
    """Spearman's correlation of y between every two tasks, over their common matched inputs.

    NaN for fewer than 10 common inputs. Ties share their mean rank.
    """
    names = [task.name for task in data.tasks]
    blocks = [pd.DataFrame(block.y, columns=list(block.tasks)) for block in data.blocks]
    values = pd.concat(blocks, ignore_index=True) if blocks else pd.DataFrame()
    return values.reindex(columns=names).corr(method="spearman", min_periods=_FEWEST_COMMON)


def gains(
    records: pd.DataFrame,
    metadata: EvaluationMetadata,
    method: str,
    baseline: str,
    at: Sequence[int] = GAIN_AT,
) -> pd.DataFrame:
    """How much a method's regret is below a baseline's on each task after some iterations, mean over seeds.

    A row per test task, with the columns `gain_<iteration>`; NaN if a run is missing.

    Raises:
      InvalidInputError: the evaluation has no such method or no such iteration.
    """
    regrets = simple_regrets(records, metadata)
    ours, theirs = (regrets.method_index(name) for name in (method, baseline))
    found = {}
    for iteration in at:
        values = regrets.at(iteration)
        found[f"gain_{iteration}"] = (values[theirs] - values[ours]).mean(axis=1)
    return pd.DataFrame(found, index=list(regrets.tasks))


def survey_markdown(tasks: pd.DataFrame, correlations: pd.DataFrame) -> str:
    """A survey as Markdown, a table and a summary: of `survey_tasks`, perhaps with columns of `gains`."""
    shown = {
        "task": tasks.index,
        "matched": tasks["matched"],
        "unmatched": tasks["unmatched"],
        "diverged": [f"{share:.0%}" for share in tasks["diverged"]],
        "best": _numbers(tasks["best"]),
        "median": _numbers(tasks["median"]),
        "sd of y": _numbers(tasks["spread"]),
        **{f"Rand at {draws}": _numbers(tasks[f"rand_{draws}"]) for draws in RANDOM_SEARCH_AT},
        "best in 10": [f"{chance:.0%}" for chance in tasks["chance_10"]],
    }
    for name in tasks.columns:
        if name.startswith("gain_"):
            shown[f"gain at {name.removeprefix('gain_')}"] = _numbers(tasks[name])
    lines = [" | ".join(shown), " | ".join("---" if name == "task" else "---:" for name in shown)]
    lines += [" | ".join(map(str, row)) for row in zip(*shown.values(), strict=True)]
    table = "\n".join(f"| {line} |" for line in lines)
    return f"{table}\n\n{_in_words(tasks, correlations)}\n"


def _in_words(tasks: pd.DataFrame, correlations: pd.DataFrame) -> str:
    trials = int(tasks["matched"].sum() + tasks["unmatched"].sum())
    pairs = correlations.to_numpy()[np.triu_indices(len(correlations), 1)]
    pairs = pairs[np.isfinite(pairs)]
    text = f"{trials:,} trials of {len(tasks)} tasks."
    if len(pairs):
        low, middle, high = np.quantile(pairs, [0.05, 0.5, 0.95])
        text += (
            f" Spearman's correlation of y between two tasks over matched inputs: median {middle:.2f}, "
            f"5 % of pairs below {low:.2f} and 5 % above {high:.2f}, smallest {pairs.min():.2f}."
        )
    trivial = list(tasks.index[tasks["chance_10"] > 0.5])
    if trivial:
        text += f" Ten random trials find the best more often than not on {', '.join(trivial)}."
    return text


def _numbers(values: pd.Series) -> list[str]:
    return ["" if np.isnan(value) else f"{value:.3g}" for value in values]
