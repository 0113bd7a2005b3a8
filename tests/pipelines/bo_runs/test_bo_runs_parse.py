from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from apache_beam.testing.util import assert_that
from beam_checks import expect, pipeline
from evaluation_folders import drawn_records, write_evaluation
from hyperbo_pipelines.bo_runs.evaluation import bo_runs_layout, find_evaluation_files
from hyperbo_pipelines.bo_runs.parse import ObservedVersion, ParseBoRuns, curate_evaluation
from hyperbo_pipelines.curate.columns import schema
from hyperbo_pipelines.curate.elements import Reject
from hypothesis import given, settings
from hypothesis import strategies as st
from version_folders import SPACE, record, write_version

import pd1_builder
from hyperbo.data.tuning_data import TuningData
from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.records.runs import read_records

WARPING = "negative_log"
METHODS = ("H-NLL", "Rand")
SEEDS = (0, 1, 12)
ITERATIONS = 5


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a version of two tasks in two splits, one trial without a value."""
    draw = np.random.default_rng(7)
    values: list[float | None] = [None, *draw.uniform(0.01, 0.9, 7).tolist()]
    inputs = draw.uniform(size=8).tolist()
    splits = {
        split: [
            record(task, f"{split}/{task}/{number}", a, value, task_dataset=task.partition("-")[0])
            for task in ("digits-mlp", "wine-mlp")
            for number, (a, value) in enumerate(zip(inputs, values, strict=True))
        ]
        for split in ("matched", "unmatched")
    }
    return write_version(tmp_path_factory.mktemp("data"), "pd1/mini:1.0.0", splits)


@pytest.fixture(scope="module")
def data(dataset: Path) -> TuningData:
    return pd1_builder.load("pd1/mini:1.0.0", "observed", data_dir=dataset.parents[2])


@pytest.fixture(scope="module")
def raw(dataset: Path) -> dict[str, dict[str, Any]]:
    """The dataset's records by trial id."""
    frames = [pd.read_parquet(path) for path in sorted(dataset.glob("*.parquet"))]
    return {row["trial_id"]: row for row in pd.concat(frames).to_dict("records")}


@pytest.fixture
def records(data: TuningData) -> pd.DataFrame:
    return drawn_records(data, METHODS, SEEDS, ITERATIONS)


def observed(folder: Path, dataset: Path) -> ObservedVersion:
    return ObservedVersion(find_evaluation_files(folder), tuple(sorted(dataset.glob("*.parquet"))))


def curated(folder: Path, dataset: Path) -> tuple[list[dict[str, Any]], list[Reject]]:
    made = list(curate_evaluation(observed(folder, dataset), SPACE, WARPING))
    rows = [row for table in made if isinstance(table, pa.Table) for row in table.to_pylist()]
    return rows, [reject for reject in made if isinstance(reject, Reject)]


def expected(records: pd.DataFrame, raw: dict[str, dict[str, Any]], evaluation: str) -> list[dict[str, Any]]:
    """The records of run records by one loop; a run's rows follow each other in iterations."""
    made = []
    best: dict[tuple[str, str, int], float] = {}
    for number, row in enumerate(records.to_dict("records"), start=1):
        trial = raw[row["trial_id"]]
        run = (row["method"], row["task"], row["seed"])
        best[run] = max(best.get(run, -math.inf), row["y"])
        a, b = trial["hyperparameters.a"], trial["hyperparameters.b"]
        made.append(
            {
                "split": "runs",
                "task": row["task"],
                "task_dataset": row["task"].partition("-")[0],
                "trial_id": f"{evaluation}/{run[0]}/{run[1]}/{run[2]:04d}/{row['iteration']:06d}",
                "phase": 0,
                "origin": "bo_run",
                "source": f"{evaluation}/records.parquet:{number}",
                "status": "done",
                "diverged": False,
                "input_id": trial["input_id"],
                "duplicates": [],
                "block": "",
                "method": row["method"],
                "seed": row["seed"],
                "iteration": row["iteration"],
                "observed_trial": row["trial_id"],
                "prior": row.get("prior", ""),
                "dataset": "pd1/mini:1.0.0",
                "evaluation": evaluation,
                "y": -math.log(trial["metrics.best_valid/error_rate"] + 1e-10),
                "hyperparameters.a": a,
                "hyperparameters.b": b,
                "x.a": a,
                "x.b": (math.log(b) - math.log(1e-3)) / -math.log(1e-3),
                "metrics.objective": trial["metrics.best_valid/error_rate"],
                "metrics.regret": row["y_max"] - best[run],
                "metrics.y_max": row["y_max"],
            }
        )
    return made


def assert_equal(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    assert len(found) == len(wanted)
    for row, other in zip(found, wanted, strict=True):
        assert list(row) == list(other)
        logarithms = {"y", "x.b"}  # NumPy's and Python's may differ in the last bit.
        assert {k: v for k, v in row.items() if k not in logarithms} == {
            k: v for k, v in other.items() if k not in logarithms
        }
        assert [row["y"], row["x.b"]] == pytest.approx([other["y"], other["x.b"]], rel=1e-14)


def test_rows_become_records_with_the_inputs_of_the_trials_observed(
    records: pd.DataFrame, data: TuningData, dataset: Path, raw: dict[str, Any], tmp_path: Path
) -> None:
    records["prior"] = np.where(records["method"] == "H-NLL", "0123456789abcdef", "")
    folder = write_evaluation(tmp_path, records, data)
    rows, rejects = curated(folder, dataset)
    assert rejects == []
    assert_equal(rows, expected(read_records(folder / "records.parquet"), raw, rows[0]["evaluation"]))


def test_the_transform_gives_tables_of_the_layout(
    records: pd.DataFrame, data: TuningData, dataset: Path, tmp_path: Path
) -> None:
    records.loc[3, "trial_id"] = "nowhere"
    evaluation = observed(write_evaluation(tmp_path, records, data), dataset)
    columns = schema(bo_runs_layout(SPACE).columns)

    def check(tables: list[pa.Table]) -> None:
        (table,) = tables
        assert table.column_names == ["split", *columns.names]
        assert table.select(columns.names).schema.equals(columns)
        assert table.num_rows == len(records) - 1

    with pipeline() as p:
        files = p | beam.Create([evaluation.evaluation.records])
        tables, rejects = files | ParseBoRuns(SPACE, WARPING, [evaluation])
        assert_that(tables, check)
        source = f"{evaluation.evaluation.evaluation_id}/records.parquet"
        expect(rejects, [Reject(source, 4, "the trial 'nowhere' is not in pd1/mini:1.0.0")])


def test_runs_without_the_column_prior_have_none(
    records: pd.DataFrame, data: TuningData, dataset: Path, tmp_path: Path
) -> None:
    rows, _ = curated(write_evaluation(tmp_path / "without", records, data), dataset)
    assert {row["prior"] for row in rows} == {""}
    records["prior"] = pd.Series(["p"] * 3 + [None] * (len(records) - 3), dtype="str")
    rows, _ = curated(write_evaluation(tmp_path / "partly", records, data), dataset)
    assert [row["prior"] for row in rows] == ["p"] * 3 + [""] * (len(records) - 3)


def test_a_row_that_contradicts_the_dataset_is_a_reject_with_its_place_and_reason(
    records: pd.DataFrame, data: TuningData, dataset: Path, tmp_path: Path
) -> None:
    other = next(row for row in range(len(records)) if records.loc[row, "task"] == "wine-mlp")
    records.loc[0, "trial_id"] = records.loc[other, "trial_id"]
    records.loc[1, "trial_id"] = "gone"
    records.loc[2, "y"] -= 1e-6
    records["task_dataset"] = records["task_dataset"].where(records["task"] != "wine-mlp", "beer")
    rows, rejects = curated(write_evaluation(tmp_path, records, data), dataset)
    reasons = {reject.line: reject.reason for reject in rejects}
    trial = records.loc[0, "trial_id"]
    assert reasons[1] == (
        f"task is 'digits-mlp', but that of the trial {trial!r} of pd1/mini:1.0.0 is 'wine-mlp'"
    )
    assert reasons[2] == "the trial 'gone' is not in pd1/mini:1.0.0"
    assert reasons[3].startswith(f"y = {float(records.loc[2, 'y'])!r} is not the objective ")
    assert reasons[3].endswith(" under the warping negative_log")
    assert reasons[other + 1].startswith("task_dataset is 'beer', but that of the trial ")
    of_wine = (records["task"] == "wine-mlp").sum()
    assert (len(rejects), len(rows)) == (3 + of_wine, len(records) - 3 - of_wine)
    assert [reject.line for reject in rejects] == sorted(reasons)
    # The regret of a run is that of all its rows: the reject of one changes no other.
    first = records[
        (records["method"] == "H-NLL") & (records["task"] == "digits-mlp") & (records["seed"] == 0)
    ]
    best = np.maximum.accumulate(first["y"].to_numpy())
    regret = {row["iteration"]: row["metrics.regret"] for row in rows[: ITERATIONS - 3]}
    assert regret == {4: first["y_max"].iloc[3] - best[3], 5: first["y_max"].iloc[4] - best[4]}


def test_an_evaluation_whose_every_row_is_rejected_gives_no_table(
    records: pd.DataFrame, data: TuningData, dataset: Path, tmp_path: Path
) -> None:
    records["trial_id"] = "gone"
    rows, rejects = curated(write_evaluation(tmp_path, records, data), dataset)
    assert (rows, len(rejects)) == ([], len(records))


@settings(max_examples=15)
@given(st.randoms(use_true_random=False), st.integers(1, 7))
def test_records_do_not_depend_on_the_order_of_the_rows(
    data: TuningData, dataset: Path, tmp_path_factory: pytest.TempPathFactory, random: Any, iterations: int
) -> None:
    records = drawn_records(data, METHODS, (0, 1), iterations)
    order = list(range(len(records)))
    random.shuffle(order)

    def made(frame: pd.DataFrame) -> list[dict[str, Any]]:
        rows, rejects = curated(write_evaluation(tmp_path_factory.mktemp("runs"), frame, data), dataset)
        assert rejects == []
        evaluation = rows[0]["evaluation"]
        for row in rows:
            row["trial_id"] = row["trial_id"].removeprefix(evaluation)
            del row["evaluation"], row["source"]
        return sorted(rows, key=lambda row: row["trial_id"])

    rows = made(records.iloc[order].reset_index(drop=True))
    assert rows == made(records)
    # Ids sort as the iterations of a run do.
    keys = [(row["method"], row["task"], row["seed"], row["iteration"]) for row in rows]
    assert keys == sorted(set(keys))


def test_the_same_outcome_is_the_same_evaluation_whenever_it_ran(
    records: pd.DataFrame, data: TuningData, tmp_path: Path
) -> None:
    def evaluation_id(name: str, frame: pd.DataFrame = records, **changes: Any) -> str:
        return find_evaluation_files(write_evaluation(tmp_path / name, frame, data, **changes)).evaluation_id

    first = evaluation_id("first")
    assert len(first) == 16
    assert evaluation_id("again", started="2027-01-01T00:00:00Z", seconds={"evaluate": 9.0}) == first
    assert evaluation_id("code", code_version="0.2.0+1") != first
    assert evaluation_id("rows", records[records["seed"] != 12]) != first


def test_files_are_described_as_they_are(records: pd.DataFrame, data: TuningData, tmp_path: Path) -> None:
    evaluation = find_evaluation_files(write_evaluation(tmp_path, records, data))
    assert (evaluation.records.rows, evaluation.metadata_file.rows) == (len(records), 0)
    assert evaluation.records.size == (tmp_path / "records.parquet").stat().st_size
    assert evaluation.metadata["tasks"] == ["digits-mlp", "wine-mlp"]


def without_records(folder: Path) -> None:
    (folder / "records.parquet").unlink()


def cut_short(folder: Path) -> None:
    path = folder / "records.parquet"
    path.write_bytes(path.read_bytes()[:-20])


def not_finite(folder: Path) -> None:
    records = pd.read_parquet(folder / "records.parquet")
    records.loc[1, "objective"] = np.inf
    records.to_parquet(folder / "records.parquet")


def numbered_priors(folder: Path) -> None:
    records = pd.read_parquet(folder / "records.parquet").assign(prior=1)
    records.to_parquet(folder / "records.parquet")


def ambiguous_names(folder: Path) -> None:
    records = pd.read_parquet(folder / "records.parquet")
    records["method"] = records["method"].where(records["method"] == "Rand", "Rand/a")
    records["task"] = records["task"].where(records["method"] == "Rand/a", "a/" + records["task"])
    records.to_parquet(folder / "records.parquet")
    change(folder, methods={"Rand": {}, "Rand/a": {}}, tasks=sorted(set(records["task"])))


def change(folder: Path, **changes: Any) -> None:
    path = folder / "metadata.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without_records, r"records.parquet: run records cannot be read"),
        (cut_short, r"records.parquet: run records cannot be read"),
        (not_finite, r"records.parquet, row 1 \(method H-NLL.*objective is not finite"),
        (numbered_priors, r"records.parquet: column prior has type int64"),
        (ambiguous_names, r"records.parquet: two pairs of method and task are both 'Rand/a/digits-mlp'"),
        (lambda folder: (folder / "metadata.json").unlink(), r"metadata.json: metadata cannot be read"),
        (lambda folder: change(folder, methods={"Rand": {}}), r"records.parquet: method not named .* H-NLL"),
    ],
)
def test_an_evaluation_that_cannot_be_used_is_refused(
    records: pd.DataFrame, data: TuningData, tmp_path: Path, damage: Any, message: str
) -> None:
    folder = write_evaluation(tmp_path, records, data)
    damage(folder)
    with pytest.raises(InvalidInputError, match=message):
        find_evaluation_files(folder)
