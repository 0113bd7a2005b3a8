"""Feedback: trials of tuning runs reach the inbox once; the next version has them with their origin."""

from __future__ import annotations

import gzip
import json

import pytest
from hyperbo_flows.service.feedback import new_trials_to_inbox
from hyperbo_flows.service.intake import take_in
from hyperbo_flows.service.settings import read_service
from hyperbo_flows.service.sources import listing
from synthetic_pd1 import rows, write

import pd1_builder
from hyperbo.errors import InvalidInputError

SERVICE = """
[service]
dataset = "pd1/mini"
[source]
inbox = "inbox"
tuning_runs = "tuned"
[checks]
largest_duplicate_share = 1.0
[promotion]
line = "pd1-mini/h-nll"
[experiment]
seeds = 1
iterations = 3
[arms.H-NLL]
method = "H-NLL"
"""


def run_of(folder, name, count):
    """What a tuning run has trained so far, as `hyperbo tune` keeps it."""
    made = rows("unmatched", 0, inputs=count)[:count]
    path = folder / "tuned" / name / "trials/pd1_unmatched_phase0_results.jsonl.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as stream:
        for number, row in enumerate(made):
            named = {"origin": f"{name}/H-NLL/seed0", "trial_dir": f"{name}/{number}"}
            stream.write(json.dumps(row | named) + "\n")
    return path


@pytest.fixture
def service(tmp_path, monkeypatch):
    """Version 1.0.0 of small raw files, an empty inbox, and no tuning run yet."""
    raw = tmp_path / "raw"
    for name in ("raw", "inbox", "tuned"):
        (tmp_path / name).mkdir()
    write(raw, "pd1_matched_phase1_results.jsonl", rows("matched", 1, inputs=4))
    write(raw, "pd1_unmatched_phase1_results.jsonl", rows("unmatched", 1, inputs=3))
    (tmp_path / "service.toml").write_text(SERVICE)
    pd1_builder.build("pd1/mini", "1.0.0", raw=raw, data_dir=tmp_path / "data")
    monkeypatch.setattr("pd1_builder.release.next_version.raw_folder", lambda *_: raw)
    return read_service(tmp_path / "service.toml")


def take(service):
    return take_in(service, (), listing(service.source.inbox))


def test_the_loop_closes_and_stops(service, tmp_path):
    assert new_trials_to_inbox(service) == 0
    run_of(tmp_path, "run-a", 3)
    assert new_trials_to_inbox(service) == 3
    (file,) = (tmp_path / "inbox").iterdir()
    assert file.name.startswith("pd1_unmatched_phase0_results-tuning-")
    # They wait in the inbox, and are not put there again.
    assert new_trials_to_inbox(service) == 0
    assert take(service).published == ["pd1/mini:1.1.0"]
    assert new_trials_to_inbox(service) == 0
    assert take(service).published == []
    # The run goes on, another begins: only what is new of both.
    run_of(tmp_path, "run-a", 5)
    run_of(tmp_path, "run-b", 2)
    assert new_trials_to_inbox(service) == 4
    assert take(service).published == ["pd1/mini:1.2.0"]
    frame = pd1_builder.load("pd1/mini:1.2.0", None, as_="dataframe", data_dir=tmp_path / "data")
    origins = frame["origin"].value_counts().to_dict()
    assert (origins["run-a/H-NLL/seed0"], origins["run-b/H-NLL/seed0"]) == (5, 2)


def test_a_file_that_is_gone_from_the_inbox_is_in_the_version_all_the_same(service, tmp_path):
    run_of(tmp_path, "run-a", 3)
    new_trials_to_inbox(service)
    take(service)
    for path in (tmp_path / "inbox").iterdir():
        path.unlink()
    run_of(tmp_path, "run-b", 1)
    assert new_trials_to_inbox(service) == 1
    assert take(service).published == ["pd1/mini:1.2.0"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: {**row, "status": "odd"}, "status is 'odd'"),
        (lambda row: {name: value for name, value in row.items() if name != "origin"}, "origin is missing"),
    ],
)
def test_a_row_that_cannot_be_keeps_all_of_them_out(service, tmp_path, change, message):
    path = run_of(tmp_path, "run-a", 3)
    with gzip.open(path, "rt") as stream:
        lines = [json.loads(line) for line in stream]
    with gzip.open(path, "wt") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in [lines[0], change(lines[1]), lines[2]])
    with pytest.raises(InvalidInputError, match=message) as error:
        new_trials_to_inbox(service)
    assert error.value.where.endswith("results.jsonl.gz:2")
    assert not any((tmp_path / "inbox").iterdir())
