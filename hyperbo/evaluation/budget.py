"""Budget to target: how many iterations runs need to bring their regret below a criterion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float64

from hyperbo.evaluation.run_array import RunArray

SHARES = (0.2, 0.5, 0.8)


def first_iteration(reached: Bool[np.ndarray, "*runs iterations"]) -> Float64[np.ndarray, "*runs"]:
    """The first iteration, counted from 1, at which something holds; infinite where it never does."""
    return np.where(reached.any(axis=-1), reached.argmax(axis=-1) + 1.0, np.inf)


def budget_to_target(regrets: RunArray, criteria: Sequence[float]) -> pd.DataFrame:
    """Iterations by which 20, 50 and 80 % of a method's runs have regret strictly below a criterion.

    A run is a task with a seed. One that does not get there within the budget is censored: nothing is put in
    its place, and a share that is not reached is infinite. The half of the runs is the median of censored
    numbers, and the iteration at which the performance profile crosses one half.

    Args:
      regrets: complete regrets.
      criteria: the constants C of the performance profiles.

    Returns:
      One row per method and criterion: `method`, `criterion`, `lower`, `median`, `upper`, `reached` (how many
      runs got there) and `runs`.

    Raises:
      InvalidInputError: a run is missing.
    """
    values = regrets.require_complete()
    rows = []
    for row, method in enumerate(regrets.methods):
        for criterion in criteria:
            needed = first_iteration(values[row] < criterion).ravel()
            # An order statistic: interpolation would mix in what was never observed.
            budgets = np.quantile(needed, SHARES, method="inverted_cdf")
            rows.append(
                (method, criterion, *map(float, budgets), int(np.isfinite(needed).sum()), needed.size)
            )
    return pd.DataFrame(rows, columns=["method", "criterion", "lower", "median", "upper", "reached", "runs"])
