from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import pytest
from beam_checks import expect, key, pipeline, raw_file
from hyperbo_pipelines.curate.columns import MOST_DUPLICATES
from hyperbo_pipelines.curate.elements import Block, TrialKey
from hyperbo_pipelines.curate.relations import (
    block_id,
    find_duplicates,
    find_matched_blocks,
    find_repeated_ids,
    repeated_ids,
    trial_key,
)
from hyperbo_pipelines.pd1.parse import parse_trial
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_pd1 import rows

from hyperbo.data.search_space import PD1_SEARCH_SPACE


def test_the_fingerprint_covers_every_fact_but_the_source() -> None:
    row = rows("matched", 1, inputs=1)[0]
    trial = parse_trial(json.dumps(row).encode(), raw_file(Path("x.jsonl")), 1, PD1_SEARCH_SPACE, "test")
    fingerprint = trial_key(trial).fingerprint
    assert trial_key(replace(trial, source="y.jsonl:9")).fingerprint == fingerprint
    changed = [
        replace(trial, phase=0),
        replace(trial, status="infeasible"),
        replace(trial, metrics=dict(trial.metrics) | {"best_train_cost": 1.0}),
        replace(trial, curves=dict(trial.curves) | {"valid/error_rate": (0.5,) * 5}),
        replace(trial, curves={k: v for k, v in trial.curves.items() if k != "global_step"}),
    ]
    assert len({trial_key(each).fingerprint for each in changed} | {fingerprint}) == 6


def test_identical_rows_keep_the_first_line_by_number_not_by_text() -> None:
    copies = [key("a", source=f"f.jsonl:{line}", fingerprint="same") for line in (10, 9, 100)]
    reason = "trial id 'a' repeats the row f.jsonl:9"
    assert repeated_ids(copies) == [("f.jsonl:10", reason), ("f.jsonl:100", reason)]


def test_different_rows_under_one_id_are_all_rejected() -> None:
    conflicting = [
        key("a", source="f.jsonl:2", fingerprint="x"),
        key("a", source="f.jsonl:1", fingerprint="y"),
    ]
    reason = "trial id 'a' names different trials: f.jsonl:1, f.jsonl:2"
    assert repeated_ids(conflicting) == [("f.jsonl:1", reason), ("f.jsonl:2", reason)]


@st.composite
def keyed_rows(draw: st.DrawFn) -> list[TrialKey]:
    chosen = draw(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy")), max_size=8))
    return [key(i, source=f"f.jsonl:{n}", fingerprint=f) for n, (i, f) in enumerate(chosen, start=1)]


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(keyed_rows(), st.randoms(use_true_random=False))
def test_what_stays_has_unique_ids_and_depends_on_no_order(keys: list[TrialKey], random) -> None:
    contents: dict[str, set[str]] = {}
    for each in keys:
        contents.setdefault(each.trial_id, set()).add(each.fingerprint)
    # One row stays of every id whose rows agree, none where they differ.
    expected = sorted(i for i, prints in contents.items() if len(prints) == 1)
    rejected = {source for i in contents for source, _ in repeated_ids([k for k in keys if k.trial_id == i])}
    assert sorted(k.trial_id for k in keys if k.source not in rejected) == expected
    shuffled = random.sample(keys, len(keys))
    with pipeline() as p:
        found = find_repeated_ids(p | beam.Create(shuffled)) | beam.Keys()
        expect(found, sorted(rejected))


def test_trials_of_one_task_and_input_are_marked_across_phases_and_splits() -> None:
    keys = [
        key("a", "t1", "i1", phase=0),
        key("b", "t1", "i1", phase=1),
        key("c", "t1", "i1", phase=1, split="unmatched"),
        key("d", "t2", "i1"),
        key("e", "t1", "i2"),
    ]
    with pipeline() as p:
        expect(
            find_duplicates(p | beam.Create(keys)),
            [("a", ("b", "c")), ("b", ("a", "c")), ("c", ("a", "b"))],
        )


def test_an_input_run_many_times_names_few_others_with_each_trial() -> None:
    keys = [key(f"{number:04d}") for number in range(200)]
    with pipeline() as p:
        found = find_duplicates(p | beam.Create(keys))
        first = [f"{number:04d}" for number in range(MOST_DUPLICATES + 1)]
        expect(
            found,
            [(k.trial_id, tuple(i for i in first if i != k.trial_id)[:MOST_DUPLICATES]) for k in keys],
        )


def test_an_id_borne_by_many_trials_names_few_of_them() -> None:
    keys = [key("a", source=f"f.jsonl:{line}", fingerprint=str(line)) for line in range(1, 101)]
    (reason,) = {reason for _, reason in repeated_ids(keys)}
    named = ", ".join(f"f.jsonl:{line}" for line in range(1, 6))
    assert reason == f"trial id 'a' names different trials: {named} and 95 more"


def blocks_by_hand(keys: list[TrialKey]) -> list[Block]:
    """The definition, written out: for every set of tasks, the inputs that exactly those tasks ran."""
    tasks_of: dict[tuple[int, str], set[str]] = {}
    for each in keys:
        if each.split == "matched":
            tasks_of.setdefault((each.phase, each.input_id), set()).add(each.task)
    found = []
    for phase, tasks in {(phase, frozenset(tasks)) for (phase, _), tasks in tasks_of.items()}:
        if len(tasks) < 2:
            continue
        names = tuple(sorted(tasks))
        cells = [
            tuple(
                min(
                    k.trial_id
                    for k in keys
                    if (k.split, k.phase, k.input_id, k.task) == ("matched", phase, input_id, task)
                )
                for task in names
            )
            for (of_phase, input_id), ran in tasks_of.items()
            if of_phase == phase and ran == tasks
        ]
        ids = tuple(trial_id for row in sorted(cells) for trial_id in row)
        found.append(Block(block_id(phase, names), phase, names, len(cells), ids))
    return found


@st.composite
def trial_keys(draw: st.DrawFn) -> list[TrialKey]:
    cells = st.tuples(
        st.sampled_from(("t1", "t2", "t3")),
        st.sampled_from(("i1", "i2", "i3", "i4")),
        st.sampled_from((0, 1)),
        st.sampled_from(("matched", "matched", "unmatched")),
    )
    drawn = draw(st.lists(cells, max_size=24))
    return [key(f"{n:02d}", t, i, phase=p, split=s) for n, (t, i, p, s) in enumerate(drawn)]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(trial_keys(), st.randoms(use_true_random=False))
def test_blocks_are_those_of_the_definition_in_any_order(keys: list[TrialKey], random) -> None:
    with pipeline() as p:
        expect(
            find_matched_blocks(p | beam.Create(random.sample(keys, len(keys))), ("matched",)),
            blocks_by_hand(keys),
        )


def test_an_input_that_one_task_lacks_falls_into_a_block_of_its_own() -> None:
    keys = [key(f"{t}{i}", t, i) for t in ("t1", "t2", "t3") for i in ("i1", "i2") if (t, i) != ("t3", "i2")]
    with pipeline() as p:
        expect(
            find_matched_blocks(p | beam.Create(keys), ("matched",))
            | beam.Map(lambda b: (b.phase, b.tasks, b.inputs, b.trial_ids)),
            [
                (1, ("t1", "t2", "t3"), 1, ("t1i1", "t2i1", "t3i1")),
                (1, ("t1", "t2"), 1, ("t1i2", "t2i2")),
            ],
        )


def test_names_differ_by_phase_and_by_tasks() -> None:
    shared = [(0, ("a", "b")), (1, ("a", "b")), (1, ("a", "c")), (1, ('a", "b',))]
    assert len({block_id(phase, tasks) for phase, tasks in shared}) == 4


def test_of_an_input_run_twice_the_smaller_trial_id_stands_in_the_block() -> None:
    keys = [key("b", "t1"), key("a", "t1"), key("c", "t1"), key("d", "t2"), key("e", "t2", phase=0)]
    with pipeline() as p:
        expect(
            find_matched_blocks(p | beam.Create(keys), ("matched",)) | beam.Map(lambda b: b.trial_ids),
            [("a", "d")],
        )
