"""ValidateTrials: trials that break a rule of their search space become rejects."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import apache_beam as beam
from apache_beam import pvalue

from hyperbo.errors import InvalidInputError
from hyperbo.search_space import SearchSpace
from hyperbo.trial import Trial, validate
from pipelines.records import Reject


class ValidateTrials(beam.PTransform):
    """PCollection[Trial] -> (PCollection[Trial], PCollection[Reject]).

    Args:
      space: the declared bounds that hyperparameters must respect.
      shares: names of the metrics that lie in [0, 1], such as error rates.
    """

    def __init__(self, space: SearchSpace, shares: Collection[str] = ()) -> None:
        super().__init__()
        self._space, self._shares = space, tuple(shares)

    def expand(self, input_or_inputs: Any) -> Any:
        """Check every trial by itself."""
        checked = input_or_inputs | "Check" >> beam.FlatMap(_check, self._space, self._shares).with_outputs(
            "rejects", main="trials"
        )
        return checked.trials, checked.rejects


def _check(trial: Trial, space: SearchSpace, shares: tuple[str, ...]) -> Iterable[Any]:
    try:
        validate(trial, space)
        for name in shares:
            value = trial.metrics[name]
            # A comparison with NaN is false: an absent share breaks no rule.
            if value < 0 or value > 1:
                raise InvalidInputError(f"{name} = {value!r} is outside [0, 1]")
    except InvalidInputError as error:
        file, _, line = trial.source.rpartition(":")
        yield pvalue.TaggedOutput("rejects", Reject(file, int(line), error.what))
    else:
        yield trial
