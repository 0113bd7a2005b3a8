from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from version_folders import record, write_version

import pd1_builder
from hyperbo.errors import HyperBOError, InvalidInputError, NotAvailableError
from hyperbo.staging import lock
from pd1_builder.catalog import version_folder, versions
from pd1_builder.distribution.pruning import prune
from pd1_builder.distribution.publishing import publish
from pd1_builder.distribution.pulling import pull
from pd1_builder.pulled import pull_folder, pull_record


@pytest.fixture
def data(own: Path, tmp_path: Path) -> Path:
    """A data folder with two versions that were pulled, one that was built, and the rest of a pull."""
    for reference in ("pd1/mini:1.0.0", "pd1/mini:1.1.0"):
        publish(reference, tmp_path / "place", data_dir=own)
        pull(reference, [tmp_path / "place"], data_dir=tmp_path / "data")
    write_version(tmp_path / "data", "pd1/mini:2.0.0", {"one": [record("a", "built")]})
    left = pull_folder(version_folder("pd1/mini", "3.0.0", tmp_path / "data"), "ab" * 32)
    left.mkdir()
    (left / "one.parquet").write_bytes(b"part")
    return tmp_path / "data"


def numbers(data: Path) -> list[str]:
    return [version.version for version in versions(data)]


def test_only_what_was_broken_off_goes_of_itself(data: Path) -> None:
    (removed,) = prune(data_dir=data)
    assert (removed.folder.name, removed.size) == (f".pulling-3.0.0-{'ab' * 8}", 4)
    assert not removed.folder.exists()
    assert numbers(data) == ["1.0.0", "1.1.0", "2.0.0"]
    assert prune(data_dir=data) == ()


def test_the_newest_pulled_versions_are_kept_and_every_built_one(data: Path) -> None:
    prune(keep=1, data_dir=data)
    assert numbers(data) == ["1.1.0", "2.0.0"]
    prune(keep=0, data_dir=data)
    assert numbers(data) == ["2.0.0"]


@given(keep=st.integers(0, 5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=6)
def test_as_many_as_are_kept_stay(keep: int, data: Path) -> None:
    pulled = ["1.0.0", "1.1.0"]
    named = {each.folder.name for each in prune(keep=keep, data_dir=data, dry_run=True)}
    assert named.intersection(pulled) == set(pulled[: max(len(pulled) - keep, 0)])


def test_what_took_the_place_of_a_pulled_version_stays(data: Path) -> None:
    shutil.rmtree(data / "pd1/mini/1.0.0")
    write_version(data, "pd1/mini:1.0.0", {"one": [record("a", "of my own, nowhere else")]})
    prune(keep=0, data_dir=data)
    assert numbers(data) == ["1.0.0", "2.0.0"]


def test_a_version_goes_all_at_once(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: object) -> None:
        raise KeyboardInterrupt

    prune(data_dir=data)
    monkeypatch.setattr(shutil, "rmtree", end)
    with pytest.raises(KeyboardInterrupt):
        prune(["pd1/mini:1.0.0"], data_dir=data)
    assert numbers(data) == ["1.1.0", "2.0.0"]
    assert not pull_record(data / "pd1/mini/1.0.0").exists()


@pytest.mark.parametrize("name", [".building-3.0.0-abc_def1", ".removing-3.0.0-0"])
def test_what_builds_and_removals_left_goes(name: str, data: Path) -> None:
    (data / "pd1/mini" / name).mkdir()
    (data / "pd1/mini" / ".building-03.0.0-abcdefgh").mkdir()
    assert name in {each.folder.name for each in prune(data_dir=data)}
    assert (data / "pd1/mini" / ".building-03.0.0-abcdefgh").exists()


def test_of_a_link_only_the_link_goes(data: Path, tmp_path: Path) -> None:
    folder = data / "pd1/mini/1.0.0"
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    prune(["pd1/mini:1.0.0"], data_dir=data)
    assert numbers(data) == ["1.1.0", "2.0.0"]
    assert (tmp_path / "elsewhere/manifest.json").exists()


def test_a_version_that_is_named_and_in_use_is_an_error(data: Path) -> None:
    with (
        lock(data / "pd1/mini/1.0.0", lambda: None),
        pytest.raises(HyperBOError, match="is in use by another"),
    ):
        prune(["pd1/mini:1.0.0"], data_dir=data)


def test_a_version_that_went_can_be_pulled_again(data: Path, tmp_path: Path) -> None:
    (_, removed) = prune(["pd1/mini:1.0.0"], data_dir=data)
    assert removed.folder == data / "pd1/mini/1.0.0"
    assert numbers(data) == ["1.1.0", "2.0.0"]
    pull("pd1/mini:1.0.0", [tmp_path / "place"], data_dir=data)
    pd1_builder.verify("pd1/mini:1.0.0", data)


def test_nothing_goes_where_it_is_only_asked_about(data: Path) -> None:
    def left() -> list[Path]:
        return sorted(path for path in data.rglob("*") if path.suffix != ".lock")

    before = left()
    assert len(prune(["pd1/mini:1.0.0"], data_dir=data, dry_run=True)) == 2
    assert left() == before


@pytest.mark.parametrize(
    ("reference", "error", "match"),
    [
        ("pd1/mini:2.0.0", InvalidInputError, "was not pulled"),
        ("pd1/mini", InvalidInputError, "name the version"),
        ("pd1/mini:9.0.0", NotAvailableError, "is not in"),
    ],
)
def test_what_must_stay_stays(reference: str, error: type[Exception], match: str, data: Path) -> None:
    with pytest.raises(error, match=match):
        prune(["pd1/mini:1.0.0", reference], data_dir=data)
    assert numbers(data) == ["1.0.0", "1.1.0", "2.0.0"]


def test_what_a_process_is_at_work_on_stays(data: Path) -> None:
    with lock(data / "pd1/mini/3.0.0", lambda: None):
        assert prune(data_dir=data) == ()
    assert len(prune(data_dir=data)) == 1


def test_a_removal_that_was_broken_off_is_ended(data: Path) -> None:
    (data / "pd1/mini/1.0.0").rename(data / "pd1/mini/.removing-1.0.0-0")
    assert [each.folder.name for each in prune(data_dir=data)] == [
        f".pulling-3.0.0-{'ab' * 8}",
        ".removing-1.0.0-0",
    ]
