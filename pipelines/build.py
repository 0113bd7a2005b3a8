"""CurateTrials: from raw files to curated tables; the transforms of this package, composed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam import pvalue

from pipelines.columns import Layout
from pipelines.dedupe import FindDuplicates, FindRepeatedIds, trial_key
from pipelines.matching import FindMatchedBlocks
from pipelines.records import Reject
from pipelines.summarize import Summarize
from pipelines.tables import SpillTables, ToTables
from pipelines.validate import ValidateTrials
from pipelines.warp import WarpTables

SUMMARY_NAME = "summary.json"


@dataclass(frozen=True)
class Objective:
    """The metric that `y` is warped from, and the name of the output warping."""

    metric: str
    warping: str


class CurateTrials(beam.PTransform):
    """PCollection[RawFile] -> curated tables and `summary.json` in a folder.

    Args:
      read: PCollection[RawFile] -> (PCollection[Trial], PCollection[Reject]).
      layout: the columns of the records.
      objective: what is warped, and how.
      matched_splits: splits whose trials may form matched blocks.
      shares: names of the metrics that lie in [0, 1].
      folder: where tables and summary go; every worker must see it.
    """

    def __init__(
        self,
        read: beam.PTransform,
        layout: Layout,
        objective: Objective,
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
        """Read, validate, warp and put aside every trial; find duplicates and blocks among the keys."""
        space, objective = self._layout.space, self._objective
        parsed, unparsed = input_or_inputs | "Read" >> self._read
        trials, invalid = parsed | "Validate" >> ValidateTrials(space, self._shares)
        tables = (
            trials
            | "ToTables" >> ToTables(self._layout)
            | "Warp" >> WarpTables(space, objective.metric, objective.warping)
            | "Spill" >> SpillTables(self._folder)
        )
        # A trial with its curves is thousands of times larger than its key: only keys are grouped.
        keys = trials | "Key" >> beam.Map(trial_key)
        repeated = keys | "FindRepeatedIds" >> FindRepeatedIds()
        kept = keys | "KeepUnique" >> beam.Filter(_not_in, pvalue.AsDict(repeated))
        duplicates = kept | "FindDuplicates" >> FindDuplicates()
        blocks = kept | "FindMatchedBlocks" >> FindMatchedBlocks(self._matched_splits)
        repeats = repeated | "RejectRepeated" >> beam.MapTuple(_reject)
        rejects = (unparsed, invalid, repeats) | "AllRejects" >> beam.Flatten()
        collections = (tables, rejects, repeated, duplicates, blocks)
        return collections | "Summarize" >> Summarize(self._folder / SUMMARY_NAME)


def _not_in(key: Any, rejected: Mapping[str, str]) -> bool:
    return key.source not in rejected


def _reject(source: str, reason: str) -> Reject:
    file, _, line = source.rpartition(":")
    return Reject(file, int(line), reason)


class SpillCurated(beam.PTransform):
    """(PCollection[pa.Table], PCollection[Reject]) -> the same files as `CurateTrials`.

    For sources whose tables are complete as they are read: ids unique, duplicates marked, objective warped.

    Args:
      folder: where tables and summary go; every worker must see it.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def expand(self, input_or_inputs: Any) -> Any:
        """Put the tables aside and summarise."""
        tables, rejects = input_or_inputs
        names = tables | "Spill" >> SpillTables(self._folder)
        nothing = [
            tables.pipeline | f"No{kind}" >> beam.Create([]) for kind in ("Repeats", "Duplicates", "Blocks")
        ]
        return (names, rejects, *nothing) | "Summarize" >> Summarize(self._folder / SUMMARY_NAME)
