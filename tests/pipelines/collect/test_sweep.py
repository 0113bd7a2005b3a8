"""Collections: points, layout, resumption, reproducibility, on the preset `tiny`."""

import gzip
import hashlib
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from hyperbo.errors import InvalidInputError
from hyperbo.search_space import PD1_SEARCH_SPACE
from pipelines.collect import blocks
from pipelines.collect.points import matched_points, task_seed, unmatched_points
from pipelines.collect.preset import load_preset
from pipelines.collect.sweep import DESCRIPTION, FILES, Progress, collect

TINY = load_preset("tiny")
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


def read(folder, split):
    with gzip.open(folder / FILES[split], "rt", encoding="utf-8") as lines:
        return [json.loads(line, parse_constant=lambda name: pytest.fail(f"bare {name}")) for line in lines]


def contents(folder):
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """The preset `tiny`, collected once, with its work folder and the progress reported."""
    folder = tmp_path_factory.mktemp("tiny")
    reports: list[Progress] = []
    collection = collect(TINY, folder / "raw", work_folder=folder / "work", progress=reports.append)
    return collection, folder, reports


def test_matched_points_lie_in_the_space_and_spread_over_it():
    points = matched_points(replace(TINY, matched=200))
    unit = PD1_SEARCH_SPACE.to_unit(points)  # raises where a point lies outside
    np.testing.assert_allclose(unit.mean(axis=0), 0.5, atol=0.03)
    np.testing.assert_array_equal(points[:6], matched_points(TINY))


def test_unmatched_points_are_new_for_each_task():
    first, second = TINY.tasks[:2]
    points = [matched_points(TINY), unmatched_points(TINY, first, 20), unmatched_points(TINY, second, 20)]
    assert len(np.unique(np.concatenate(points), axis=0)) == 46
    assert task_seed(TINY, first) != task_seed(TINY, second)


def test_matched_trials_have_the_same_raw_values_in_every_task(collected):
    by_task = {}
    for row in read(collected[0].folder, "matched"):
        by_task.setdefault(row["study_group"], []).append([row[name] for name in HYPERPARAMETERS])
    assert list(by_task) == [task.study_group for task in TINY.tasks]
    for values in by_task.values():
        np.testing.assert_array_equal(values, matched_points(TINY))


def test_rows_have_the_layout_of_the_release(collected):
    rows = [row for split in FILES for row in read(collected[0].folder, split)]
    assert len({row["trial_dir"] for row in rows}) == len(rows)
    assert {tuple(row) for row in rows} == {tuple(rows[0])}, "all rows have the same columns in one order"
    for row in rows:
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
    rows = [row for split in FILES for row in read(collected[0].folder, split)]
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
    for row in read(collected[0].folder, "matched"):
        for value in row["valid/error_rate"]:
            if value is not None:
                count = value * row["hps.valid_size"]
                assert count == pytest.approx(round(count), abs=1e-4)
                assert 0 < value <= 1


def test_as_many_unmatched_trials_as_asked_for_did_not_diverge(collected):
    for task in TINY.tasks:
        rows = [
            row for row in read(collected[0].folder, "unmatched") if row["study_group"] == task.study_group
        ]
        assert sum(row["status"] == "done" for row in rows) == TINY.unmatched
        assert rows[-1]["status"] == "done"
        points = unmatched_points(TINY, task, len(rows))
        np.testing.assert_array_equal([[row[name] for name in HYPERPARAMETERS] for row in rows], points)


def test_the_description_names_what_the_files_were_made_from(collected):
    collection, _, _ = collected
    description = json.loads((collection.folder / DESCRIPTION).read_text(encoding="utf-8"))
    assert description["command"] == "hyperbo collect --preset tiny"
    assert description["preset_sha256"] == TINY.sha256
    assert description["seed"] == TINY.seed
    for split, name in FILES.items():
        data = (collection.folder / name).read_bytes()
        assert description["files"][name]["sha256"] == hashlib.sha256(data).hexdigest()
        assert (
            description["files"][name]["rows"]
            == len(read(collection.folder, split))
            == collection.rows[split]
        )


def test_progress_grows_to_its_total(collected):
    _, _, reports = collected
    finished = [report.finished for report in reports]
    assert finished == sorted(finished)
    assert finished[0] == 0
    assert finished[-1] == reports[-1].total == len(TINY.tasks) * (TINY.matched + TINY.unmatched)


def test_a_second_run_trains_nothing_and_writes_the_same_bytes(collected, tmp_path):
    collection, folder, _ = collected
    again = collect(TINY, tmp_path / "again", work_folder=folder / "work")
    assert again.trained == 0
    assert contents(again.folder) == contents(collection.folder)


def test_a_killed_run_goes_on_with_the_missing_blocks(collected, tmp_path):
    """And, for it starts from nothing, the same preset gives the same bytes."""
    collection, _, _ = collected
    reports: list[Progress] = []

    def stop_in_the_second_task(report: Progress) -> None:
        reports.append(report)
        if report.study == TINY.tasks[1].study and report.finished > len(TINY.tasks) * 4:
            raise KeyboardInterrupt

    out, work = tmp_path / "raw", tmp_path / "work"
    with pytest.raises(KeyboardInterrupt):
        collect(TINY, out, work_folder=work, progress=stop_in_the_second_task)
    assert not out.exists(), "nothing half-made"
    kept = {file: file.stat().st_mtime_ns for file in work.rglob("*.jsonl")}
    assert kept
    resumed = collect(TINY, out, work_folder=work)
    assert 0 < resumed.trained < collection.trained
    assert all(file.stat().st_mtime_ns == time for file, time in kept.items())
    assert contents(out) == contents(collection.folder)


def test_a_changed_task_is_trained_anew_and_the_others_are_not(collected, tmp_path):
    collection, folder, _ = collected
    changed = replace(TINY, tasks=(replace(TINY.tasks[0], l2=0.01), *TINY.tasks[1:]))
    again = collect(changed, tmp_path / "changed", work_folder=folder / "work")
    first = [row["train_cost"] for row in read(collection.folder, "matched")]
    second = [row["train_cost"] for row in read(again.folder, "matched")]
    assert 0 < again.trained < collection.trained
    assert first[: TINY.matched] != second[: TINY.matched]
    assert first[TINY.matched :] == second[TINY.matched :]


def test_a_task_that_nearly_always_diverges_is_refused(tmp_path, monkeypatch):
    """Trials that all end in NaN: the model's weights start there."""
    mlp = blocks.MODELS["mlp"]

    def broken(*arguments):
        return {name: values * math.nan for name, values in mlp.init(*arguments).items()}

    monkeypatch.setitem(blocks.MODELS, "mlp", replace(mlp, init=broken))
    preset = replace(TINY, tasks=TINY.tasks[1:2])
    with pytest.raises(
        InvalidInputError, match="breast_cancer_mlp_10: of 25 unmatched trials only 0 did not"
    ):
        collect(preset, tmp_path / "raw")
    assert not (tmp_path / "raw").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "transformer"}, "task digits_simple_cnn_60: model: model 'transformer' takes text inputs"),
        (
            {"batch_size": 500},
            "task digits_simple_cnn_500: batch_size: batch_size = 500 is more than the 300",
        ),
    ],
)
def test_a_task_that_does_not_fit_its_dataset_is_refused(tmp_path, change, message):
    preset = replace(TINY, tasks=(replace(TINY.tasks[0], **change),))
    with pytest.raises(InvalidInputError, match=message):
        collect(preset, tmp_path / "raw")


def test_an_unreadable_block_is_named(tmp_path):
    preset = replace(TINY, tasks=TINY.tasks[2:])
    collect(preset, tmp_path / "raw", work_folder=tmp_path / "work")
    file = next((tmp_path / "work").rglob("matched-00000-*.jsonl"))
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(InvalidInputError, match=r"matched-00000-\w+\.jsonl: a finished block cannot be read"):
        collect(preset, tmp_path / "raw", work_folder=tmp_path / "work")
