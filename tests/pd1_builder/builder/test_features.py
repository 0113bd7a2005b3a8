"""Serialized examples against TFDS's own encoder and serializer."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import mlcroissant as mlc
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hyperbo_pipelines.curate.columns import Column, schema
from hyperbo_pipelines.curate.parquet import without_nulls
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_hpob import write_hpob
from synthetic_pd1 import rows, write
from tensorflow_datasets.core.example_serializer import ExampleSerializer
from tensorflow_datasets.proto import tf_example_pb2
from trial_files import SPACE, row, write_lines

import pd1_builder
from pd1_builder.builder.features import nest, serialized, tfds_features

COLUMNS = (
    Column("task", "text", "a text"),
    Column("others", "texts", "some texts"),
    Column("phase", "integer", "a number"),
    Column("diverged", "boolean", "yes or no"),
    Column("metrics.best_valid/error_rate", "real", "a float"),
    Column("curves.valid.loss", "reals", "floats"),
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
ROW = st.fixed_dictionaries(
    {
        "task": TEXT,
        "others": st.lists(TEXT, max_size=3),
        "phase": st.integers(-(2**63), 2**63 - 1),
        "diverged": st.booleans(),
        "metrics.best_valid/error_rate": st.floats(),
        "curves.valid.loss": st.lists(st.floats(), max_size=4),
    }
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=4), st.integers(1, 3))
def test_the_examples_are_those_of_tfds(rows: list[dict[str, Any]], rows_of_chunk: int) -> None:
    whole = pa.Table.from_pylist(rows, schema=schema(COLUMNS))
    # A table may come in several chunks, each with an offset into a larger one.
    table = pa.Table.from_batches(whole.to_batches(max_chunksize=rows_of_chunk))
    features = tfds_features(COLUMNS)
    specs: Any = features.get_serialized_info()
    serializer = ExampleSerializer(specs)
    for each, content in zip(rows, serialized(table, COLUMNS), strict=True):
        plain = each | {"curves.valid.loss": np.array(each["curves.valid.loss"], np.float64)}
        expected = serializer.serialize_example(features.encode_example(nest(plain)))
        parse = tf_example_pb2.Example.FromString
        assert parse(content) == parse(expected)
        decoded = features.deserialize_example_np(content)
        assert repr(decoded["metrics"]["best_valid/error_rate"].item()) == repr(
            each["metrics.best_valid/error_rate"]
        )


# mlcroissant uses what rdflib and pandas have since deprecated.
pytestmark = [
    pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame:DeprecationWarning"),
]


def build_pd1(folder: Path) -> None:
    made = rows("matched", 1, inputs=8)
    again = [each | {"trial_dir": f"again/{each['trial_dir']}"} for each in made[:3]]
    write(folder / "raw", "pd1_matched_phase1_results.jsonl", [*made, *again])
    write(folder / "raw", "pd1_unmatched_phase0_results.jsonl", rows("unmatched", 0, inputs=2))
    pd1_builder.build(raw=folder / "raw", data_dir=folder)


def build_hpob(config: str) -> Callable[[Path], None]:
    return lambda folder: (
        pd1_builder.build(f"hpob/{config}", raw=write_hpob(folder / "raw"), data_dir=folder) and None
    )


def build_trials(folder: Path) -> None:
    space, ragged = folder / "space.toml", [None, 1.0, 1e300]
    space.write_text(SPACE.replace('"test"', """"test", "größe 100%", 'the "x"'"""))
    odd = {"größe 100%": 0.1, 'the "x"': None}
    written = [row("a", curve=ragged, **odd), row("b", curve=[], **odd), row("ä ☃", loss=None, **odd)]
    pd1_builder.add("own", [write_lines(folder / "own.jsonl", written)], space, data_dir=folder)


@pytest.fixture(
    scope="module",
    params=[
        ("pd1/mini", build_pd1),
        ("hpob/4796", build_hpob("4796")),
        ("hpob/all", build_hpob("all")),
        ("trials/own", build_trials),
    ],
    ids=lambda parameter: parameter[0],
)
def version(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a version of each dataset."""
    dataset, build = request.param
    folder = tmp_path_factory.mktemp("data")
    build(folder)
    return folder / dataset / "1.0.0"


def plain(value: Any) -> Any:
    """What mlcroissant read, as Arrow spells it: texts come as bytes, and a NaN as None."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode()
    return math.nan if value is None else getattr(value, "item", lambda: value)()


def test_it_is_valid_without_errors_or_warnings(version: Path) -> None:
    issues = mlc.Dataset(jsonld=version / "croissant.json").metadata.ctx.issues
    # Whose trials these are, and who may use them, is for their owner to say.
    unknown = {"citeAs", "license"} if version.parent.parent.name == "trials" else set()
    missing = {warning.split('" is recommended')[0].rsplit("/")[-1] for warning in issues.warnings}
    assert (issues.errors, missing) == (set(), unknown)


def test_its_records_are_those_of_parquet_bit_for_bit(version: Path) -> None:
    dataset = mlc.Dataset(jsonld=version / "croissant.json")
    splits = [path.stem for path in sorted(version.glob("*.parquet"))]
    assert sorted(each.id for each in dataset.metadata.record_sets) == splits
    for split in splits:
        table = pq.read_table(version / f"{split}.parquet")
        found = [
            {unquote(name.removeprefix(f"{split}/")): plain(value) for name, value in record.items()}
            for record in dataset.records(split)
        ]
        assert len(found) == len(table) > 0
        # In repr NaN equals NaN, and no two floats are spelled alike.
        assert repr(found) == repr(without_nulls(table).to_pylist())


def test_files_are_named_with_their_size_and_hash(version: Path) -> None:
    metadata = json.loads((version / "croissant.json").read_text())
    files = metadata["distribution"]
    assert [file["name"] for file in files] == sorted(path.name for path in version.glob("*.parquet"))
    for file in files:
        content = (version / file["contentUrl"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
        assert file["contentSize"] == f"{len(content)} B"
        assert file["encodingFormat"] == "application/x-parquet"


def test_it_says_what_the_dataset_is(version: Path) -> None:
    metadata = json.loads((version / "croissant.json").read_text())
    assert metadata["name"] == "-".join(version.parent.parts[-2:])
    assert metadata["version"] == "1.0.0"
    assert metadata["description"]
    fields = {
        field["name"]: field["description"] for each in metadata["recordSet"] for field in each["field"]
    }
    assert fields["status"] == "done, diverged or infeasible"
    assert all(fields.values())
