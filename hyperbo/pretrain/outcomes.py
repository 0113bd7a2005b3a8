"""What comes of the jobs of a batch where some fail: an error that keeps what was learned from the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hyperbo.errors import NumericalError

T = TypeVar("T")


class TrainingError(NumericalError):
    """Jobs of a batch whose training has no usable result, with what was learned from the others.

    Args:
      outcomes: one per job, in order: what was learned, or why nothing was. At least one has failed.
    """

    def __init__(self, outcomes: Sequence[Any]) -> None:
        self.outcomes = tuple(outcomes)
        failures = [outcome for outcome in self.outcomes if isinstance(outcome, NumericalError)]
        others = f" ({len(failures)} of a batch of {len(self.outcomes)} failed)"
        super().__init__(str(failures[0]) + (others if len(self.outcomes) > 1 else ""))

    def __reduce__(self) -> tuple[object, ...]:
        # The message does not make the error again, as it must be between processes.
        return (type(self), (self.outcomes,))


def all_trained(outcomes: Sequence[T | NumericalError]) -> list[T]:
    """What was learned from every job of a batch.

    Raises:
      TrainingError: a job failed.

    >>> all_trained(["one", NumericalError("no use")])
    Traceback (most recent call last):
        ...
    hyperbo.pretrain.outcomes.TrainingError: no use (1 of a batch of 2 failed)
    """
    learned = [outcome for outcome in outcomes if not isinstance(outcome, NumericalError)]
    if len(learned) < len(outcomes):
        raise TrainingError(outcomes)
    return learned


def outcomes_of(train: Callable[[], Sequence[T]]) -> list[T | NumericalError]:
    """What a training of a batch made of each job, where some may fail: the inverse of `all_trained`.

    >>> [str(outcome) for outcome in outcomes_of(lambda: all_trained(["one", NumericalError("no use")]))]
    ['one', 'no use']
    """
    try:
        return list(train())
    except TrainingError as error:
        return list(error.outcomes)
