from __future__ import annotations

import logging
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from synthetic_pd1 import TASKS, rows, write
from version_folders import record, write_version

import pd1_builder
from hyperbo.data.search_space import PD1_SEARCH_SPACE
from hyperbo.errors import InvalidInputError, VersionConflictError

NAME = "pd1_matched_phase1_results.jsonl"


# Import names of what only the `build` extra and the extras above it install.
NOT_NEEDED = (
    *("apache_beam", "array_record", "ijson", "mlcroissant", "orjson", "tensorflow", "tensorflow_datasets"),
    *("jax", "optuna", "prefect", "sklearn", "matplotlib", "jinja2", "s3fs", "aiohttp", "minisign"),
)


def test_reading_needs_nothing_of_the_extras(built: Path, tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in sys.argv[2].split():\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import pd1_builder; from pathlib import Path\n"
        "data = pd1_builder.load('pd1/mini:1.0.0', data_dir=Path(sys.argv[1]))\n"
        "frame = pd1_builder.load('pd1/mini', as_='dataframe', data_dir=Path(sys.argv[1]))\n"
        "pd1_builder.verify('pd1/mini', Path(sys.argv[1]))\n"
        "pd1_builder.diff('pd1/mini', 'pd1/mini:1.0.0', Path(sys.argv[1]))\n"
        "assert 'requests' not in sys.modules\n"
        "from pd1_builder.distribution.publish import publish\n"
        "publish('pd1/mini:1.0.0', sys.argv[3], data_dir=Path(sys.argv[1]))\n"
        "pulled = pd1_builder.load('pd1/mini', data_dir=Path(sys.argv[4]), source=sys.argv[3])\n"
        "print(len(data.tasks), len(frame) > 0, len(pulled.tasks))"
    )
    folders = (str(tmp_path / "place"), str(tmp_path / "data"))
    command = [sys.executable, "-c", script, str(built), " ".join(NOT_NEEDED), *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "4 True 4"


def expected_rows() -> list[dict[str, Any]]:
    return [*rows("matched", 0), *rows("matched", 1), *rows("unmatched", 1)]


def test_tasks_of_the_paper_preparation(built: Path) -> None:
    data = pd1_builder.load("pd1/mini:1.0.0", preparation="paper", data_dir=str(built))
    assert [task.name for task in data.tasks] == [
        "digits-mlp-128",
        "digits-mlp-32",
        "text-transformer-64",
        "wine-mlp-32",
    ]
    assert data.task_datasets == ("digits", "text", "wine")
    assert data.search_space == PD1_SEARCH_SPACE
    manifest = pd1_builder.verify("pd1/mini:1.0.0", built)
    assert (data.provenance.dataset, data.provenance.manifest_hash, data.provenance.preparation) == (
        "pd1/mini:1.0.0",
        manifest.content_hash,
        "paper",
    )
    raw = {row["trial_dir"]: row for row in expected_rows()}
    # Half of the diverged trials have a best value: it does not count.
    diverged_with_value = [
        r for r in raw.values() if r["status"] == "diverged" and r["best_valid/error_rate"] is not None
    ]
    assert diverged_with_value
    kept = [trial_id for task in data.tasks for trial_id in task.trial_ids]
    assert sorted(kept) == sorted(i for i, row in raw.items() if row["status"] == "done")
    for task in data.tasks:
        assert task.x.dtype == task.y.dtype == task.objective.dtype == np.float64
        for x, y, objective, trial_id in zip(task.x, task.y, task.objective, task.trial_ids, strict=True):
            row = raw[trial_id]
            assert objective == row["best_valid/error_rate"]
            np.testing.assert_allclose(y, -math.log(objective + 1e-10), rtol=1e-14)
            rate = (math.log(row["hps.lr_hparams.initial_value"]) - math.log(1e-5)) / math.log(1e6)
            np.testing.assert_allclose(x[0], rate, rtol=1e-12)


def test_blocks_are_inputs_by_tasks_with_nan_where_diverged(built: Path) -> None:
    data = pd1_builder.load("pd1/mini:1.0.0", data_dir=built)
    assert len(data.blocks) == 2
    names = [f"{d}-{v}-{b}" for _, d, _, v, b in (task.split(",") for task in TASKS)]
    for phase, block in enumerate(data.blocks):
        assert block.tasks == tuple(sorted(names))
        found = {}
        for row in rows("matched", phase):
            momentum = row["hps.opt_hparams.momentum"]
            _, d, _, v, b = row["study_group"].split(",")
            y = -math.log(row["best_valid/error_rate"] + 1e-10) if row["status"] == "done" else math.nan
            found[math.log(1 - momentum) / math.log(1e-3), f"{d}-{v}-{b}"] = y
        assert block.y.shape == (10, 4)
        assert np.isnan(block.y).any()
        for x, values in zip(block.x, block.y, strict=True):
            for task, y in zip(block.tasks, values, strict=True):
                (expected,) = [e for (m, t), e in found.items() if t == task and abs(m - x[2]) < 1e-12]
                np.testing.assert_allclose(y, expected, rtol=1e-14)
    assert len(data.blocks[0].complete(names[:2]).x) <= 10


def test_as_dataframe(built: Path) -> None:
    everything = pd1_builder.load("pd1/mini:1.0.0", None, as_="dataframe", data_dir=built)
    assert len(everything) == 120
    assert everything["split"].value_counts().to_dict() == {"matched": 80, "unmatched": 40}
    prepared = pd1_builder.load("pd1/mini:1.0.0", "paper", as_="dataframe", data_dir=built)
    assert len(prepared) == (everything["status"] == "done").sum()
    assert prepared["y"].notna().all()
    order = everything.loc[everything["split"] == "matched", ["task", "phase", "trial_id"]]
    assert order.equals(order.sort_values(["task", "phase", "trial_id"]))


def only_diverged(raw: Path) -> None:
    kept = rows("matched", 1, inputs=5)
    for row in kept:
        if row["study_group"] == TASKS[2]:
            row |= {"status": "diverged", "best_valid/error_rate": 0.5}
    write(raw, NAME, kept)


def test_a_task_with_only_diverged_trials_is_named_unless_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    only_diverged(tmp_path / "raw")
    data_dir = tmp_path / "data"
    pd1_builder.build(raw=tmp_path / "raw", data_dir=data_dir)
    message = r"0\.0: task 'wine-mlp-32': the preparation 'paper' keeps none of its trials \(5 diverged\)"
    with pytest.raises(InvalidInputError, match=message + "; pass skip_empty_tasks=True"):
        pd1_builder.load("pd1/mini:1.0.0", data_dir=data_dir)
    with caplog.at_level(logging.WARNING, "pd1_builder"):
        data = pd1_builder.load("pd1/mini:1.0.0", data_dir=data_dir, skip_empty_tasks=True)
    assert "wine-mlp-32" in caplog.text
    assert "wine-mlp-32" not in [task.name for task in data.tasks]
    (block,) = data.blocks
    assert block.tasks == ("digits-mlp-128", "digits-mlp-32", "text-transformer-64")


def test_one_task_alone_has_no_blocks_and_none_left_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "raw", NAME, rows("matched", 1, tasks=TASKS[:1], inputs=5))
    pd1_builder.build(raw=tmp_path / "raw", data_dir=tmp_path)
    assert pd1_builder.load("pd1/mini", data_dir=tmp_path).blocks == ()
    diverged = [row | {"status": "diverged"} for row in rows("matched", 1, tasks=TASKS[:1], inputs=5)]
    write(tmp_path / "raw", NAME, diverged)
    pd1_builder.build(version="2.0.0", raw=tmp_path / "raw", data_dir=tmp_path, parent="1.0.0")
    with pytest.raises(InvalidInputError, match="keeps no trial of any task"):
        pd1_builder.load("pd1/mini:2.0.0", data_dir=tmp_path, skip_empty_tasks=True)


def test_a_frame_is_every_record_as_stored(built: Path, caplog: pytest.LogCaptureFixture) -> None:
    frame = pd1_builder.load_frame("pd1/mini", data_dir=str(built))
    assert "taken is the newest in the data folder, pd1/mini:1.0.0" in caplog.text
    pd.testing.assert_frame_equal(frame, pd1_builder.load("pd1/mini:1.0.0", as_="dataframe", data_dir=built))
    assert "load_frame" in dir(pd1_builder)


def test_wrong_arguments(built: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"unknown preparation 'mine'; .*use observed, paper, "):
        pd1_builder.load("pd1/mini", "mine", data_dir=built)
    with pytest.raises(InvalidInputError, match="as_ is 'list'"):
        pd1_builder.load("pd1/mini", as_="list", data_dir=built)  # pyright: ignore[reportCallIssue, reportArgumentType] - the error is the point


def test_without_a_preparation_tuning_data_has_the_default_and_a_dataframe_all_records(built: Path) -> None:
    assert pd1_builder.load("pd1/mini", data_dir=built).provenance.preparation == "paper"
    frame = pd1_builder.load("pd1/mini", as_="dataframe", data_dir=built)
    assert len(frame) == 120
    assert frame["y"].isna().any()


def test_datasets_without_models_and_with_splits_of_their_own_load(tmp_path: Path) -> None:
    splits = {
        name: [record(task, f"{name}/{task}/{i}", i / 8, i / 8, phase=0) for task in tasks for i in range(3)]
        for name, tasks in {"train": ("9", "10"), "validation": ("11",), "test": ("12",)}.items()
    }
    write_version(tmp_path, "hpob/5636:1.0.0", splits, warping="identity")
    write_version(tmp_path, "trials/mine:1.0.0", {"trials": splits["train"]})
    data = pd1_builder.load("hpob/5636", data_dir=tmp_path)
    assert data.provenance.preparation == "observed"
    assert [task.name for task in data.tasks] == ["10", "11", "12", "9"]
    assert data.task("12").y.tolist() == data.task("12").objective.tolist() == [0.0, 0.125, 0.25]
    assert data.task("12").x[:, 0].tolist() == [0.0, 0.125, 0.25]
    assert data.blocks == ()
    assert len(pd1_builder.load("trials/mine", data_dir=tmp_path).tasks) == 2
    assert set(pd1_builder.load("hpob/5636", as_="dataframe", data_dir=tmp_path)["split"]) == set(splits)
    with pytest.raises(InvalidInputError, match="'paper' reads only pd1"):
        pd1_builder.load("hpob/5636", "paper", data_dir=tmp_path)


def test_several_search_spaces_at_once_are_a_dataframe_but_no_tuning_data(tmp_path: Path) -> None:
    trials = [record("9", f"5636/{i}", hyperparameters=[0.5] * (2 + i), x=[0.5] * (2 + i)) for i in range(2)]
    write_version(
        tmp_path,
        "hpob/all:1.0.0",
        {"train": trials},
        space=None,
        without=("hyperparameters.a", "hyperparameters.b"),
    )
    message = r"hpob/all:1\.0\.0: spans several search spaces; load hpob/<search space>, or as_='dataframe'"
    with pytest.raises(InvalidInputError, match=message):
        pd1_builder.load("hpob/all", data_dir=tmp_path)
    for preparation in (None, "observed"):
        frame = pd1_builder.load("hpob/all", preparation, as_="dataframe", data_dir=tmp_path)
        assert [len(x) for x in frame["x"]] == [2, 3]


def test_blocks_come_in_the_order_of_the_manifest_with_inputs_sorted(tmp_path: Path) -> None:
    trials = [
        record(task, f"{task}/{i}", i / 8, (i + 1) / 16, block=f"b{i % 2}")
        for task in ("t-2", "t-1")
        for i in (3, 0, 2, 1)
    ]
    trials.append(record("t-3", "t-3/alone", 0.0, 0.5, block="alone"))
    write_version(tmp_path, "trials/mine:1.0.0", {"trials": trials}, warping="identity")
    first, second = pd1_builder.load("trials/mine", data_dir=tmp_path).blocks
    for block, inputs in ((first, (0, 2)), (second, (1, 3))):
        assert block.tasks == ("t-1", "t-2")
        assert block.x[:, 0].tolist() == [i / 8 for i in inputs]
        assert block.y.tolist() == [[(i + 1) / 16] * 2 for i in inputs]


def test_a_cut_or_missing_file_is_refused(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "data")
    path = tmp_path / "data/pd1/mini/1.0.0/matched.parquet"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(VersionConflictError, match=r"matched\.parquet has \d+ bytes, not the \d+"):
        pd1_builder.load("pd1/mini", data_dir=tmp_path / "data")
    path.unlink()
    with pytest.raises(VersionConflictError, match=r"matched\.parquet has None bytes"):
        pd1_builder.load("pd1/mini", data_dir=tmp_path / "data")
