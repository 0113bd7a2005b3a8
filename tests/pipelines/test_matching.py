from __future__ import annotations

import apache_beam as beam
from beam_checks import expect, key, pipeline
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.matching import FindMatchedBlocks, block_id
from pipelines.records import Block, TrialKey


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


@settings(max_examples=25, deadline=None)
@given(trial_keys(), st.randoms(use_true_random=False))
def test_blocks_are_those_of_the_definition_in_any_order(keys: list[TrialKey], random) -> None:
    with pipeline() as p:
        expect(
            p | beam.Create(random.sample(keys, len(keys))) | FindMatchedBlocks(("matched",)),
            blocks_by_hand(keys),
        )


def test_an_input_that_one_task_lacks_falls_into_a_block_of_its_own() -> None:
    keys = [key(f"{t}{i}", t, i) for t in ("t1", "t2", "t3") for i in ("i1", "i2") if (t, i) != ("t3", "i2")]
    with pipeline() as p:
        expect(
            p
            | beam.Create(keys)
            | FindMatchedBlocks(("matched",))
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
            p | beam.Create(keys) | FindMatchedBlocks(("matched",)) | beam.Map(lambda b: b.trial_ids),
            [("a", "d")],
        )
