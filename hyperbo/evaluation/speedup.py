"""Speed-up: how many times fewer iterations a method needs to pass the best alternative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.budget import first_iteration
from hyperbo.evaluation.run_array import RunArray


@dataclass(frozen=True)
class Speedup:
    """Speed-up of a method on one task.

    Attributes:
      task: the task.
      alternative: the alternative with the lowest final regret there.
      alternative_iterations: median iterations of the alternative to its lowest regret.
      method_iterations: median iterations of the method to pass that regret; infinite if it mostly never did.
      ratio: the first divided by the second; 0 if the method mostly never passed.
    """

    task: str
    alternative: str
    alternative_iterations: float
    method_iterations: float
    ratio: float


def speedups(regrets: RunArray, method: str, alternatives: Sequence[str]) -> tuple[Speedup, ...]:
    """Speed-up on each task, section "Holding Out Relevant Tasks", "Speedup".

    The best alternative of a task has the lowest median regret at the last iteration; of several, the one
    that got there in fewest iterations. Iterations are counted seed by seed, against the alternative's run
    with the same seed, and their medians divided. To pass is to get a strictly lower regret; where the
    alternative has reached zero nothing is lower, and reaching zero counts.

    Args:
      regrets: complete regrets.
      method: the method whose speed-up is asked for.
      alternatives: methods to choose the best alternative from.

    Raises:
      InvalidInputError: a run is missing, a name is unknown, or there is no alternative.
    """
    if not alternatives or method in alternatives:
        raise InvalidInputError(
            f"alternatives to {method} are {list(alternatives)}", fix="name other methods"
        )
    values = regrets.require_complete()
    own = values[regrets.method_index(method)]
    rows = [regrets.method_index(alternative) for alternative in alternatives]
    final = np.median(values[rows, :, :, -1], axis=2)
    needed = np.median(first_iteration(values[rows] == values[rows][..., -1:]), axis=2)
    result = []
    for column, task in enumerate(regrets.tasks):
        best = min(range(len(rows)), key=lambda row: (final[row, column], needed[row, column]))
        target = values[rows[best], column, :, -1:]
        passed = (own[column] < target) | ((own[column] == 0) & (target == 0))
        iterations = float(np.median(first_iteration(passed)))
        reference = float(needed[best, column])
        result.append(Speedup(task, alternatives[best], reference, iterations, reference / iterations))
    return tuple(result)
