"""Collections: points, layout, resumption, reproducibility, on the preset `tiny`."""

import gzip
import hashlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hyperbo_pipelines.collect import blocks, plan
from hyperbo_pipelines.collect.models import MODELS, Start
from hyperbo_pipelines.collect.plan import (
    TrialBlock,
    matched_blocks,
    matched_points,
    task_seed,
    unmatched_blocks,
    unmatched_points,
)
from hyperbo_pipelines.collect.preset import load_preset
from hyperbo_pipelines.collect.sweep import DESCRIPTION, TIMINGS, collect, file_name
from hyperbo_pipelines.run.execution import Execution

from hyperbo.data.search_space import PD1_SEARCH_SPACE
from hyperbo.errors import HyperBOError, InvalidInputError

TINY = load_preset("tiny")
FILES = [file_name(split, phase) for phase in range(TINY.phases) for split in plan.SPLITS]
HYPERPARAMETERS = (
    "hps.lr_hparams.initial_value",
    "hps.lr_hparams.power",
    "hps.opt_hparams.momentum",
    "hps.lr_hparams.decay_steps_factor",
)
CURVES = (
    "global_step",
    "epoch",
    "learning_rate",
    "train_cost",
    *(f"{split}/{metric}" for split in ("train", "valid", "test") for metric in ("ce_loss", "error_rate")),
)


def read(folder, name):
    with gzip.open(folder / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line, parse_constant=lambda name: pytest.fail(f"bare {name}")) for line in lines]


def contents(folder):
    """What two collections agree on: all but the wall times, and what describes them."""
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """The preset `tiny`, collected once, with its work folder and the progress reported."""
    folder = tmp_path_factory.mktemp("tiny")
    reports: list[tuple[int, int]] = []
    collection = collect(
        TINY, folder / "raw", work_folder=folder / "work", progress=lambda *report: reports.append(report)
    )
    return collection, folder, reports


@pytest.mark.parametrize("phase", [0, 1])
def test_matched_points_lie_in_the_space_and_spread_over_it(phase):
    points = matched_points(replace(TINY, matched=200), phase)
    unit = PD1_SEARCH_SPACE.to_unit(points)  # raises where a point lies outside
    np.testing.assert_allclose(unit.mean(axis=0), 0.5, atol=0.03)
    np.testing.assert_array_equal(points[: TINY.matched], matched_points(TINY, phase))


def test_unmatched_points_are_new_for_each_task_and_all_are_new_in_each_phase():
    first, second = TINY.tasks[:2]
    points = [matched_points(TINY, phase) for phase in (0, 1)]
    points += [unmatched_points(TINY, task, phase, 20) for task in (first, second) for phase in (0, 1)]
    assert len(np.unique(np.concatenate(points), axis=0)) == 2 * TINY.matched + 80
    assert task_seed(TINY, first) != task_seed(TINY, second)


@pytest.mark.slow
@pytest.mark.parametrize("phase", [0, 1])
def test_matched_trials_have_the_same_raw_values_in_every_task(collected, phase):
    by_task = {}
    for row in read(collected[0].folder, file_name("matched", phase)):
        by_task.setdefault(row["study_group"], []).append([row[name] for name in HYPERPARAMETERS])
    assert len(by_task) == len(TINY.tasks)
    points = matched_points(TINY, phase)
    for task, values in zip(TINY.tasks, by_task.values(), strict=True):
        asked = TINY.matched if not task.training_only else task.training_only * (phase == 0)
        np.testing.assert_array_equal(values, points[:asked])


def test_blocks_cover_the_trials_asked_for():
    preset = replace(TINY, matched=10, block_size=4, good=20)
    assert [block[3:] for block in matched_blocks(preset, 0, 1)] == [(0, 4), (4, 4), (8, 2)]
    # 8 of 10 matched trials are good: 12 more are asked for, of which 1 in 5 will diverge.
    assert sum(block.trials for block in unmatched_blocks(preset, 0, 1, good=8)) == 15
    assert not list(unmatched_blocks(replace(preset, good=8), 0, 1, good=8))


def test_a_task_for_training_only_has_its_first_matched_points_and_no_others():
    only = replace(TINY, tasks=(replace(TINY.tasks[0], training_only=5),))
    assert list(matched_blocks(only, 0, 0)) == [
        TrialBlock(0, "matched", 0, 0, 4),
        TrialBlock(0, "matched", 0, 4, 1),
    ]
    assert not list(matched_blocks(only, 0, 1))
    assert not list(unmatched_blocks(only, 0, 0, good=0))


def test_rows_have_the_layout_of_the_release(collected):
    rows = [row for name in FILES for row in read(collected[0].folder, name)]
    assert len({row["trial_dir"] for row in rows}) == len(rows)
    assert {tuple(row) for row in rows} == {tuple(rows[0])}, "all rows have the same columns in one order"
    for row in rows:
        assert row["final_valid/error_rate"] == row["valid/error_rate"][-1]
        shortname, dataset, model, variant, batch_size = row["study_group"].split(",")
        assert (dataset, model, int(batch_size)) == (row["dataset"], row["model"], row["hps.batch_size"])
        assert row["status"] in ("done", "diverged")
        assert row["trial_dir"].startswith(row["study_dir"] + "/")
        assert {len(row[name]) for name in CURVES} == {TINY.evaluations}
        assert row["global_step"][-1] == row["hps.total_steps"]
        assert (row["train_cost"][-1] is None) == (row["status"] == "diverged")
        assert shortname
        assert variant


def test_best_values_are_those_of_the_curves(collected):
    rows = [row for name in FILES for row in read(collected[0].folder, name)]
    for row in rows:
        for name in ("train/ce_loss", "train/error_rate", "valid/ce_loss", "valid/error_rate", "train_cost"):
            best, index, step = (row[f"best_{name}{suffix}"] for suffix in ("", "_index", "_step"))
            finite = [value for value in row[name] if value is not None]
            if not finite:
                assert (best, index, step) == (None, None, None)
            else:
                assert best == min(finite)
                assert row[name][index] == best
                assert row["global_step"][index] == step


def test_error_rates_are_whole_counts_and_above_zero(collected):
    for row in read(collected[0].folder, file_name("matched", 0)):
        for value in row["valid/error_rate"]:
            if value is not None:
                count = value * row["hps.valid_size"]
                assert count == pytest.approx(round(count), abs=1e-4)
                assert 0 < value <= 1


def test_unmatched_trials_make_up_for_those_that_diverged(collected):
    for phase in range(TINY.phases):
        by_split = {split: read(collected[0].folder, file_name(split, phase)) for split in plan.SPLITS}
        for task in TINY.tasks:
            rows = {
                split: [row for row in rows if row["study_group"].startswith(f"{task.shortname},")]
                for split, rows in by_split.items()
            }
            if task.training_only:
                assert not rows["unmatched"]
                continue
            good = sum(row["status"] == "done" for row in rows["matched"])
            assert len(rows["unmatched"]) == math.ceil((TINY.good - good) * TINY.matched / good)
            points = unmatched_points(TINY, task, phase, len(rows["unmatched"]))
            values = [[row[name] for name in HYPERPARAMETERS] for row in rows["unmatched"]]
            np.testing.assert_array_equal(values, points)


def test_the_description_names_what_the_files_were_made_from(collected):
    collection, _, _ = collected
    description = json.loads((collection.folder / DESCRIPTION).read_text(encoding="utf-8"))
    assert description["command"] == "hyperbo collect --preset tiny"
    assert description["preset_sha256"] == TINY.sha256
    assert description["seed"] == TINY.seed
    assert description["trials"] == collection.trials
    assert sum(len(read(collection.folder, name)) for name in FILES) == sum(collection.trials.values())
    for name, digest in description["files_sha256"].items():
        assert digest == hashlib.sha256((collection.folder / name).read_bytes()).hexdigest()
    assert set(description["files_sha256"]) == set(FILES), "wall times are nobody's identity"


def test_every_trial_has_its_wall_time(collected):
    folder = collected[0].folder
    timings = {row["trial_dir"]: row for row in read(folder, TIMINGS)}
    trials = [row for name in FILES for row in read(folder, name)]
    assert set(timings) == {row["trial_dir"] for row in trials}
    for row in trials:
        timing = timings[row["trial_dir"]]
        assert timing["seconds"] > 0
        assert timing["seconds"] * timing["steps_per_sec"] == pytest.approx(row["hps.total_steps"], rel=0.01)


def test_progress_grows_to_its_total(collected):
    collection, _, reports = collected
    finished = [done for done, _ in reports]
    assert finished == sorted(finished)
    assert finished[0] == 0
    assert reports[0][1] == plan.expected_trials(TINY)
    assert finished[-1] == reports[-1][1] == sum(collection.trials.values())


def test_a_second_run_trains_nothing_and_writes_the_same_bytes(collected, tmp_path):
    collection, folder, _ = collected
    again = collect(TINY, tmp_path / "again", work_folder=folder / "work")
    assert again.trained == 0
    assert contents(again.folder) == contents(collection.folder)


@pytest.mark.slow
def test_workers_train_the_same_trials_and_killed_ones_cost_a_block_each(collected, tmp_path):
    """Real processes: `kill -9` is an error within seconds, and the next run goes on."""
    collection, _, _ = collected
    out, work = tmp_path / "raw", tmp_path / "work"
    program = (
        "import sys; from pathlib import Path; from hyperbo_pipelines.collect.preset import load_preset;"
        "from hyperbo_pipelines.collect.sweep import collect;"
        "from hyperbo_pipelines.run.execution import Execution;"
        "collect(load_preset('tiny'), Path(sys.argv[1]), work_folder=Path(sys.argv[2]),"
        " execution=Execution('multi_processing', 2))"
    )
    command = [sys.executable, "-c", program, str(out), str(work)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not list(work.rglob("*.json")) and time.monotonic() < deadline:
            time.sleep(0.02)
        workers = [
            pid for pid in _children(process.pid) if b"hyperbo_pipelines.run.worker" in _command_line(pid)
        ]
        assert workers
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        _, stderr = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode != 0
    assert "a worker process ended before its work was done" in stderr
    assert not out.exists(), "nothing half-made"
    kept = {file: file.stat().st_mtime_ns for file in work.rglob("*.json")}
    resumed = collect(TINY, out, work_folder=work, execution=Execution("multi_processing", 2))
    assert 0 < resumed.trained < sum(collection.trials.values())
    assert all(file.stat().st_mtime_ns == written for file, written in kept.items())
    assert contents(out) == contents(collection.folder), "what runs the training decides nothing"


def _children(parent: int) -> list[int]:
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], check=True, capture_output=True, text=True)
    pairs = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    found = [pid for pid, of in pairs if of == parent]
    return found + [grandchild for child in found for grandchild in _children(child)]


def _command_line(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123 - a file of the kernel's
            return file.read()
    except OSError:
        return b""


@pytest.mark.slow
def test_an_interrupted_run_goes_on_with_the_missing_blocks(collected, tmp_path, monkeypatch):
    """And the same preset gives the same bytes, because it starts from nothing."""
    collection, _, _ = collected
    train, trained = blocks.TaskBlocks.train, []

    def some(self, block):
        if len(trained) == 3:
            raise HyperBOError("stopped")
        trained.append(block)
        return train(self, block)

    out, work = tmp_path / "raw", tmp_path / "work"
    monkeypatch.setattr(blocks.TaskBlocks, "train", some)
    with pytest.raises(HyperBOError, match="stopped"):
        collect(TINY, out, work_folder=work)
    monkeypatch.undo()
    assert not out.exists(), "nothing half-made"
    resumed = collect(TINY, out, work_folder=work)
    assert resumed.trained == sum(collection.trials.values()) - sum(block.trials for block in trained)
    assert contents(out) == contents(collection.folder)


@pytest.mark.slow
def test_a_changed_task_is_trained_anew_and_the_others_are_not(collected, tmp_path):
    collection, folder, _ = collected
    changed = replace(TINY, tasks=(replace(TINY.tasks[0], l2=0.01), *TINY.tasks[1:]))
    again = collect(changed, tmp_path / "changed", work_folder=folder / "work")
    first, second = (
        [row["train_cost"] for row in read(made.folder, file_name("matched", 0))]
        for made in (collection, again)
    )
    assert 0 < again.trained < sum(collection.trials.values())
    assert first[: TINY.matched] != second[: TINY.matched]
    assert first[TINY.matched :] == second[TINY.matched :]


def test_only_code_that_decides_results_has_blocks_trained_anew(tmp_path, monkeypatch):
    package = tmp_path / "collect"
    shutil.copytree(Path(blocks.__file__).parent, package)
    monkeypatch.setattr(blocks, "resources", SimpleNamespace(files=lambda _: package))

    def folder() -> Path:
        return blocks.TaskBlocks(TINY, 0, tmp_path).folder

    before = folder()
    (package / "sweep.py").write_text("# changed")
    assert folder() == before
    (package / "models" / "layers.py").write_text("# changed")
    assert folder() != before


def test_a_task_that_nearly_always_diverges_is_refused(tmp_path, monkeypatch):
    """Trials that all end in NaN: the model's weights start there."""
    mlp = MODELS["mlp"]

    def broken(*arguments):
        parameters, statistics = mlp.init(*arguments)
        return Start({name: values * math.nan for name, values in parameters.items()}, statistics)

    monkeypatch.setitem(MODELS, "mlp", mlp._replace(init=broken))
    preset = replace(TINY, tasks=TINY.tasks[1:2])
    with pytest.raises(InvalidInputError, match="breast_cancer_mlp_10: of 6 matched trials only 0 did not"):
        collect(preset, tmp_path / "raw")
    assert not (tmp_path / "raw").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "transformer"}, "task digits_simple_cnn_60: model: "),
        ({"batch_size": 500}, "task digits_simple_cnn_500: batch_size: "),
    ],
)
def test_a_task_that_does_not_fit_its_dataset_is_refused(tmp_path, change, message):
    preset = replace(TINY, tasks=(replace(TINY.tasks[0], **change),))
    with pytest.raises(InvalidInputError, match=message):
        collect(preset, tmp_path / "raw")


@pytest.mark.slow
def test_tasks_on_data_that_tfds_downloads_are_collected_alike(tmp_path):
    """On the data that TFDS mocks: random images, of which nothing can be learned, in the real shapes."""
    import tensorflow_datasets as tfds

    preset = load_preset("tfds")
    chosen = [task for task in preset.tasks if task.study in ("mnist_simple_cnn_64", "cifar10_simple_cnn_64")]
    small = tuple(replace(task, steps=4, batch_size=5) for task in chosen)
    with tfds.testing.mock_data(num_examples=40):
        collection = collect(
            replace(preset, tasks=small, phases=1, matched=2, good=2, block_size=2, evaluations=2),
            tmp_path / "raw",
        )
    rows = read(collection.folder, file_name("matched", 0))
    assert [row["study_group"].split(",")[1] for row in rows] == ["mnist"] * 2 + ["cifar10"] * 2
    assert {row["hps.train_size"] for row in rows} == {11}


@pytest.mark.slow
def test_an_unreadable_block_is_named(tmp_path):
    preset = replace(TINY, tasks=TINY.tasks[2:])
    collect(preset, tmp_path / "raw", work_folder=tmp_path / "work")
    file = next((tmp_path / "work").rglob("matched-phase0-00000-*.json"))
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(
        InvalidInputError, match=r"matched-phase0-00000-4-\w+\.json: a finished block cannot be read"
    ):
        collect(preset, tmp_path / "raw", work_folder=tmp_path / "work")
