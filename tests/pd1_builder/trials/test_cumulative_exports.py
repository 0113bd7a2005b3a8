"""Cumulative exports: files that repeat what is recorded, as versions of a dataset."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from hyperbo_flows.cli.main import app
from hyperbo_pipelines.curate.raw_files import sha256_of
from trial_files import SPACE, row, write_lines
from typer.testing import CliRunner

import pd1_builder
from hyperbo.errors import InvalidInputError
from pd1_builder.version.catalog import versions

RUNNING = SPACE.replace('column = "status" }', 'column = "status", skip = ["running"] }')


@pytest.fixture
def space(tmp_path: Path) -> Path:
    path = tmp_path / "space.toml"
    path.write_text(RUNNING)
    return path


def rows(trials: int, first: int = 0, **changes: Any) -> list[dict[str, Any]]:
    """Rows of two tasks that share their inputs."""
    return [
        row(str(number), task=task, layers=1 + number % 8, loss=0.125 * (1 + number)) | changes
        for number in range(first, trials)
        for task in ("one", "two")
    ]


def records(data_dir: Path, version: str) -> dict[str, dict[str, Any]]:
    table = pd1_builder.load(f"trials/own:{version}", None, as_="dataframe", data_dir=data_dir)
    return {each["trial_id"]: each for each in table.astype(object).to_dict("records")}


def without(each: dict[str, Any], *names: str) -> str:
    return repr({name: value for name, value in each.items() if name not in names})


def test_a_nightly_export_brings_its_new_rows_under_one_name(
    tmp_path: Path, space: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data_dir, export = tmp_path / "data", tmp_path / "study.jsonl"
    write_lines(export, [*rows(3), row("3", task="one", status="running", loss=None)])
    pd1_builder.add("own", [export], space, data_dir=data_dir)
    # The next night: one trial has ended, two are new.
    write_lines(export, rows(5)[::-1])
    with caplog.at_level(logging.INFO, "pd1_builder"):
        second = pd1_builder.add("own", [export], data_dir=data_dir)
    assert "trials/own: 6 rows known, 4 new" in caplog.messages
    assert (second.version, second.rows("trials"), second.rejects) == ("1.1.0", 10, 0)
    assert [(file.name, file.rows) for file in second.raw_files] == [
        ("study.jsonl", 6),
        ("study~2.jsonl", 4),
        ("space.toml", None),
    ]
    (export_of,) = second.exports
    assert (export_of.name, export_of.sha256, export_of.size) == (
        "study.jsonl",
        sha256_of(export),
        export.stat().st_size,
    )
    assert (export_of.known, export_of.new, export_of.raw_file) == (6, 4, "study~2.jsonl")
    # What was there is as it was, its source too, and the other records are those of one export.
    old, new = records(data_dir, "1.0.0"), records(data_dir, "1.1.0")
    assert {name: without(new[name], "block") for name in old} == {
        name: without(old[name], "block") for name in old
    }
    assert new["one/4"]["source"] == "study~2.jsonl:2"
    whole = pd1_builder.add("own", [export], space, data_dir=tmp_path / "whole")
    assert (whole.version, whole.content_hash) == ("1.0.0", second.content_hash)
    assert pd1_builder.verify("trials/own:1.1.0", data_dir) == second
    # The same once more, and an older export, are nothing new.
    write_lines(tmp_path / "older.jsonl", rows(4))
    for path in (export, tmp_path / "older.jsonl"):
        assert pd1_builder.add("own", [path], data_dir=data_dir) == second
    assert [each.version for each in versions(data_dir)] == ["1.0.0", "1.1.0"]
    card = (data_dir / "trials/own/1.1.0/README.md").read_text()
    assert f"| `study.jsonl` | 6 | 4 | `study~2.jsonl` | `{sha256_of(export)}` |" in card
    info = CliRunner().invoke(app, ["data", "info", "trials/own:1.1.0", "--data", str(data_dir)]).output
    assert "export study.jsonl, 6 rows known, 4 new in study~2.jsonl, sha256" in info


def test_a_changed_row_is_refused_and_nothing_is_published(tmp_path: Path, space: Path) -> None:
    data_dir = tmp_path / "data"
    pd1_builder.add("own", [write_lines(tmp_path / "a.jsonl", rows(3))], space, data_dir=data_dir)
    changed = write_lines(tmp_path / "b.jsonl", [*rows(5)[:-1], row("2", task="two", layers=3, loss=7.5)])
    match = (
        r"b\.jsonl:10: metrics\.loss of the trial 'two/2' is 7\.5, and 0\.375 at raw/a\.jsonl:6; nothing was"
    )
    with pytest.raises(InvalidInputError, match=match):
        # However many rejects are allowed: it is not for us to choose one.
        pd1_builder.add("own", [changed], data_dir=data_dir, max_reject_share=1.0)
    assert [each.version for each in versions(data_dir)] == ["1.0.0"]
    with pytest.raises(InvalidInputError, match=r"and 0\.375 at a\.jsonl:6"):
        pd1_builder.add("new", [changed, tmp_path / "a.jsonl"], space, data_dir=data_dir)


def test_two_overlapping_exports_make_the_first_version(tmp_path: Path, space: Path) -> None:
    one, two = (tmp_path / name for name in ("one.jsonl", "two.jsonl"))
    write_lines(one, rows(3))
    write_lines(two, rows(4, first=1))
    first = pd1_builder.add("own", [two, one], space, data_dir=tmp_path / "data")
    assert (first.version, first.rows("trials"), first.rejects) == ("1.0.0", 8, 0)
    assert [(each.name, each.known, each.new, each.raw_file) for each in first.exports] == [
        ("two.jsonl", 4, 2, "two.jsonl")
    ]


def test_a_bad_row_counts_once_however_often_it_is_exported(tmp_path: Path, space: Path) -> None:
    data_dir, broken = tmp_path / "data", b'{"task": "net", "tri'
    share: dict[str, Any] = {"data_dir": data_dir, "max_reject_share": 0.3}
    first = write_lines(tmp_path / "a.jsonl", [*rows(3), broken])
    pd1_builder.add("own", [first], space, **share)
    second = pd1_builder.add("own", [write_lines(tmp_path / "b.jsonl", [*rows(4), broken])], **share)
    assert (second.version, second.rejects, second.rows("trials")) == ("1.1.0", 1, 8)
    # A new row that is no record changes no record.
    third = pd1_builder.add("own", [write_lines(tmp_path / "c.jsonl", [*rows(4), broken, b"?"])], **share)
    assert (third.version, third.rejects, third.content_hash) == ("1.1.1", 2, second.content_hash)
    path = data_dir / "trials/own/1.1.1/rejects.jsonl"
    rejects = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(each["file"], each["line"]) for each in rejects] == [("a.jsonl", 7), ("c.jsonl", 1)]


@pytest.mark.slow
def test_a_file_that_names_its_task_keeps_the_name_of_the_task(tmp_path: Path, space: Path) -> None:
    space.write_text(f"task = {{ file_name = true }}\n{RUNNING}".replace('"note"', '"note", "task"'))
    export = tmp_path / "resnet.jsonl"
    for nights in (3, 5, 6):
        export.write_bytes(write_lines(tmp_path / "written.jsonl", rows(nights)[::2]).read_bytes())
        manifest = pd1_builder.add("own", [export], space, data_dir=tmp_path / "data")
    assert manifest.counts == {"trials": {"resnet": {"done": 6}}}
    assert [file.name for file in manifest.raw_files[:-1]] == [
        "resnet.jsonl",
        "resnet~2.jsonl",
        "resnet~3.jsonl",
    ]


@pytest.mark.slow
def test_without_ids_a_file_of_a_taken_name_and_an_overlap_are_refused(
    tmp_path: Path, space: Path, caplog: pytest.LogCaptureFixture
) -> None:
    space.write_text(RUNNING.replace('trial_id = { column = "trial" }\n', "").replace('["note"', '["trial"'))
    data_dir, one = tmp_path / "data", write_lines(tmp_path / "one.jsonl", rows(3))
    pd1_builder.add("own", [one], space, data_dir=data_dir)
    write_lines(one, rows(4))
    with pytest.raises(InvalidInputError, match=r"another file one\.jsonl was added before; rename it"):
        pd1_builder.add("own", [one], data_dir=data_dir)
    shutil.move(one, tmp_path / "two.jsonl")
    with pytest.raises(InvalidInputError, match=r"6 of 8 trials are trials of one\.jsonl again.*trial_id"):
        pd1_builder.add("own", [tmp_path / "two.jsonl"], data_dir=data_dir)
    few = write_lines(tmp_path / "few.jsonl", rows(6, first=4))
    with caplog.at_level(logging.INFO, "pd1_builder"):
        pd1_builder.add("own", [few], data_dir=data_dir)
    assert any("4 new; the space file names no trial_id" in message for message in caplog.messages)
    # With ids, all rows are others, and then the export is known in part.
    space.write_text(RUNNING)
    second = pd1_builder.add("own", [tmp_path / "two.jsonl"], space, data_dir=data_dir, version="2.0.0")
    assert (second.rows("trials"), second.exports[0].known) == (12, 6)
