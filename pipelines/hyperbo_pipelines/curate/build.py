"""CurateTrials: from raw files to curated tables, by all transforms of this package."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam import pvalue

from hyperbo.data.search_space import SearchSpace
from hyperbo.data.trial import Trial, validate
from hyperbo.data.warping import output_warping
from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.elements import Reject
from hyperbo_pipelines.curate.layout import Layout
from hyperbo_pipelines.curate.relations import (
    find_duplicates,
    find_matched_blocks,
    find_repeated_ids,
    trial_key,
)
from hyperbo_pipelines.curate.summarize import summarize
from hyperbo_pipelines.curate.tables import ToTables, spill_table, warp_table

SUMMARY_NAME = "summary.json"


@dataclass(frozen=True)
class WarpedMetric:
    """The metric that `y` is warped from, and the name of the output warping."""

    metric: str
    warping: str

    def __post_init__(self) -> None:
        output_warping(self.warping)  # An unknown name fails here, not on a worker.


class CurateTrials(beam.PTransform):
    """PCollection[RawFile] -> curated tables and `summary.json` in a folder.

    Args:
      read: PCollection[RawFile] -> (PCollection[Trial], PCollection[Reject]).
      layout: the columns of the records.
      objective: the metric that is warped, and the warping.
      matched_splits: splits whose trials may form matched blocks.
      shares: names of the metrics that lie in [0, 1].
      folder: where tables and summary go; every worker must see it.
    """

    def __init__(
        self,
        read: beam.PTransform,
        layout: Layout,
        objective: WarpedMetric,
        matched_splits: Collection[str],
        folder: Path,
        *,
        shares: Collection[str] = (),
    ) -> None:
        super().__init__()
        self._shares = tuple(shares)
        self._read, self._layout, self._objective = read, layout, objective
        self._matched_splits, self._folder = frozenset(matched_splits), folder

    def expand(self, input_or_inputs: Any) -> Any:
        """Read, validate, warp and write every trial; find duplicates and blocks among the keys."""
        space, objective = self._layout.space, self._objective
        parsed, unparsed = input_or_inputs | "Read" >> self._read
        trials, invalid = validate_trials(parsed, space, self._shares)
        tables = (
            trials
            | "ToTables" >> beam.ParDo(ToTables(self._layout))
            | "Warp" >> beam.Map(warp_table, space, objective.metric, objective.warping)
            | "Spill" >> beam.Map(spill_table, self._folder)
        )
        # A trial with its curves is thousands of times larger than its key: only keys are grouped.
        keys = trials | "Key" >> beam.Map(trial_key)
        repeated = find_repeated_ids(keys)
        kept = keys | "KeepUnique" >> beam.Filter(_not_in, pvalue.AsDict(repeated))
        duplicates, blocks = find_duplicates(kept), find_matched_blocks(kept, self._matched_splits)
        repeats = repeated | "RejectRepeated" >> beam.MapTuple(_reject)
        rejects = (unparsed, invalid, repeats) | "AllRejects" >> beam.Flatten()
        return summarize((tables, rejects, repeated, duplicates, blocks), self._folder / SUMMARY_NAME)


def _not_in(key: Any, rejected: Mapping[str, str]) -> bool:
    return key.source not in rejected


def _reject(source: str, reason: str) -> Reject:
    file, _, line = source.rpartition(":")
    return Reject(file, int(line), reason)


class SpillCurated(beam.PTransform):
    """(PCollection[pa.Table], PCollection[Reject]) -> the same files as `CurateTrials`.

    For sources whose tables are complete: ids are unique, duplicates are marked, the objective is warped.

    Args:
      folder: where tables and summary go; every worker must see it.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def expand(self, input_or_inputs: Any) -> Any:
        """Write the tables and the summary."""
        tables, rejects = input_or_inputs
        names = tables | "Spill" >> beam.Map(spill_table, self._folder)
        nothing = [
            tables.pipeline | f"No{kind}" >> beam.Create([]) for kind in ("Repeats", "Duplicates", "Blocks")
        ]
        return summarize((names, rejects, *nothing), self._folder / SUMMARY_NAME)


def validate_trials(trials: Any, space: SearchSpace, shares: Collection[str] = ()) -> tuple[Any, Any]:
    """PCollection[Trial] -> (PCollection[Trial], PCollection[Reject]), each trial checked by itself.

    Hyperparameters must respect the bounds of the space, and the metrics named by `shares` lie in [0, 1].
    """
    return with_rejects(trials, "Validate", _check, space, tuple(shares))


def _check(trial: Trial, space: SearchSpace, shares: tuple[str, ...]) -> Iterator[Trial | Reject]:
    try:
        validate(trial, space)
        for name in shares:
            value = trial.metrics[name]
            # A comparison with NaN is false: an absent share breaks no rule.
            if value < 0 or value > 1:
                raise InvalidInputError(f"{name} = {value!r} is outside [0, 1]")
    except InvalidInputError as error:
        yield _reject(trial.source, error.what)
    else:
        yield trial


def with_rejects(elements: Any, label: str, make: Callable[..., Iterable[Any]], *arguments: Any) -> Any:
    """What `make(element, *arguments)` yields of all elements: a pair of the rest and the rejects."""
    made = elements | label >> beam.FlatMap(_tagged, make, arguments).with_outputs("rejects", main="made")
    return made.made, made.rejects


def _tagged(element: Any, make: Callable[..., Iterable[Any]], arguments: tuple[Any, ...]) -> Iterator[Any]:
    for made in make(element, *arguments):
        yield pvalue.TaggedOutput("rejects", made) if isinstance(made, Reject) else made
