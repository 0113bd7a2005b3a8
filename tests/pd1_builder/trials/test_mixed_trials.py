"""Trials with integers, choices and conditions: from a table of anyone's to typed records and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tensorflow_datasets as tfds

import pd1_builder
from pd1_builder.version.manifest import read_manifest

SPACE_FILE = """
objective = "error"
direction = "minimize"
trial_id = { column = "id" }

[[parameters]]
name = "rate"
lower = 1e-4
upper = 1.0
scaling = "log"

[[parameters]]
name = "width"
type = "integer"
lower = 16
upper = 512

[[parameters]]
name = "optimizer"
type = "choice"
levels = ["sgd", "adam", "rmsprop"]

[[parameters]]
name = "momentum"
lower = 0.0
upper = 0.99
condition = { parameter = "optimizer", values = ["sgd"] }

[[parameters]]
name = "nesterov"
type = "boolean"
condition = { parameter = "optimizer", values = ["sgd"] }

[[parameters]]
name = "warmup"
type = "boolean"

[[parameters]]
name = "batch"
type = "ordinal"
levels = [32, 64, 128]

[[parameters]]
name = "epochs"
type = "constant"
value = 10
"""
HEADER = "task,id,error,rate,width,optimizer,momentum,nesterov,warmup,batch,epochs\n"
GOOD = """\
a,1,0.5,0.1,64,sgd,0.9,True,false,64,10
a,2,0.4,0.01,16,adam,,,true,32,10
b,1,0.3,0.5,512,rmsprop,n/a,nan,1,128,10
"""
BAD = {
    "a,3,0.5,0.1,2.5,adam,,,true,32,10": "width = 2.5 is not a whole number",
    "a,4,0.5,0.1,64.5,adam,,,true,32,10": "width = 64.5 is not a whole number",
    "a,5,0.5,0.1,64,lion,,,true,32,10": "optimizer = 'lion' is none of its levels 'sgd', 'adam', 'rmsprop'",
    "a,6,0.5,0.1,64,sgd,,true,true,32,10": "momentum has no value, although it is active: optimizer is 'sgd'",
    "a,7,0.5,0.1,64,adam,,,maybe,32,10": "warmup is 'maybe', not true or false",
    "a,8,0.5,0.1,64,adam,,,true,48,10": "batch = 48 is none of its levels 32, 64, 128",
    "a,9,0.5,0.1,many,adam,,,true,32,10": (
        "width is 'many', not a number; the space file can declare a choice of texts"
    ),
    "a,10,0.5,0.1,,adam,,,true,32,10": "width has no value",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("mixed")
    (root / "space.toml").write_text(SPACE_FILE)
    (root / "trials.csv").write_text(HEADER + GOOD + "\n".join(BAD) + "\n")
    pd1_builder.add(
        "mixed", [root / "trials.csv"], root / "space.toml", data_dir=root / "data", max_reject_share=0.9
    )
    return root


def test_records_are_typed_and_verified(folder: Path) -> None:
    manifest = pd1_builder.verify("trials/mixed:1.0.0", folder / "data")
    assert manifest.rejects == len(BAD)
    version = folder / "data" / "trials" / "mixed" / "1.0.0"
    frame = pd.read_parquet(version / "trials.parquet")
    raw = frame[[name for name in frame if name.startswith("hyperparameters.")]]
    raw.columns = [name.partition(".")[2] for name in raw]
    assert raw["width"].tolist() == [64, 16, 512]
    assert raw["width"].dtype == raw["batch"].dtype == raw["epochs"].dtype == np.int64
    assert raw["optimizer"].tolist() == ["sgd", "adam", "rmsprop"]
    assert raw["warmup"].tolist() == [False, True, True]
    # A value that is recorded of an inactive parameter does not count.
    np.testing.assert_array_equal(raw["momentum"], [0.9, np.nan, np.nan])
    assert raw["nesterov"].tolist() == ["true", "", ""]

    data = pd1_builder.load("trials/mixed", data_dir=folder / "data")
    space = read_manifest(version).space
    assert space is not None
    assert data.search_space == space
    assert space.values(space.from_unit(data.tasks[0].x))[0] == {
        "rate": pytest.approx(0.1), "width": 64, "optimizer": "sgd", "momentum": pytest.approx(0.9),
        "nesterov": True, "warmup": False, "batch": 64, "epochs": 10,
    }  # fmt: skip

    (first, *_) = tfds.builder_from_directory(str(version)).as_data_source("trials")
    assert first["hyperparameters"]["optimizer"] == b"sgd"
    assert first["hyperparameters"]["width"] == 64


def test_rejects_say_what_is_wrong(folder: Path) -> None:
    rejects = pd.read_json(folder / "data" / "trials" / "mixed" / "1.0.0" / "rejects.jsonl", lines=True)
    assert sorted(rejects["reason"]) == sorted(BAD.values())


def test_the_card_describes_the_parameters(folder: Path) -> None:
    card = (folder / "data" / "trials" / "mixed" / "1.0.0" / "README.md").read_text()
    assert "| `width` | integer | 16 to 512, linear, whole numbers |" in card
    assert "| `nesterov` | boolean | one of False, True; where optimizer is 'sgd' |" in card
