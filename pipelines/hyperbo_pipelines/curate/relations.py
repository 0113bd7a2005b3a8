"""Relations between trials, found among their keys: repeated ids, duplicates, matched blocks."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Collection, Iterable
from typing import Any

import apache_beam as beam

from hyperbo.data.trial import Trial
from hyperbo_pipelines.curate.columns import MOST_DUPLICATES
from hyperbo_pipelines.curate.elements import Block, TrialKey

_SOURCES_NAMED = 5
Cell = tuple[str, str]  # task, trial id


def trial_key(trial: Trial) -> TrialKey:
    """The key of a trial. Its fingerprint covers everything except the place that the trial was read from.

    An empty curve counts as none: records do not distinguish them.
    """
    facts = {name: value for name, value in vars(trial).items() if name not in ("source", "curves")}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(trial.curves):
        curve = trial.curves[name]
        if not curve:
            continue
        digest.update(name.encode() + struct.pack(f"<{len(curve)}d", *curve))
    return TrialKey(
        trial.trial_id, trial.task, trial.split, trial.phase, trial.input_id, trial.source, digest.hexdigest()
    )


def find_repeated_ids(keys: Any) -> Any:
    """PCollection[TrialKey] -> PCollection[(source, reason)]: rows to reject because their id repeats.

    Of identical rows the first one, by source, stays. If different rows have one id, all are rejected,
    because nothing tells which is right.
    """
    return (
        keys
        | "KeyById" >> beam.WithKeys(lambda key: key.trial_id)
        | "GroupById" >> beam.GroupByKey()
        | "Judge" >> beam.FlatMapTuple(lambda _, keys: repeated_ids(keys))
    )


def repeated_ids(keys: Iterable[TrialKey]) -> list[tuple[str, str]]:
    """The sources to reject among the trials with one id, and the reasons.

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


def find_duplicates(keys: Any) -> Any:
    """PCollection[TrialKey] -> PCollection[(trial id, other ids)]: trials whose task ran the input before.

    In PD1 these are inputs that were run in both phases. They are marked, never dropped: a preparation
    decides which one counts. Only the first `MOST_DUPLICATES` ids are named; `input_id` finds all.
    """
    return (
        keys
        | "KeyByTaskAndInput" >> beam.Map(lambda key: ((key.task, key.input_id), key.trial_id))
        | "GroupByTaskAndInput" >> beam.GroupByKey()
        | "Others" >> beam.FlatMapTuple(lambda _, ids: _others(ids))
    )


def _others(ids: Iterable[str]) -> list[tuple[str, tuple[str, ...]]]:
    ordered = sorted(ids)
    if len(ordered) == 1:
        return []
    first = ordered[: MOST_DUPLICATES + 1]
    return [(each, tuple(other for other in first if other != each)[:MOST_DUPLICATES]) for each in ordered]


def find_matched_blocks(keys: Any, splits: Collection[str]) -> Any:
    """PCollection[TrialKey] -> PCollection[Block]: inputs of one phase that the same tasks ran.

    Only trials of some splits take part. In PD1 it is `matched`: its inputs were meant to be shared, and the
    data tell which tasks really share them. If a task lacks an input, for example because its row was
    rejected, the input belongs to the block of the tasks that have it. If a task ran an input twice in a
    phase, the trial with the smaller id counts. A single task forms no block.
    """
    return (
        keys
        | "Matched" >> beam.Filter(lambda key, splits: key.split in splits, frozenset(splits))
        | "KeyByInput" >> beam.Map(lambda key: ((key.phase, key.input_id), (key.task, key.trial_id)))
        | "GroupByInput" >> beam.GroupByKey()
        | "KeyByTasks" >> beam.FlatMapTuple(_key_by_tasks)
        | "GroupByTasks" >> beam.GroupByKey()
        | "Block" >> beam.MapTuple(_block)
    )


def _key_by_tasks(
    shared: tuple[int, str], cells: Iterable[Cell]
) -> Iterable[tuple[tuple[int, tuple[str, ...]], tuple[str, ...]]]:
    phase, _ = shared
    chosen: dict[str, str] = {}
    for task, trial_id in cells:
        chosen[task] = min(trial_id, chosen.get(task, trial_id))
    if len(chosen) >= 2:
        tasks = tuple(sorted(chosen))
        yield (phase, tasks), tuple(chosen[task] for task in tasks)


def _block(shared: tuple[int, tuple[str, ...]], rows: Iterable[tuple[str, ...]]) -> Block:
    phase, tasks = shared
    ordered = sorted(rows)
    trial_ids = tuple(trial_id for row in ordered for trial_id in row)
    return Block(block_id(phase, tasks), phase, tasks, len(ordered), trial_ids)


def block_id(phase: int, tasks: tuple[str, ...]) -> str:
    """Name a block by its phase and its set of tasks.

    >>> block_id(1, ("a-cnn-64", "b-mlp-32"))
    'phase1-43617d6e'
    """
    return f"phase{phase}-{hashlib.sha256(json.dumps(tasks).encode()).hexdigest()[:8]}"
