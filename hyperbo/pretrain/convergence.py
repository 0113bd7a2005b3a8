r"""Whether a training has converged, and when its learning rate falls: decided by its losses alone.

A training has two phases. Its learning rate stays as it is until the loss has reached a plateau, or until a
fifth of the steps is left. Then the rate falls to 0 along a line, over a quarter as many steps as were done
before. The second phase removes what the noise of the minibatches adds to the loss. It cannot replace the
first: a training that left the first while the loss was falling has not converged.

The plateau is that of early stopping: the lowest loss is some calls ago (Prechelt, "Early stopping - but
when?", 1998). The fall of the rate is the cool-down of Zhai, Kolesnikov, Houlsby and Beyer, "Scaling vision
transformers", CVPR 2022.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

__all__ = ["Fall", "calls_done", "cooldown", "fall_at_end", "fall_of_training", "next_rates", "rates"]

# Of the steps, at most: what is left for the cool-down; and its length relative to the steps before it.
_SHARE_LEFT, _SHARE_OF_BEFORE = 5, 4
# The parts of a course of losses of which the last two are compared.
_PARTS = 10
# In standard errors, and in nats per task: a smaller fall is noise, or does not matter.
_ERRORS, _NATS = 2.0, 0.1


def cooldown(losses: Float64[np.ndarray, " calls"], calls: int, patience: int) -> tuple[int, int] | None:
    """When the learning rate falls: the calls before which it begins and ends; None: not yet.

    Args:
      losses: of the calls done so far.
      calls: of the whole training, at most.
      patience: calls in a row without a loss lower than all before, after which the rate falls.

    >>> cooldown(np.array([3.0, 1.0, 2.0, 2.0]), calls=100, patience=2), cooldown(np.ones(0), 100, 2)
    ((4, 5), None)
    """
    latest = calls - calls // _SHARE_LEFT
    numbers = np.arange(len(losses))
    is_lowest = losses < np.fmin.accumulate(np.append(np.inf, losses))[:-1]
    since = numbers - np.maximum.accumulate(np.where(is_lowest, numbers, 0))
    ends = (since >= patience) | (numbers + 1 >= latest)
    if not ends.any():
        return None
    done = int(np.argmax(ends)) + 1
    return done, min(calls, done + math.ceil(done / _SHARE_OF_BEFORE))


def rates(begin: int, end: int, call: int) -> tuple[float, float]:
    """The learning rate at the beginning and at the end of a call, as a share of the first one.

    >>> rates(4, 8, 3), rates(4, 8, 4), rates(4, 8, 7), rates(4, 8, 9)
    ((1.0, 1.0), (1.0, 0.75), (0.25, 0.0), (0.0, 0.0))
    """
    first, last = (min(max((end - at) / max(end - begin, 1), 0.0), 1.0) for at in (call, call + 1))
    return (1.0, 1.0) if call < begin else (first, last)


def next_rates(losses: Float64[np.ndarray, " calls"], training: Mapping[str, Any]) -> tuple[float, float]:
    """The learning rate at both ends of the call that comes after those with these losses, as `rates` does.

    Args:
      losses: of the calls done so far.
      training: settings of `NLLTraining`, as plain values.
    """
    phases = _cooldown_of(losses, training)
    return (1.0, 1.0) if phases is None else rates(*phases, len(losses))


def calls_done(losses: Float64[np.ndarray, " calls"], training: Mapping[str, Any]) -> int:
    """How many calls a training took, of all that have a loss or a place for one."""
    phases = _cooldown_of(losses, training)
    return len(losses) if phases is None else phases[1]


def _cooldown_of(
    losses: Float64[np.ndarray, " calls"], training: Mapping[str, Any]
) -> tuple[int, int] | None:
    patience = training.get("patience")
    calls = training["steps"] // training["steps_per_call"] if patience is not None else 0
    return None if patience is None else cooldown(losses, calls, patience)


@dataclass(frozen=True)
class Fall:
    """How much a training lowered its loss in its last tenth.

    Attributes:
      before: mean loss of the tenth before, in nats.
      last: mean loss of the last tenth.
      share: of the training that a part is: a tenth, or more where few losses are known.
      matters: whether the fall is more than noise, and more than a tenth of a nat per task.
    """

    before: float
    last: float
    share: float
    matters: bool

    def __str__(self) -> str:
        return f"from {self.before:.6g} to {self.last:.6g} in its last {self.share:.0%}"


def fall_at_end(losses: Float64[np.ndarray, " k"], tasks: int) -> Fall:
    """Compare the last two tenths of a course of losses.

    Args:
      losses: of a training at one learning rate, at least one.
      tasks: number of tasks over which a loss is a sum; 1 where it is a mean.

    >>> fall_at_end(np.linspace(9.0, 1.0, 100), 1).matters, fall_at_end(np.ones(100), 1).matters
    (True, False)
    """
    size = max(len(losses) // _PARTS, 1)
    before, last = losses[-2 * size : -size], losses[-size:]
    if not len(before):
        return Fall(float(losses[-1]), float(losses[-1]), 1.0, False)
    error = math.sqrt((np.var(before) + np.var(last)) / max(size - 1, 1))
    fallen = float(np.mean(before) - np.mean(last))
    matters = fallen > max(_ERRORS * error, _NATS * tasks)
    return Fall(float(np.mean(before)), float(np.mean(last)), size / len(losses), matters)


def fall_of_training(losses: Float64[np.ndarray, " k"], training: Mapping[str, Any], tasks: int) -> Fall:
    """How much a training lowered its loss at last, before its learning rate fell.

    Args:
      losses: along the training, at least one.
      training: its settings, those of `NLLTraining` or of a training by L-BFGS, as plain values.
      tasks: number of training tasks.
    """
    phases = _cooldown_of(losses, training)
    losses = losses if phases is None else losses[: phases[0]]
    # The NLL of minibatches is a sum over tasks; EKL and weighted sums are means.
    return fall_at_end(losses, tasks if "points_per_task" in training else 1)
