"""CurateTrials: from raw files to curated records; the transforms of this package, composed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam import pvalue

from hyperbo.errors import InvalidInputError
from hyperbo.search_space import PD1_SEARCH_SPACE, SearchSpace
from hyperbo.trial import Trial
from pipelines.dedupe import FindDuplicates, FindRepeatedIds, trial_key
from pipelines.matching import FindMatchedBlocks
from pipelines.parse import ParseTrials
from pipelines.records import Record, Reject
from pipelines.summarize import Summarize, Summary
from pipelines.validate import ValidateTrials
from pipelines.warp import WarpRecords


@dataclass(frozen=True)
class CurationOptions:
    """What decides the records made from given raw files.

    Attributes:
      origin: how the trials came about, written into each record.
      search_space: the declared bounds and scalings.
      objective: the metric that `y` is warped from.
      warping: name of the output warping.
      max_reject_share: largest share of rows that may be rejected.
    """

    origin: str
    search_space: SearchSpace = PD1_SEARCH_SPACE
    objective: str = "best_valid/error_rate"
    warping: str = "negative_log"
    max_reject_share: float = 0.001

    def __post_init__(self) -> None:
        if not 0 <= self.max_reject_share <= 1:
            raise InvalidInputError(
                f"max_reject_share is {self.max_reject_share}", fix="give a share from 0 to 1"
            )


class Curated(NamedTuple):
    """The collections that a curation ends in; `summary` has one element."""

    records: Any
    rejects: Any
    summary: Any


class CurateTrials(beam.PTransform):
    """PCollection[RawFile] -> Curated.

    Args:
      options: what decides the records.
    """

    def __init__(self, options: CurationOptions) -> None:
        super().__init__()
        self._options = options

    def expand(self, input_or_inputs: Any) -> Any:
        """Parse, validate, find duplicates and blocks among the keys, mark, warp, summarise."""
        options = self._options
        parsed, unparsed = input_or_inputs | "Parse" >> ParseTrials(options.search_space, options.origin)
        trials, invalid = parsed | "Validate" >> ValidateTrials(options.search_space)
        keys = trials | "Key" >> beam.Map(trial_key)
        repeated = keys | "FindRepeatedIds" >> FindRepeatedIds()
        kept = keys | "KeepUnique" >> beam.Filter(_not_in, pvalue.AsDict(repeated))
        duplicates = kept | "FindDuplicates" >> FindDuplicates()
        blocks = kept | "FindMatchedBlocks" >> FindMatchedBlocks()
        of_block = blocks | "BlockOfTrial" >> beam.FlatMap(lambda b: [(i, b.block_id) for i in b.trial_ids])
        # Trials with their curves stay where they are; what was found about them comes to them.
        records = (
            trials
            | "Mark"
            >> beam.FlatMap(
                _mark,
                pvalue.AsDict(repeated),
                pvalue.AsDict(duplicates),
                pvalue.AsDict(of_block),
            )
            | "Warp" >> WarpRecords(options.search_space, options.objective, options.warping)
        )
        repeats = repeated | "RejectRepeated" >> beam.MapTuple(_reject)
        rejects = (unparsed, invalid, repeats) | "AllRejects" >> beam.Flatten()
        return Curated(records, rejects, (records, rejects, blocks) | "Summarize" >> Summarize())


def _not_in(key: Any, rejected: Mapping[str, str]) -> bool:
    return key.source not in rejected


def _mark(
    trial: Trial,
    rejected: Mapping[str, str],
    duplicates: Mapping[str, tuple[str, ...]],
    blocks: Mapping[str, str],
) -> Iterable[Record]:
    if trial.source not in rejected:
        yield Record(trial, duplicates.get(trial.trial_id, ()), blocks.get(trial.trial_id, ""))


def _reject(source: str, reason: str) -> Reject:
    file, _, line = source.rpartition(":")
    return Reject(file, int(line), reason)


def check_rejects(summary: Summary, rejects: Sequence[Reject], max_reject_share: float) -> None:
    """Refuse a build that rejected too much.

    Raises:
      InvalidInputError: names the share and the first rejected rows.
    """
    rows = summary.records() + summary.rejects
    if summary.rejects > max_reject_share * rows:
        first = "; ".join(f"{reject.file}:{reject.line}: {reject.reason}" for reject in rejects[:5])
        raise InvalidInputError(
            f"{summary.rejects} of {rows} rows rejected, over the share of {max_reject_share:g}; {first}",
            fix="mend the rows, or allow a larger max_reject_share",
        )
