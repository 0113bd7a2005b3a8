from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from version_folders import record, write_version

import pd1_builder
from hyperbo.errors import HyperBOError, InvalidInputError, NotAvailableError
from hyperbo.storage.staging import lock
from pd1_builder.distribution.prune import prune
from pd1_builder.distribution.publish import publish
from pd1_builder.distribution.pull import pull
from pd1_builder.version.catalog import version_folder, versions
from pd1_builder.version.pull_record import pull_folder, pull_record


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


def test_without_arguments_only_interrupted_work_is_removed(data: Path) -> None:
    (removed,) = prune(data_dir=data)
    assert (removed.folder.name, removed.size) == (f".pulling-3.0.0-{'ab' * 8}", 4)
    assert not removed.folder.exists()
    assert numbers(data) == ["1.0.0", "1.1.0", "2.0.0"]
    assert prune(data_dir=data) == ()


def test_the_newest_pulled_versions_are_kept_and_every_built_one(data: Path) -> None:
    prune(keep=3, data_dir=data)
    assert numbers(data) == ["1.0.0", "1.1.0", "2.0.0"]
    prune(keep=1, data_dir=data)
    assert numbers(data) == ["1.1.0", "2.0.0"]
    prune(keep=0, data_dir=data)
    assert numbers(data) == ["2.0.0"]


def test_a_version_built_in_the_place_of_a_pulled_one_is_not_removed(data: Path) -> None:
    shutil.rmtree(data / "pd1/mini/1.0.0")
    write_version(data, "pd1/mini:1.0.0", {"one": [record("a", "of my own, nowhere else")]})
    prune(keep=0, data_dir=data)
    assert numbers(data) == ["1.0.0", "2.0.0"]


def test_a_version_is_removed_in_one_step(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: object) -> None:
        raise KeyboardInterrupt

    prune(data_dir=data)
    monkeypatch.setattr(shutil, "rmtree", end)
    with pytest.raises(KeyboardInterrupt):
        prune(["pd1/mini:1.0.0"], data_dir=data)
    assert numbers(data) == ["1.1.0", "2.0.0"]
    assert not pull_record(data / "pd1/mini/1.0.0").exists()


@pytest.mark.parametrize("name", [".building-3.0.0-abc_def1", ".removing-3.0.0-0"])
def test_left_over_folders_of_builds_and_removals_are_removed(name: str, data: Path) -> None:
    (data / "pd1/mini" / name).mkdir()
    (data / "pd1/mini" / ".building-03.0.0-abcdefgh").mkdir()
    assert name in {each.folder.name for each in prune(data_dir=data)}
    assert (data / "pd1/mini" / ".building-03.0.0-abcdefgh").exists()


def test_removing_a_symbolic_link_keeps_its_target(data: Path, tmp_path: Path) -> None:
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


def test_a_removed_version_can_be_pulled_again(data: Path, tmp_path: Path) -> None:
    (_, removed) = prune(["pd1/mini:1.0.0"], data_dir=data)
    assert removed.folder == data / "pd1/mini/1.0.0"
    assert numbers(data) == ["1.1.0", "2.0.0"]
    pull("pd1/mini:1.0.0", [tmp_path / "place"], data_dir=data)
    pd1_builder.verify("pd1/mini:1.0.0", data)


def test_a_dry_run_removes_nothing(data: Path) -> None:
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
def test_a_built_or_unknown_version_is_refused_and_nothing_is_removed(
    reference: str, error: type[Exception], match: str, data: Path
) -> None:
    with pytest.raises(error, match=match):
        prune(["pd1/mini:1.0.0", reference], data_dir=data)
    assert numbers(data) == ["1.0.0", "1.1.0", "2.0.0"]


def test_a_version_in_use_is_not_removed(data: Path) -> None:
    with lock(data / "pd1/mini/3.0.0", lambda: None):
        assert prune(data_dir=data) == ()
    assert len(prune(data_dir=data)) == 1


def test_an_interrupted_removal_is_completed(data: Path) -> None:
    (data / "pd1/mini/1.0.0").rename(data / "pd1/mini/.removing-1.0.0-0")
    assert [each.folder.name for each in prune(data_dir=data)] == [
        f".pulling-3.0.0-{'ab' * 8}",
        ".removing-1.0.0-0",
    ]
