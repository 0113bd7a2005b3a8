"""Intake: what becomes of the files of an inbox, good and bad."""

from __future__ import annotations

from pathlib import Path

import pytest
from hyperbo_flows.experiments import ledger
from hyperbo_flows.service.intake import newest, take_in
from hyperbo_flows.service.settings import read_service
from hyperbo_flows.service.sources import listing
from synthetic_pd1 import rows, write
from unattended import ARCHIVE, drop, write_service

from hyperbo.errors import InvalidInputError, VersionConflictError


@pytest.fixture
def service(tmp_path):
    return read_service(write_service(tmp_path))


def take(service):
    return take_in(service, (), listing(service.source.inbox))


def test_files_become_versions_and_nothing_new_none(service, tmp_path):
    assert (newest(service), take(service).manifest) == (None, None)
    drop(tmp_path, "first.csv", 0, 10)
    first = take(service)
    assert first.published == ["trials/own:1.0.0"]
    assert newest(service) == first.manifest
    drop(tmp_path, "second.csv", 10, 20)
    assert take(service).published == ["trials/own:1.1.0"]
    again = take(service)
    assert (again.published, again.refused) == ([], {})
    assert again.manifest.version == "1.1.0"


def test_a_bad_file_does_not_hold_up_the_others(service, tmp_path, monkeypatch):
    drop(tmp_path, "a_first.csv", 0, 10)
    take(service)
    drop(tmp_path, "b_good.csv", 10, 20)
    # Errors in percent, under names of other trials: no build can know, the drift of y does.
    drop(tmp_path, "c_percent.csv", 20, 30, scale=100.0)
    (tmp_path / "inbox/d_broken.csv").write_text("task,trial\nx,1\n")
    (tmp_path / "inbox/e_notes.txt").write_text("a file of another kind")
    outcome = take(service)
    assert outcome.published == ["trials/own:1.1.0"]
    assert {file.name for file in outcome.manifest.raw_files} == {"a_first.csv", "b_good.csv", "space.toml"}
    assert sorted(outcome.refused) == ["c_percent.csv", "d_broken.csv", "e_notes.txt"]
    assert "interquartile ranges" in outcome.refused["c_percent.csv"]
    assert "d_broken.csv" in outcome.refused["d_broken.csv"]
    # Refused files are remembered: they are not even read as trials again.
    monkeypatch.setattr("hyperbo_flows.service.intake._fitting", None)
    again = take(service)
    assert (again.published, again.refused) == ([], outcome.refused)
    assert len(list((service.design.runs / "refusal").glob("[0-9a-f]*"))) == 2
    # Their content decides: a corrected file is taken.
    (tmp_path / "inbox/c_percent.csv").unlink()
    drop(tmp_path, "c_percent.csv", 20, 30)
    assert take(service).published == ["trials/own:1.2.0"]


def test_a_single_bad_file_makes_no_version(service, tmp_path):
    (tmp_path / "inbox/broken.csv").write_text("task,trial\nx,1\n")
    outcome = take(service)
    assert (outcome.manifest, list(outcome.refused)) == (None, ["broken.csv"])
    assert not any(Path(tmp_path / "data").glob("trials/own/[0-9]*"))
    assert ledger.facts(next((service.design.runs / "refusal").glob("[0-9a-f]*")))["reason"]


@pytest.mark.slow
def test_files_that_are_good_alone_and_not_together(service, tmp_path):
    drop(tmp_path, "a_first.csv", 0, 10)
    take(service)
    drop(tmp_path, "b.csv", 10, 20)
    drop(tmp_path, "c.csv", 15, 25, scale=1.001)  # Five trials of each task are those of b, changed.
    drop(tmp_path, "d.csv", 25, 30)
    outcome = take(service)
    assert (outcome.published, list(outcome.refused)) == (["trials/own:1.1.0"], ["c.csv"])
    assert {file.name for file in outcome.manifest.raw_files} == {
        "a_first.csv",
        "b.csv",
        "d.csv",
        "space.toml",
    }


def test_an_export_that_grows_every_night_needs_no_person(service, tmp_path):
    for night, version in ((10, "1.0.0"), (20, "1.1.0"), (20, None), (30, "1.2.0")):
        drop(tmp_path, "study.csv", 0, night)
        outcome = take(service)
        assert (outcome.published, outcome.refused) == ([f"trials/own:{version}"] if version else [], {})
    assert outcome.manifest.rejects == 0
    assert [(each.known, each.new) for each in outcome.manifest.exports] == [(30, 30), (60, 30)]
    # A value that changed is refused, and what is recorded stays.
    drop(tmp_path, "study.csv", 0, 40, scale=1.001)
    outcome = take(service)
    assert (outcome.published, list(outcome.refused)) == ([], ["study.csv"])
    assert "metrics.error of the trial" in outcome.refused["study.csv"]


def test_a_fault_of_the_service_is_no_fault_of_its_files(service, tmp_path):
    drop(tmp_path, "a.csv", 0, 10)
    space = Path(service.source.space)
    text = space.read_text()
    space.write_text(text.replace('objective = "error"', "objective = 1"))
    with pytest.raises(InvalidInputError, match=r"space\.toml"):
        take(service)
    space.write_text(text.replace('column = "trial"', 'column = "trail"'))
    assert list(take(service).refused) == ["a.csv"]
    space.write_text(text)
    assert take(service).published == ["trials/own:1.0.0"]
    # Other bounds make another dataset of it: that is for a person to say, and refuses no file.
    drop(tmp_path, "b.csv", 10, 20)
    space.write_text(text.replace("upper = 2.0", "upper = 3.0"))
    with pytest.raises(VersionConflictError, match=r"use 2\.0\.0"):
        take(service)
    space.write_text(text)
    assert take(service).published == ["trials/own:1.1.0"]


@pytest.mark.slow
def test_a_file_that_is_still_being_written_is_left_for_later(service, tmp_path, monkeypatch):
    drop(tmp_path, "a.csv", 0, 10)
    drop(tmp_path, "b.csv", 10, 20)
    listed = listing(service.source.inbox)
    (tmp_path / "inbox/b.csv").write_text("half a")
    outcome = take_in(service, (), listed)
    assert (outcome.published, list(outcome.unsettled), outcome.refused) == (
        ["trials/own:1.0.0"],
        ["b.csv"],
        {},
    )
    drop(tmp_path, "b.csv", 10, 20)
    assert take(service).published == ["trials/own:1.1.0"]


@pytest.mark.slow
def test_a_service_of_an_archive_alone(tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    write(raw, "pd1_matched_phase1_results.jsonl", rows("matched", 1, inputs=4))
    write(raw, "pd1_unmatched_phase1_results.jsonl", rows("unmatched", 1, inputs=3))
    (tmp_path / "service.toml").write_text(ARCHIVE.replace('inbox = "inbox"\n', ""))
    service = read_service(tmp_path / "service.toml")

    def look():
        return take_in(service, listing(service.source.archive), ())

    assert look().published == ["pd1/release_without_curves:1.0.0"]
    assert look().published == []
    write(raw, "pd1_unmatched_phase1_results.jsonl", rows("unmatched", 1, inputs=1))
    refused = look()
    assert (refused.published, len(refused.refused)) == ([], 1)
    assert "lost 2 of 7 records" in next(iter(refused.refused.values()))
    assert refused.manifest.version == "1.0.0"
