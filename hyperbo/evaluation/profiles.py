"""Performance profiles: how many tasks a method has solved by an iteration; tasks that all have solved."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from hyperbo.evaluation.run_array import RunArray

CRITERIA = (0.05, 0.01, 0.001)


def performance_profile(regrets: RunArray, criterion: float) -> Float64[np.ndarray, "methods iterations"]:
    """Share of (task, seed) solved, that is with regret strictly below C, at each iteration.

    (1 / PQ) sum_q sum_p 1[r_t^(p,q) < C], section "Reporting Aggregated Multi-task Results".

    Args:
      regrets: complete regrets.
      criterion: the constant C.

    Raises:
      InvalidInputError: a run is missing.
    """
    return (regrets.require_complete() < criterion).mean(axis=(1, 2))


def saturated_tasks(regrets: RunArray, iteration: int) -> tuple[str, ...]:
    """Tasks that tell no methods apart after an iteration: every method has zero regret with every seed."""
    solved = (regrets.at(iteration) == 0).all(axis=(0, 2))
    return tuple(task for task, all_zero in zip(regrets.tasks, solved, strict=True) if all_zero)
