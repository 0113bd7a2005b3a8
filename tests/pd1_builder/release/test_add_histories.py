"""Versions made of the histories of other tools: the first, and the next from a longer history."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import create_trial

import pd1_builder
from hyperbo.errors import InvalidInputError
from pd1_builder.release.histories import add_sources, draft_space
from pipelines.histories import Options

RECORDED = Path("tests/pipelines/histories/recorded")
SPACE = {
    "rate": FloatDistribution(1e-4, 1.0, log=True),
    "layers": IntDistribution(1, 4),
    "optimizer": CategoricalDistribution(("sgd", "adam", "rmsprop")),
}


def study(url: str, name: str, numbers: range) -> None:
    made = optuna.create_study(storage=url, study_name=name, direction="maximize", load_if_exists=True)
    for i in numbers:
        params = {
            "rate": 10.0 ** -(i % 4),
            "layers": 1 + i % 4,
            "optimizer": ("sgd", "adam", "rmsprop")[i % 3],
        }
        made.add_trial(create_trial(params=params, distributions=SPACE, value=i / 8))


def test_an_optuna_database_becomes_a_version(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    for name in ("digits", "wine"):
        study(url, name, range(6))
    with caplog.at_level(logging.INFO, "pd1_builder"):
        manifest = add_sources("own", [url], data_dir=tmp_path / "data")
    assert f"Optuna {optuna.__version__}: 12 trials of 2 tasks" in caplog.messages
    assert manifest.counts == {"trials": {"digits": {"done": 6}, "wine": {"done": 6}}}
    # The objective is to be maximised still: y is not its negative.
    (record, *_) = pd1_builder.load("trials/own", None, as_="dataframe", data_dir=tmp_path / "data").to_dict(
        "records"
    )
    assert (record["metrics.value"], record["y"], record["trial_id"]) == (0.0, 0.0, "digits/0")
    assert record["hyperparameters.optimizer"] == "sgd"
    # Tool and version are in the manifest and on the card.
    tool = f"optuna_{optuna.__version__}"
    assert all(tool in file.name for file in manifest.raw_files if file.name != "space.toml")
    card = (tmp_path / "data/trials/own/1.0.0/README.md").read_text(encoding="utf-8")
    assert f"Trials recorded by Optuna {optuna.__version__}." in card
    # The same history again is nothing new.
    assert add_sources("own", [url], data_dir=tmp_path / "data") == manifest


def test_another_task_is_described_by_the_space_file_that_is_there(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    study(url, "digits", range(4))
    add_sources("own", [url], data_dir=tmp_path / "data")
    other = f"sqlite:///{tmp_path / 'other.db'}"
    study(other, "wine", range(5))
    second = add_sources("own", [other], data_dir=tmp_path / "data")
    assert (second.version, second.rows("trials")) == ("1.1.0", 9)


def test_a_longer_history_brings_its_new_trials_only(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    for name in ("digits", "wine"):
        study(url, name, range(6))
    running = optuna.load_study(study_name="wine", storage=url).ask(SPACE)
    first = add_sources("own", [url], data_dir=tmp_path / "data")
    assert first.counts == {"trials": {"digits": {"done": 6}, "wine": {"done": 6}}}
    optuna.load_study(study_name="wine", storage=url).tell(running, 0.5)
    study(url, "digits", range(6, 9))
    second = add_sources("own", [url], data_dir=tmp_path / "data")
    assert second.counts == {"trials": {"digits": {"done": 9}, "wine": {"done": 7}}}
    assert (second.version, second.rejects) == ("1.1.0", 0)
    assert add_sources("own", [url], data_dir=tmp_path / "data") == second


def test_one_task_alone_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    study(url, "digits", range(3))
    with caplog.at_level(logging.WARNING, "pd1_builder"):
        draft_space([url])
    assert any("'digits': a prior needs several" in message for message in caplog.messages)


@pytest.mark.parametrize("tool", ["smac", "syne_tune", "wandb"])
def test_the_history_of_another_tool_becomes_a_version(tool: str, tmp_path: Path) -> None:
    manifest = add_sources("own", [str(RECORDED / tool)], data_dir=tmp_path)
    assert set(manifest.counts["trials"]) == {"digits", "wine"}
    assert manifest.rejects == 0
    assert pd1_builder.verify("trials/own", tmp_path) == manifest


def test_a_draft_of_a_history_is_tried_and_can_be_given(tmp_path: Path) -> None:
    source = str(RECORDED / "smac")
    text = draft_space([source])
    assert "it reads 16 trials and rejects 0 rows" in text
    space = tmp_path / "space.toml"
    space.write_text(text.replace('name = "width"', 'name = "units"'), encoding="utf-8")
    manifest = add_sources("own", [source], space, data_dir=tmp_path / "data")
    (record, *_) = pd1_builder.load("trials/own", None, as_="dataframe", data_dir=tmp_path / "data").to_dict(
        "records"
    )
    assert "hyperparameters.units" in record
    assert manifest.rejects == 0


def test_rows_and_histories_are_added_one_after_the_other(tmp_path: Path) -> None:
    rows = tmp_path / "a.jsonl"
    rows.write_text(json.dumps({"loss": 1.0, "a": 0.5}) + "\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="a file of rows, and other sources are histories"):
        add_sources("own", [str(rows), str(RECORDED / "smac")], data_dir=tmp_path)
    with pytest.raises(InvalidInputError, match="pd1/mini takes no histories"):
        add_sources("pd1/mini", [str(RECORDED / "smac")], data_dir=tmp_path)
    with pytest.raises(InvalidInputError, match="are for the histories of tuning tools"):
        add_sources("own", [str(rows)], options=Options(task="a"), data_dir=tmp_path)
