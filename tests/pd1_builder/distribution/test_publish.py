from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest
from version_folders import record, write_version

import pd1_builder
from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from pd1_builder.distribution.addresses import place_at, writable_place_at
from pd1_builder.distribution.index import read_entry, read_index
from pd1_builder.distribution.publish import publish


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_published_version_is_the_version_and_is_listed(own: Path, tmp_path: Path) -> None:
    entry = publish("pd1/mini:1.1.0", tmp_path, data_dir=own)
    folder = own / "pd1/mini/1.1.0"
    assert files(tmp_path / "pd1/mini/1.1.0") == files(folder)
    # The folder is one of versions itself.
    assert pd1_builder.verify("pd1/mini:1.1.0", tmp_path).content_hash == entry.content_hash
    assert read_index(place_at(tmp_path)) == (entry,)
    assert entry.revision == hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
    assert entry.size == sum(map(len, files(folder).values()))
    assert (entry.records, entry.tasks, entry.parent) == ({"one": 2, "two": 1}, 2, "1.0.0")


def test_the_entry_says_what_changed_since_the_parent(own: Path, tmp_path: Path) -> None:
    publish("pd1/mini:1.1.0", tmp_path, data_dir=own)
    _, changes = read_entry(place_at(tmp_path), "pd1/mini/1.1.0") or (None, None)
    assert changes == pd1_builder.diff("pd1/mini:1.0.0", "pd1/mini:1.1.0", own).changes
    assert changes.bump == "minor"


def test_without_the_parent_the_entry_states_no_changes(own: Path, tmp_path: Path) -> None:
    publish("pd1/mini:1.1.0", tmp_path / "first", data_dir=own)
    publish("pd1/mini:1.1.0", tmp_path / "second", data_dir=tmp_path / "first")
    found = read_entry(place_at(tmp_path / "second"), "pd1/mini/1.1.0")
    assert found is not None
    assert found[1] is None


def test_versions_are_listed_by_their_numbers(own: Path, tmp_path: Path) -> None:
    write_version(tmp_path / "more", "pd1/mini:1.10.0", {"one": [record("a", "a/0")]})
    for reference, data_dir in (
        ("trials/mine:1.0.0", own),
        ("pd1/mini:1.10.0", tmp_path / "more"),
        ("pd1/mini:1.1.0", own),
    ):
        publish(reference, tmp_path / "place", data_dir=data_dir)
    found = [entry.reference for entry in read_index(place_at(tmp_path / "place"))]
    assert found == ["pd1/mini:1.1.0", "pd1/mini:1.10.0", "trials/mine:1.0.0"]


def test_publishing_again_changes_nothing(own: Path, tmp_path: Path) -> None:
    first = publish("pd1/mini:1.0.0", tmp_path, data_dir=own)
    written = [path for path in tmp_path.rglob("*.*") if path.is_file() and path.suffix != ".lock"]
    before = {path: path.stat().st_mtime_ns for path in written if path.name != "index.json"}
    assert publish("pd1/mini:1.0.0", tmp_path, data_dir=own) == first
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.parametrize("damage", ["gone", "changed", "manifest"])
def test_publishing_again_restores_lost_files(damage: str, own: Path, tmp_path: Path) -> None:
    publish("pd1/mini:1.0.0", tmp_path, data_dir=own)
    before = files(tmp_path / "pd1")
    path = tmp_path / "pd1/mini/1.0.0/one.parquet"
    if damage == "gone":
        path.unlink()
    elif damage == "changed":
        path.write_bytes(path.read_bytes()[:-1] + b"\0")
    else:
        path.with_name("manifest.json").unlink()
    publish("pd1/mini:1.0.0", tmp_path, data_dir=own)
    assert files(tmp_path / "pd1") == before


def test_a_file_is_not_a_place(own: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInputError, match="file: is not a folder"):
        publish("pd1/mini:1.0.0", tmp_path / "file", data_dir=own)


def test_another_revision_of_a_published_version_is_refused(own: Path, tmp_path: Path) -> None:
    publish("pd1/mini:1.0.0", tmp_path / "place", data_dir=own)
    before = files(tmp_path / "place")
    write_version(tmp_path / "other", "pd1/mini:1.0.0", {"one": [record("a", "other")]})
    with pytest.raises(VersionConflictError, match=r"pd1/mini:1\.0\.0 is published .* never changes"):
        publish("pd1/mini:1.0.0", tmp_path / "place", data_dir=tmp_path / "other")
    assert files(tmp_path / "place") == before


def test_a_claimed_version_is_refused(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sys.modules[publish.__module__], "_publish_entry", end)
        with pytest.raises(KeyboardInterrupt):
            publish("pd1/mini:1.0.0", tmp_path / "place", data_dir=own)
    # All files are there, and the version is not.
    assert files(own / "pd1/mini/1.0.0") == files(tmp_path / "place/pd1/mini/1.0.0")
    with pytest.raises(NotAvailableError, match="nothing is published"):
        read_index(place_at(tmp_path / "place"))
    write_version(tmp_path / "other", "pd1/mini:1.0.0", {"one": [record("a", "other")]})
    with pytest.raises(VersionConflictError, match="claimed"):
        publish("pd1/mini:1.0.0", tmp_path / "place", data_dir=tmp_path / "other")
    assert files(own / "pd1/mini/1.0.0") == files(tmp_path / "place/pd1/mini/1.0.0")
    publish("pd1/mini:1.0.0", tmp_path / "place", data_dir=own)
    assert len(read_index(place_at(tmp_path / "place"))) == 1


def test_the_next_publication_lists_a_version_missing_in_the_index(own: Path, tmp_path: Path) -> None:
    publish("pd1/mini:1.0.0", tmp_path, data_dir=own)
    (tmp_path / "index.json").unlink()  # As after a kill between the entry and the list.
    publish("trials/mine:1.0.0", tmp_path, data_dir=own)
    assert [entry.dataset for entry in read_index(place_at(tmp_path))] == ["pd1/mini", "trials/mine"]


def test_files_of_an_abandoned_claim_are_removed(own: Path, tmp_path: Path) -> None:
    target = writable_place_at(tmp_path)
    for name in ("shard-00000", "manifest.json.minisig", "one.parquet"):
        target.replace(f"pd1/mini/1.0.0/{name}", b"of another")
    publish("pd1/mini:1.0.0", tmp_path, data_dir=own)
    assert files(tmp_path / "pd1/mini/1.0.0") == files(own / "pd1/mini/1.0.0")


def test_what_a_killed_publication_was_writing_is_in_no_version(own: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    # As a kill does it: nothing is cleaned up.
    place.mkdir()
    (place / ".writing-one.parquet").write_bytes(b"part")
    publish("pd1/mini:1.0.0", place, data_dir=own)
    pd1_builder.verify("pd1/mini:1.0.0", place)
    assert not list(place.glob(".writing-*"))


def test_files_that_are_not_entries_are_ignored_with_a_warning(
    own: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entry = publish("pd1/mini:1.0.0", tmp_path, data_dir=own)
    index = tmp_path / "index"
    (index / "notes.json").write_text("{}")
    (index / "pd1/mini/7.0.0.json").write_bytes((tmp_path / entry.name).read_bytes())
    publish("trials/mine:1.0.0", tmp_path, data_dir=own)
    assert [each.reference for each in read_index(place_at(tmp_path))] == [
        "pd1/mini:1.0.0",
        "trials/mine:1.0.0",
    ]
    assert "7.0.0.json is not the entry" in caplog.text


def test_a_version_that_changes_while_it_is_copied_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_version(tmp_path / "own", "pd1/mini:1.0.0", {"one": [record("a", "a/0")]})
    module = sys.modules[publish.__module__]
    put = module._put_files

    def change(*arguments: Any) -> None:
        (folder / "one.parquet").write_bytes(b"other")
        put(*arguments)

    monkeypatch.setattr(module, "_put_files", change)
    with pytest.raises(VersionConflictError, match=r"one\.parquet has changed"):
        publish("pd1/mini:1.0.0", tmp_path / "place", data_dir=tmp_path / "own")
    with pytest.raises(NotAvailableError, match="nothing is published"):
        read_index(place_at(tmp_path / "place"))


def test_a_damaged_version_is_not_published(own: Path, tmp_path: Path) -> None:
    write_version(tmp_path / "own", "pd1/mini:1.0.0", {"one": [record("a", "a/0")]})
    path = tmp_path / "own/pd1/mini/1.0.0/one.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    with pytest.raises(VersionConflictError, match="has changed"):
        publish("pd1/mini:1.0.0", tmp_path / "place", data_dir=tmp_path / "own")
    assert not (tmp_path / "place").exists()


def test_a_version_with_a_symbolic_link_is_not_published(tmp_path: Path) -> None:
    folder = write_version(tmp_path / "own", "pd1/mini:1.0.0", {"one": [record("a", "a/0")]})
    (folder / "one.parquet").rename(tmp_path / "elsewhere")
    (folder / "one.parquet").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(VersionConflictError, match=r"one\.parquet is a symbolic link"):
        publish("pd1/mini:1.0.0", tmp_path / "place", data_dir=tmp_path / "own")


@pytest.mark.parametrize("url", ["file://{}/a%20b", "file://localhost{}/a%20b", "{}/a b"])
def test_an_address_of_a_folder_is_that_folder(url: str, own: Path, tmp_path: Path) -> None:
    publish("pd1/mini:1.0.0", url.format(tmp_path), data_dir=own)
    assert (tmp_path / "a b/index.json").exists()


def test_a_home_folder_is_the_users_own(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    publish("pd1/mini:1.0.0", "~/place", data_dir=own)
    assert (tmp_path / "place/index.json").exists()


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("https://example.org/data", "can only be read"),
        ("s3://key:hunter2@bucket/data", "no user, password, query"),
        ("s3://bucket/data?token=hunter2", "no user, password, query"),
        ("https://user:hun/ter2@example.org", "no user, password, query"),
        ("https:/user:hunter2@example.org", "no user, password, query"),
        ("simplecache::ftp://me:hunter2@example.org/x", "no user, password, query"),
        ("simplecache::s3://bucket/data", "malformed"),
        ("s3:/bucket/data", "malformed"),
        ("file://elsewhere/data", "another machine"),
        ("nothing://there", "Protocol not known"),
        ("s3://one/data s3://two/data", "several addresses"),
        ("s3://one/data,s3://two/data", "several addresses"),
        (" ", "is empty"),
    ],
)
def test_addresses_that_cannot_be_published_to_are_refused(url: str, match: str) -> None:
    with pytest.raises(InvalidInputError, match=match) as caught:
        writable_place_at(url)
    assert "hunter2" not in str(caught.value)
