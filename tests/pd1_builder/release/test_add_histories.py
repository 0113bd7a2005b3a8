"""Versions made of the histories of other tools: the first, and the next from a longer history."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import optuna
import pytest
from hyperbo_pipelines.histories import Options
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import create_trial

import pd1_builder
from hyperbo.errors import InvalidInputError
from pd1_builder.release.histories import add_sources, draft_space

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
    # The same history again is nothing new, and one line says so, without the names of temporary files.
    caplog.clear()
    with caplog.at_level(logging.INFO, "pd1_builder"):
        assert add_sources("own", [url], data_dir=tmp_path / "data") == manifest
    (line,) = (message for message in caplog.messages if "by content" in message)
    assert line.startswith("2 of 2 files left out, known by content: digits.optuna")
    assert not any("/histories-" in message for message in caplog.messages)


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


def large_study(url: str, name: str, number: int) -> None:
    """A study with a parameter of too many levels, and one of too large integers."""
    levels = tuple(f"l{place}" for place in range(300))
    space = {
        "rate": FloatDistribution(0.0, 1.0),
        "level": CategoricalDistribution(levels),
        "large": IntDistribution(0, 2**60),
    }
    made = optuna.create_study(storage=url, study_name=name)
    for place in range(number):
        params = {"rate": place / number, "level": levels[place], "large": place}
        made.add_trial(create_trial(params=params, distributions=space, value=place / 8))


def test_a_parameter_that_cannot_be_declared_is_left_out_with_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    for name in ("digits", "wine"):
        large_study(url, name, 6)
    text = draft_space([url])
    assert 'ignore = ["tool", "parameters.level", "parameters.large"]' in text
    assert (
        "# level is left out: it cannot be declared: 300 levels; give at least one, and at most 256." in text
    )
    assert "of at most 2^53." in text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "pd1_builder"):
        manifest = add_sources("own", [url], data_dir=tmp_path / "data")
    assert (manifest.rows("trials"), manifest.rejects) == (12, 0)
    assert [each["name"] for each in manifest.search_space] == ["rate"]
    (line,) = (message for message in caplog.messages if "can declare" in message)
    assert "level (300 levels; " in line
    assert "large (range [0, 1152921504606846976] of an integer; " in line


def test_an_error_names_the_study_and_nothing_is_left(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    for name in ("digits", "wine"):
        study(url, name, range(6))
    add_sources("own", [url], data_dir=tmp_path / "data")
    # The study is replaced by one with the same ids and other results.
    optuna.delete_study(study_name="wine", storage=url)
    study(url, "wine", range(1, 6))
    before = sorted((tmp_path / "data").rglob("*"))
    with pytest.raises(
        InvalidInputError, match=r"runs\.db: study wine:1: .* of the trial 'wine/0' is"
    ) as raised:
        add_sources("own", [url], data_dir=tmp_path / "data")
    assert "histories-" not in str(raised.value)
    assert sorted((tmp_path / "data").rglob("*")) == before
    space = tmp_path / "space.toml"
    space.write_text(draft_space([url]).replace('["sgd", "adam", "rmsprop"]', '["sgd", "adam"]'))
    with pytest.raises(InvalidInputError, match=r"runs\.db: study digits:3: .*'rmsprop'") as raised:
        add_sources("new", [url], space, data_dir=tmp_path / "data")
    assert "histories-" not in str(raised.value)
    assert sorted((tmp_path / "data").rglob("*")) == before


def test_steps_become_an_ordinal(tmp_path: Path) -> None:
    space = {"width": IntDistribution(8, 64, step=8), "rate": FloatDistribution(0.1, 0.5, step=0.1)}
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    for name in ("digits", "wine"):
        made = optuna.create_study(storage=url, study_name=name)
        for place in range(5):
            params = {"width": 8 * (1 + place), "rate": 0.1 + 0.1 * place}
            made.add_trial(create_trial(params=params, distributions=space, value=place / 8))
    text = draft_space([url])
    assert "levels = [8, 16, 24, 32, 40, 48, 56, 64]" in text
    assert "levels = [0.1, 0.2, 0.3, 0.4, 0.5]" in text
    assert "# It was searched in steps of 8 from 8 to 64: an ordinal of these 8 values." in text
    manifest = add_sources("own", [url], data_dir=tmp_path / "data")
    assert (manifest.rows("trials"), manifest.rejects) == (10, 0)


def test_trials_without_a_result_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("digits", "wine"):
        rows = [
            json.dumps({"loss": None, "rate": place / 4, "trial": f"{name}-{place}"}) for place in range(3)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    space = tmp_path / "space.toml"
    space.write_text(
        'objective = "loss"\ndirection = "minimize"\ntask = { file_name = true }\n'
        'trial_id = { column = "trial" }\n[[parameters]]\nname = "rate"\nlower = 0\nupper = 1\n'
    )
    files = [str(tmp_path / f"{name}.jsonl") for name in ("digits", "wine")]
    with caplog.at_level(logging.WARNING, "pd1_builder"):
        manifest = add_sources("own", files, space, data_dir=tmp_path / "data")
    assert manifest.rows("trials") == 6
    assert (
        "trials/own:1.0.0: no trial has a result, so no prior can be trained: 6 diverged" in caplog.messages
    )
