"""The survey of a dataset version in Markdown."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hyperbo.evaluation.survey import RANDOM_SEARCH_AT


def survey_markdown(tasks: pd.DataFrame, correlations: pd.DataFrame) -> str:
    """The tables of a survey.

    Args:
      tasks: of `survey_tasks`, with columns of `gains` or without.
      correlations: of `rank_correlations`.
    """
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
