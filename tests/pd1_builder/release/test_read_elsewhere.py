"""A version as other people's libraries read it: every value is the one that `pd1_builder.load` gives.

`tfds.load` needs TensorFlow, and reads an export: see `test_export.py`.
"""

from __future__ import annotations

import math
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pd1_builder

pytestmark = pytest.mark.slow

SPLITS = ("matched", "unmatched")
# The values of each column, in the order of records, as text: in that, NaN equals NaN.
Columns = dict[str, str]


@pytest.fixture(scope="module", autouse=True)
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What Hugging Face's libraries read when they are imported; and nobody is asked for anything."""
    asked: list[Any] = []
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            return connect(self, address)  # Of a server that an earlier test left in this process.
        asked.append(address)
        raise OSError("no network in this test")

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hugging_face")))
        for name in ("HF_HUB_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "HF_DATASETS_DISABLE_PROGRESS_BARS"):
            patch.setenv(name, "1")
        patch.setattr(socket.socket, "connect", refuse)
        yield
    assert asked == []


@pytest.fixture(scope="module")
def folder(built: Path) -> Path:
    return built / "pd1/mini/1.0.0"


@pytest.fixture(scope="module")
def expected(built: Path) -> dict[str, Columns]:
    """The columns of each split, as this project reads them."""
    frame = pd1_builder.load("pd1/mini:1.0.0", as_="dataframe", data_dir=built)
    splits = {
        str(split): records.drop(columns="split").to_dict("list") for split, records in frame.groupby("split")
    }
    # What a library may get wrong is among the values.
    y, curves = splits["matched"]["y"], splits["matched"]["curves.valid/error_rate"]
    assert 0 < sum(map(math.isnan, y)) < len(y)
    assert any(math.isnan(value) for curve in curves for value in curve)
    assert {len(curve) for curve in splits["matched"]["curves.epoch"]} == {0}
    return {split: spelled(columns) for split, columns in splits.items()}


def plain(value: Any) -> Any:
    """A value as plain Python spells it: arrays as lists, bytes as text."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.decode() if isinstance(value, bytes) else value


def spelled(columns: Any) -> Columns:
    # No two floats are spelled alike, a null is None, and a NaN is nan.
    return {name: repr([plain(value) for value in values]) for name, values in columns.items()}


def of_nulls(columns: Any) -> Columns:
    """Columns of a library that knows NULL: no number may be NaN, and NULL stands where we have NaN."""
    texts = spelled(columns)
    assert not any("nan" in text for name, text in texts.items() if name == "y" or name.startswith("curves."))
    return {name: text.replace("None", "nan") for name, text in texts.items()}


def by_column(records: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [record[name] for record in records] for name in records[0]}


def of_relation(relation: Any) -> dict[str, Any]:
    return dict(zip(relation.columns, zip(*relation.fetchall(), strict=True), strict=True))


def test_pandas(folder: Path, expected: dict[str, Columns]) -> None:
    import pandas

    for split in SPLITS:
        frame = pandas.read_parquet(folder / f"{split}.parquet")
        assert spelled(frame.to_dict("list")) == expected[split]


def test_polars(folder: Path, expected: dict[str, Columns]) -> None:
    import polars

    for split in SPLITS:
        frame = polars.read_parquet(folder / f"{split}.parquet")
        assert of_nulls(frame.to_dict(as_series=False)) == expected[split]
    y, missing = polars.col("y"), sum(columns["y"].count("nan") for columns in expected.values())
    for condition, count in ((y.is_null(), missing), (y.is_nan(), 0), (y > 1e9, 0)):
        assert polars.scan_parquet(folder / "*.parquet").filter(condition).collect().height == count


def test_duckdb(folder: Path, expected: dict[str, Columns]) -> None:
    import duckdb

    with duckdb.connect() as connection:
        for split in SPLITS:
            relation = connection.read_parquet(str(folder / f"{split}.parquet"))
            assert of_nulls(of_relation(relation)) == expected[split]


def test_sql_finds_the_best_value_of_each_task(folder: Path, expected: dict[str, Columns]) -> None:
    import duckdb

    missing = expected["matched"]["y"].count("nan")
    with duckdb.connect() as connection:
        connection.read_parquet(str(folder / "matched.parquet")).create_view("matched")
        for where, count in (("y IS NULL", missing), ("isnan(y)", 0), ("y > 1e9", 0)):
            assert connection.sql(f"SELECT count(*) FROM matched WHERE {where}").fetchall() == [(count,)]
        worst = 'max(list_max("curves.valid/error_rate"))'
        (best,) = connection.sql(f"SELECT max(y), {worst} FROM matched").fetchall()
        assert all(map(math.isfinite, best))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hugging Face's cache tells local folders apart by less than their path."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")


def test_hugging_face_datasets(folder: Path, expected: dict[str, Columns]) -> None:
    import datasets

    found = datasets.load_dataset(str(folder))
    assert set(found) == set(SPLITS)
    for split in SPLITS:
        assert of_nulls(found[split].to_dict()) == expected[split]
    assert found["matched"].features["curves.train/ce_loss"] == datasets.List(datasets.Value("float64"))


def test_names_of_any_letters_and_lists_of_texts(built_own: Path) -> None:
    import datasets
    import duckdb
    import polars

    frame = pd1_builder.load("trials/own:1.0.0", as_="dataframe", data_dir=built_own)
    expected = spelled(frame.drop(columns="split").to_dict("list"))
    assert expected["duplicates"] == repr([["net/b", "net/c"], ["net/a", "net/c"], ["net/a", "net/b"]])
    folder = built_own / "trials/own/1.0.0"
    assert of_nulls(polars.read_parquet(folder / "trials.parquet").to_dict(as_series=False)) == expected
    with duckdb.connect() as connection:
        relation = connection.read_parquet(str(folder / "trials.parquet"))
        assert of_nulls(of_relation(relation)) == expected
    # Its folder has the name of the other's, which is in the cache; raw files of trials lie in it.
    found = datasets.load_dataset(str(folder))
    assert set(found) == {"trials"}
    assert of_nulls(found["trials"].to_dict()) == expected


def test_the_hub_understands_the_card(folder: Path, built_own: Path) -> None:
    from huggingface_hub import DatasetCard

    data = DatasetCard.load(folder / "README.md").data.to_dict()
    assert (data["pretty_name"], data["license"]) == ("pd1/mini 1.0.0", "apache-2.0")
    assert data["size_categories"] == ["n<1K"]
    assert "license" not in DatasetCard.load(built_own / "trials/own/1.0.0/README.md").data.to_dict()


def test_tensorflow_datasets_without_tensorflow(built: Path, expected: dict[str, Columns]) -> None:
    import tensorflow_datasets as tfds

    found: Any = tfds.data_source("pd1/mini:1.0.0", data_dir=str(built))
    assert set(found) == set(SPLITS)
    for split in SPLITS:
        flat = [
            {
                f"{group}.{name}" if isinstance(inner, dict) else group: value
                for group, inner in record.items()
                for name, value in (inner.items() if isinstance(inner, dict) else [("", inner)])
            }
            for record in found[split]
        ]
        assert spelled(by_column(flat)) == expected[split]


# mlcroissant uses what rdflib and pandas have since deprecated.
@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame:DeprecationWarning")
def test_mlcroissant(folder: Path, expected: dict[str, Columns]) -> None:
    import mlcroissant

    dataset = mlcroissant.Dataset(jsonld=folder / "croissant.json")
    assert not dataset.metadata.ctx.issues.errors
    for split in SPLITS:
        records = [
            {name.removeprefix(f"{split}/"): value for name, value in record.items()}
            for record in dataset.records(split)
        ]
        # It makes None of a NULL, but in a list.
        nones = {name: text.replace("None", "nan") for name, text in spelled(by_column(records)).items()}
        assert nones == expected[split]


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame:DeprecationWarning")
def test_the_lines_of_the_card_read_it(folder: Path, built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    results: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", Path("README.md").read_text(), re.DOTALL):
        names: dict[str, Any] = {}
        exec(example, names)  # As a reader would paste it.
        library = example.splitlines()[-1].split(" = ")[1].partition(".")[0]
        results[library] = list(names.values())[-1]
    assert results.pop("pd1_builder").provenance.dataset == "pd1/mini:1.0.0"
    records = pd1_builder.load("pd1/mini", as_="dataframe", data_dir=built).query("split == 'matched'")
    assert dict(results.pop("duckdb")) == records.groupby("task")["y"].max().to_dict()
    counts = {
        name: len(read) if hasattr(read, "__len__") else sum(1 for _ in read)
        for name, read in results.items()
    }
    assert counts == dict.fromkeys(("pandas", "polars", "datasets", "mlcroissant", "tfds"), len(records))
