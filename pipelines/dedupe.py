"""FindRepeatedIds and FindDuplicates: trials recorded twice, and inputs run twice on a task."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable
from typing import Any

import apache_beam as beam

from hyperbo.trial import Trial
from pipelines.columns import MOST_DUPLICATES
from pipelines.records import TrialKey

_SOURCES_NAMED = 5


def trial_key(trial: Trial) -> TrialKey:
    """The key of a trial; its fingerprint covers every fact but where the trial was read from."""
    facts = {name: value for name, value in vars(trial).items() if name not in ("source", "curves")}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(trial.curves):
        curve = trial.curves[name]
        digest.update(name.encode() + struct.pack(f"<{len(curve)}d", *curve))
    return TrialKey(
        trial.trial_id, trial.task, trial.split, trial.phase, trial.input_id, trial.source, digest.hexdigest()
    )


class FindRepeatedIds(beam.PTransform):
    """PCollection[TrialKey] -> PCollection[(source, reason)]: rows to reject because their id repeats.

    Of identical rows the first, by source, stays. Of different rows under one id nothing tells which is
    right: all are rejected.
    """

    def expand(self, input_or_inputs: Any) -> Any:
        """Group keys by trial id."""
        return (
            input_or_inputs
            | "KeyById" >> beam.WithKeys(lambda key: key.trial_id)
            | "GroupById" >> beam.GroupByKey()
            | "Judge" >> beam.FlatMapTuple(lambda _, keys: repeated_ids(keys))
        )


def repeated_ids(keys: Iterable[TrialKey]) -> list[tuple[str, str]]:
    """Judge the trials that bear one id.

    >>> key = TrialKey("a", "t", "matched", 1, "i", "f.jsonl:1", "same")
    >>> repeated_ids([key._replace(source="f.jsonl:2"), key])
    [('f.jsonl:2', "trial id 'a' repeats the row f.jsonl:1")]
    """
    ordered = sorted(keys, key=lambda key: _place(key.source))
    first = ordered[0]
    if len({key.fingerprint for key in ordered}) == 1:
        reason = f"trial id {first.trial_id!r} repeats the row {first.source}"
        return [(key.source, reason) for key in ordered[1:]]
    sources = [key.source for key in ordered]
    more = f" and {len(sources) - _SOURCES_NAMED} more" if len(sources) > _SOURCES_NAMED else ""
    named = ", ".join(sources[:_SOURCES_NAMED])
    reason = f"trial id {first.trial_id!r} names different trials: {named}{more}"
    return [(source, reason) for source in sources]


def _place(source: str) -> tuple[str, int]:
    file, _, line = source.rpartition(":")
    return file, int(line)


class FindDuplicates(beam.PTransform):
    """PCollection[TrialKey] -> PCollection[(trial id, other ids)]: trials whose task ran the input before.

    In PD1 these are inputs run in both phases. They are marked, never dropped: which one counts is for
    a preparation to say. Of many others the first `MOST_DUPLICATES`, by id, are named; `input_id` finds all.
    """

    def expand(self, input_or_inputs: Any) -> Any:
        """Group trial ids by task and input."""
        return (
            input_or_inputs
            | "KeyByInput" >> beam.Map(lambda key: ((key.task, key.input_id), key.trial_id))
            | "GroupByInput" >> beam.GroupByKey()
            | "Others" >> beam.FlatMapTuple(lambda _, ids: _others(ids))
        )


def _others(ids: Iterable[str]) -> list[tuple[str, tuple[str, ...]]]:
    ordered = sorted(ids)
    if len(ordered) == 1:
        return []
    first = ordered[: MOST_DUPLICATES + 1]
    return [(each, tuple(other for other in first if other != each)[:MOST_DUPLICATES]) for each in ordered]
