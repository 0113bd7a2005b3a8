"""Trials added to a version of the PD1 layout: tuning runs fed back, and a release that is published anew."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from synthetic_pd1 import rows, write

import pd1_builder
from hyperbo.errors import InvalidInputError, NotAvailableError
from pd1_builder.release.next_version import next_release

pytestmark = pytest.mark.slow


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A small release with matched and unmatched trials."""
    folder = tmp_path / "release"
    folder.mkdir()
    write(folder, "pd1_matched_phase1_results.jsonl", rows("matched", 1, inputs=4))
    write(folder, "pd1_unmatched_phase1_results.jsonl", rows("unmatched", 1, inputs=3))
    return folder


def tuning_run(folder: Path, name: str, trials: list[dict[str, Any]]) -> Path:
    path = folder / f"pd1_unmatched_phase0_results-{name}.jsonl.gz"
    with gzip.open(path, "wt") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in trials)
    return path


def new_trials(count: int, origin: str | None = "online-1/H-NLL/seed0") -> list[dict[str, Any]]:
    made = rows("unmatched", 0, inputs=count)[:count]
    named = {} if origin is None else {"origin": origin}
    return [row | named | {"trial_dir": f"{origin}/{number}"} for number, row in enumerate(made)]


def test_trials_of_a_tuning_run_become_the_next_version(raw: Path, tmp_path: Path, monkeypatch) -> None:
    data_dir = tmp_path / "data"
    first = pd1_builder.build("pd1/mini", "1.0.0", raw=raw, data_dir=data_dir)
    monkeypatch.setattr("pd1_builder.release.next_version.raw_folder", lambda *_: raw)
    added = tuning_run(tmp_path, "a", new_trials(3))
    second = pd1_builder.add("pd1/mini", [added], data_dir=data_dir)
    assert (second.version, second.parent) == ("1.1.0", "1.0.0")
    assert second.rows("matched") == first.rows("matched")
    assert second.rows("unmatched") == first.rows("unmatched") + 3
    frame = pd1_builder.load("pd1/mini:1.1.0", None, as_="dataframe", data_dir=data_dir)
    assert sorted(frame["origin"].value_counts().to_dict().items()) == [
        ("collected", len(frame) - 3),
        ("online-1/H-NLL/seed0", 3),
    ]
    # The version keeps its files: the next one needs the release no more.
    monkeypatch.setattr("pd1_builder.release.next_version.raw_folder", None)
    third = pd1_builder.add(
        "pd1/mini", [tuning_run(tmp_path, "b", new_trials(2, "online-2/STBO/seed1"))], data_dir=data_dir
    )
    assert (third.version, third.rows("unmatched")) == ("1.2.0", first.rows("unmatched") + 5)
    assert pd1_builder.add("pd1/mini", [added], data_dir=data_dir) == third


def test_files_that_cannot_be_added_are_refused(raw: Path, tmp_path: Path, monkeypatch) -> None:
    added = tuning_run(tmp_path, "a", new_trials(1))
    with pytest.raises(NotAvailableError, match="pd1/mini is not in"):
        pd1_builder.add("pd1/mini", [added], data_dir=tmp_path)
    with pytest.raises(InvalidInputError, match="hpob/4796 takes no files"):
        pd1_builder.add("hpob/4796", [added], data_dir=tmp_path)
    pd1_builder.build("pd1/mini", "1.0.0", raw=raw, data_dir=tmp_path)
    monkeypatch.setattr("pd1_builder.release.next_version.raw_folder", lambda *_: raw)
    with pytest.raises(InvalidInputError, match="not named as raw files are"):
        pd1_builder.add("pd1/mini", [added.rename(tmp_path / "mine.jsonl.gz")], data_dir=tmp_path)
    write(raw, "pd1_matched_phase1_results.jsonl", rows("matched", 1, inputs=5))
    again = tuning_run(tmp_path, "a", new_trials(1))
    with pytest.raises(NotAvailableError, match=r"has changed since pd1/mini:1\.0\.0 was made"):
        pd1_builder.add("pd1/mini", [again], data_dir=tmp_path)


def test_a_new_release_of_raw_files(raw: Path, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    assert next_release("pd1/mini", raw, data_dir=data_dir).version == "1.0.0"
    added = tuning_run(tmp_path, "a", new_trials(2))
    assert pd1_builder.add("pd1/mini", [added], data_dir=data_dir).version == "1.1.0"
    # The same release again: what was added stays, and nothing is new.
    assert next_release("pd1/mini", raw, data_dir=data_dir).version == "1.1.0"
    write(raw, "pd1_unmatched_phase0_results.jsonl", rows("unmatched", 0, inputs=6))
    more = next_release("pd1/mini", raw, data_dir=data_dir)
    assert (more.version, more.parent) == ("1.2.0", "1.1.0")
    write(raw, "pd1_unmatched_phase0_results.jsonl", rows("unmatched", 0, inputs=2))
    fewer = next_release("pd1/mini", raw, data_dir=data_dir)
    assert (fewer.version, fewer.parent) == ("2.0.0", "1.2.0")
    assert len([file for file in fewer.raw_files if "-a" in file.name]) == 1
