from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hpob_records import BEGINNINGS, hpob_records
from hyperbo_flows.experiments.experiment import Arm, Experiment
from hyperbo_flows.experiments.plan import make_plan
from hyperbo_flows.experiments.protocols import PROTOCOL_NAMES, default_protocol, lay_out
from version_folders import record, write_version

from hyperbo.errors import InvalidInputError
from hyperbo.methods import Rand
from pd1_builder.read.official_split import initialisations, tasks_of_splits


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    splits = {
        "train": hpob_records(("s-1", "s-2")),
        "validation": hpob_records(("s-3",)),
        "test": hpob_records(("s-4", "s-5"), BEGINNINGS),
    }
    write_version(folder, "hpob/4796:1.0.0", splits, warping="identity")
    uneven = splits | {"test": hpob_records(("s-4", "s-5"), {"s-4": BEGINNINGS["s-4"]})}
    write_version(folder, "hpob/5636:1.0.0", uneven, warping="identity")
    plain = [record(name, f"{name}/{i}", i / 8) for name in ("one-a", "one-b", "two-a") for i in range(3)]
    write_version(folder, "pd1/mini:1.0.0", {"matched": plain})
    large = [
        record(name, f"{name}/{i}", i / 8)
        for name in ("imagenet-resnet50-1024", "imagenet-resnet50-512", "mnist-cnn")
        for i in range(3)
    ]
    write_version(folder, "pd1/release:1.0.0", {"matched": large})
    return folder


def test_what_a_benchmark_prescribes_is_read(data_dir):
    assert tasks_of_splits("hpob/4796:1.0.0", data_dir) == {
        "test": ("s-4", "s-5"),
        "train": ("s-1", "s-2"),
        "validation": ("s-3",),
    }
    assert initialisations("hpob/4796:1.0.0", "test", data_dir) == {
        task: {name: tuple(f"{task}/{row}" for row in rows) for name, rows in named.items()}
        for task, named in BEGINNINGS.items()
    }
    with pytest.raises(InvalidInputError, match="no 'final' split with official initialisations"):
        initialisations("hpob/4796:1.0.0", "final", data_dir)
    with pytest.raises(InvalidInputError, match="no 'matched' split with official initialisations"):
        initialisations("pd1/mini:1.0.0", "matched", data_dir)


def test_hpob_trains_on_one_split_and_tests_on_another(data_dir):
    bed = lay_out("hpob/4796:1.0.0", None, "hpob", (), data_dir)
    (fold,) = bed.folds.values()
    assert [task.name for task in fold.training.tasks] == ["s-1", "s-2"]
    assert [task.name for task in fold.tests] == [task.name for task in bed.tests] == ["s-4", "s-5"]
    assert not bed.repeats
    assert bed.normalised
    for task in fold.tests:
        begun = [tuple(task.trial_ids[row] for row in rows) for rows in bed.beginnings[task.name]]
        assert begun == list(initialisations("hpob/4796:1.0.0", "test", data_dir)[task.name].values())
    # Two initialisations of every seed: runs 2 s and 2 s + 1 share what seed s learned.
    assert [bed.run_seeds(seed) for seed in (0, 3)] == [(0, 1), (6, 7)]
    assert "seed r of a run is seed r // 2 of the method" in bed.protocol
    assert np.isclose(fold.tests[0].y, fold.tests[0].objective).all()


def test_the_protocols_of_pd1(data_dir):
    related = lay_out("pd1/mini:1.0.0", None, "held-out-related", (), data_dir)
    assert set(related.folds) == {"one", "two"}
    single = lay_out("pd1/mini:1.0.0", None, "all-but-test-task", ("one-b",), data_dir)
    assert set(single.folds) == {"one-a", "two-a"}
    assert [task.name for task in single.tests] == ["one-a", "two-a"]
    assert not related.repeats
    again = lay_out("pd1/mini:1.0.0", None, "held-out-related", (), data_dir, repeats=True)
    assert again.repeats
    assert again.protocol != related.protocol
    assert single.run_seeds(3) == (3,)
    assert related.protocol != single.protocol


def test_flat_functions_are_named_where_they_are_trained_on(data_dir):
    bed = lay_out("hpob/4796:1.0.0", None, "hpob", (), data_dir)
    tasks = [
        replace(task, y=task.y * 0) if task.name in ("s-1", "s-3", "s-4") else task for task in bed.data.tasks
    ]
    assert replace(bed, data=replace(bed.data, tasks=tuple(tasks))).flat_training_tasks == ("s-1",)


def test_the_task_that_the_paper_does_not_test_is_not_tested(data_dir):
    bed = lay_out("pd1/release:1.0.0", None, "all-but-test-task", (), data_dir)
    assert set(bed.folds) == {"imagenet-resnet50-512", "mnist-cnn"}
    assert len(bed.folds["mnist-cnn"].training.tasks) == 2


@pytest.mark.parametrize(
    ("dataset", "protocol", "not_tested", "message"),
    [
        ("pd1/mini:1.0.0", "hpob", (), "no splits train and test, but matched; use a version of hpob"),
        ("pd1/mini:1.0.0", "held-out-related", ("s-9",), "no task 's-9'"),
        ("hpob/4796:1.0.0", "hpob", ("s-1",), "no test task s-1"),
        ("hpob/5636:1.0.0", "hpob", (), "test tasks have 0, 2 initialisations"),
    ],
)
def test_what_the_data_do_not_hold_is_refused(data_dir, dataset, protocol, not_tested, message):
    with pytest.raises(InvalidInputError, match=message):
        lay_out(dataset, None, protocol, not_tested, data_dir)


def test_the_protocol_of_hpo_b_has_no_repeats(data_dir):
    with pytest.raises(InvalidInputError, match=r"hpob/4796:1\.0\.0: .*leave repeats out"):
        lay_out("hpob/4796:1.0.0", None, "hpob", (), data_dir, repeats=True)


def test_tasks_that_are_named_replace_the_rule_of_the_protocol(data_dir):
    named = {"train": ("one-*",), "test": ("one-b", "two-?")}
    bed = lay_out("pd1/mini:1.0.0", None, "held-out-related", (), data_dir, **named)
    assert {
        name: ([task.name for task in fold.training.tasks], [task.name for task in fold.tests])
        for name, fold in bed.folds.items()
    } == {"test tasks": (["one-a", "one-b"], ["two-a"]), "one-b": (["one-a"], ["one-b"])}
    # Any dataset has tasks to name: HPO-B's splits and beginnings do not bind.
    hpob = lay_out("hpob/4796:1.0.0", None, "hpob", (), data_dir, repeats=True, test=("s-4",))
    assert [task.name for task in hpob.folds["s-4"].training.tasks] == ["s-1", "s-2", "s-3", "s-5"]
    assert hpob.repeats
    assert not hpob.normalised
    with pytest.raises(InvalidInputError, match=r"no task matches 'tow-\*'; the nearest is 'two-a'"):
        lay_out("pd1/mini:1.0.0", None, "held-out-related", (), data_dir, test=("tow-*",))


def test_every_dataset_has_the_protocol_of_the_paper(data_dir):
    assert {default_protocol(name) for name in ("hpob/all:1.0.0", "trials/mine:1.0.0")} <= set(PROTOCOL_NAMES)
    experiment = Experiment(
        {"Rand": Arm(Rand())}, data=data_dir, dataset="hpob/4796:1.0.0", protocol="hpob", iterations=3
    )
    assert set(make_plan(experiment).test_bed.folds) == {"test"}
