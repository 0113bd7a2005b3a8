"""Publishing to an object store and pulling from it; and publishers that are many at once."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest
import requests
from faulty_server import FaultyServer
from fsspec.spec import AbstractFileSystem
from large_versions import write_large_version
from object_stores import object_store
from version_folders import record, write_version

import pd1_builder
from hyperbo.errors import HyperBOError, NotAvailableError, VersionConflictError
from pd1_builder.distribution.addresses import place_at, writable_place_at
from pd1_builder.distribution.index import INDEX_FOLDER, list_entries, read_index
from pd1_builder.distribution.places import MissingError, WritablePlace, read_small
from pd1_builder.distribution.publish import publish
from pd1_builder.distribution.pull import pull
from pd1_builder.distribution.transfer import RetryPolicy
from pd1_builder.version.pull_record import revision_of

REFERENCE, FOLDER = "pd1/mini:1.0.0", "pd1/mini/1.0.0"
PATIENCE = RetryPolicy(attempts=2, first_wait=0.01)
AT_ONCE = 8


@pytest.fixture(scope="module")
def store() -> Iterator[AbstractFileSystem]:
    with object_store() as store:
        yield store


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a version of a megabyte; read it only."""
    data_dir = tmp_path_factory.mktemp("large")
    write_large_version(data_dir, REFERENCE)
    return data_dir


@pytest.fixture
def bucket(store: AbstractFileSystem) -> str:
    """The URL of a folder in a bucket of the test's own."""
    name = f"bucket-{uuid.uuid4().hex}"
    store.mkdir(name)
    return f"s3://{name}/data"


@pytest.fixture(params=["folder", "object_store"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place of each kind, with nothing in it."""
    if request.param == "folder":
        return str(tmp_path / "place")
    return request.getfixturevalue("bucket")


def test_what_is_published_to_a_bucket_is_pulled_from_it(bucket: str, large: Path, tmp_path: Path) -> None:
    entry = publish(REFERENCE, bucket, data_dir=large)
    assert read_index(place_at(bucket)) == (entry,)
    version = pull(REFERENCE, [bucket], data_dir=tmp_path)
    assert revision_of(version.folder) == entry.revision == revision_of(large / FOLDER)
    pd1_builder.verify(REFERENCE, tmp_path)


def test_a_pull_from_a_bucket_goes_on_where_it_was(bucket: str, large: Path) -> None:
    publish(REFERENCE, bucket, data_dir=large)
    content = (large / FOLDER / "large.bin").read_bytes()
    with place_at(bucket).open(f"{FOLDER}/large.bin", 300_000) as opened:
        assert opened.start == 300_000
        assert b"".join(opened.chunks) == content[300_000:]


def test_publishing_twice_changes_nothing_and_another_revision_is_refused(
    bucket: str, store: AbstractFileSystem, large: Path, tmp_path: Path
) -> None:
    first = publish(REFERENCE, bucket, data_dir=large)

    def objects() -> dict[str, object]:
        root = bucket.removeprefix("s3://")
        names = [name for name in store.find(root, refresh=True) if name != f"{root}/index.json"]
        return {name: store.info(name, refresh=True)["LastModified"] for name in names}

    before = objects()
    assert len(before) == 8  # Five files, the manifest, the claim, the entry.
    assert publish(REFERENCE, bucket, data_dir=large) == first
    write_large_version(tmp_path, REFERENCE, seed=1)
    with pytest.raises(VersionConflictError, match=r"is published at s3://.* never changes"):
        publish(REFERENCE, bucket, data_dir=tmp_path)
    assert objects() == before
    assert read_index(place_at(bucket)) == (first,)


def test_only_one_of_many_processes_creates_a_file(target: str) -> None:
    def create(number: int) -> bool:
        try:
            writable_place_at(target).create(f"{INDEX_FOLDER}/one", str(number).encode() * 1000)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(AT_ONCE) as executor:
        made = list(executor.map(create, range(AT_ONCE)))
    assert sum(made) == 1
    assert (
        read_small(place_at(target), f"{INDEX_FOLDER}/one", 10_000) == str(made.index(True)).encode() * 1000
    )


def test_of_two_revisions_published_at_once_one_wins(target: str, tmp_path: Path) -> None:
    folders = [write_large_version(tmp_path / str(seed), REFERENCE, seed=seed) for seed in range(2)]

    def attempt(seed: int) -> str | HyperBOError:
        try:
            return publish(REFERENCE, target, data_dir=tmp_path / str(seed)).revision
        except VersionConflictError as error:
            return error

    with ThreadPoolExecutor(2) as executor:
        results = list(executor.map(attempt, range(2)))
    (winner,) = (seed for seed in range(2) if isinstance(results[seed], str))
    loser = str(results[1 - winner])
    assert "claimed" in loser or "never changes" in loser
    (entry,) = read_index(place_at(target))
    assert entry.revision == results[winner] == revision_of(folders[winner])
    version = pull(REFERENCE, [target], data_dir=tmp_path / "pulled")
    for path in folders[winner].rglob("*"):
        if path.is_file():
            assert (version.folder / path.relative_to(folders[winner])).read_bytes() == path.read_bytes()


def test_a_version_that_two_publish_at_once_is_published_once(target: str, large: Path) -> None:
    with ThreadPoolExecutor(2) as executor:
        entries = list(executor.map(lambda _: publish(REFERENCE, target, data_dir=large), range(2)))
    (entry,) = read_index(place_at(target))
    assert {each.revision for each in entries} == {entry.revision}


def test_an_index_that_many_write_at_once_is_complete(target: str, tmp_path: Path) -> None:
    references = [f"pd1/mini:1.{number}.0" for number in range(AT_ONCE)]
    for number, reference in enumerate(references):
        write_version(tmp_path / "own", reference, {"one": [record("a", f"a/{number}")]})
    with ThreadPoolExecutor(AT_ONCE) as executor:
        list(
            executor.map(lambda reference: publish(reference, target, data_dir=tmp_path / "own"), references)
        )
    assert [entry.reference for entry in read_index(place_at(target))] == references


def test_an_index_written_late_is_written_again(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for minor in range(2):
        write_version(tmp_path / "own", f"pd1/mini:1.{minor}.0", {"one": [record("a", f"a/{minor}")]})
    publish("pd1/mini:1.0.0", target, data_dir=tmp_path / "own")
    late = writable_place_at(target)
    replace, overtaken = late.replace, []

    def replace_late(name: str, content: bytes) -> None:
        # Between what this one listed and what it writes, another publishes all of a version.
        if not overtaken:
            overtaken.append(publish("pd1/mini:1.1.0", target, data_dir=tmp_path / "own"))
        replace(name, content)

    monkeypatch.setattr(late, "replace", replace_late)
    # A folder has a lock against it, where its file system has locks.
    monkeypatch.setattr(late, "alone", nullcontext)
    list_entries(late)
    assert [entry.version for entry in read_index(place_at(target))] == ["1.0.0", "1.1.0"]


def test_files_that_another_revision_left_are_replaced(target: str, large: Path, tmp_path: Path) -> None:
    # Somebody claimed the number, put a file of the same size, and gave up; the claim was removed.
    other = write_large_version(tmp_path / "other", REFERENCE, seed=1)
    writable_place_at(target).put(f"{FOLDER}/large.bin", other / "large.bin")
    publish(REFERENCE, target, data_dir=large)
    pull(REFERENCE, [target], data_dir=tmp_path / "pulled", retries=PATIENCE)
    pd1_builder.verify(REFERENCE, tmp_path / "pulled")


def test_a_missing_bucket(store: AbstractFileSystem, large: Path, tmp_path: Path) -> None:
    with pytest.raises(NotAvailableError, match=r"nothing is published at s3://of-nobody/data"):
        pull(REFERENCE, ["s3://of-nobody/data"], data_dir=tmp_path)
    with pytest.raises(NotAvailableError, match=r"s3://of-nobody/data/.* there is no such bucket"):
        publish(REFERENCE, "s3://of-nobody/data", data_dir=large)
    assert not list(tmp_path.iterdir())


def test_a_missing_file(bucket: str) -> None:
    with pytest.raises(MissingError, match="is not there"), place_at(bucket).open("nothing"):
        pass
    target: WritablePlace = writable_place_at(bucket)
    assert target.sizes("nothing") == {}


def reset_authorisation(allowed: str) -> None:
    address = f"{os.environ['AWS_ENDPOINT_URL']}/moto-api/reset-auth"
    requests.post(address, data=allowed, timeout=10).raise_for_status()


def test_wrong_credentials(bucket: str, large: Path, tmp_path: Path) -> None:
    publish(REFERENCE, bucket, data_dir=large)
    reset_authorisation("0")
    try:
        with pytest.raises(
            NotAvailableError, match=r"index\.json may not be read or written .*credentials"
        ) as caught:
            pull(REFERENCE, [bucket], data_dir=tmp_path, retries=PATIENCE)
        with pytest.raises(NotAvailableError, match="may not be read or written"):
            publish(REFERENCE, bucket, data_dir=large)
    finally:
        reset_authorisation("inf")
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", ["gone", "wrong"])
def test_a_web_server_replaces_a_damaged_bucket(
    damage: str, bucket: str, store: AbstractFileSystem, large: Path, tmp_path: Path
) -> None:
    publish(REFERENCE, bucket, data_dir=large)
    publish(REFERENCE, tmp_path / "place", data_dir=large)
    path = f"{bucket}/{FOLDER}/large.bin"
    if damage == "gone":
        store.rm_file(path)
    else:
        store.pipe_file(path, bytes(700_000))
    with pytest.raises(HyperBOError, match=r"s3://.*/large\.bin"):
        pull(REFERENCE, [bucket], data_dir=tmp_path / "data", retries=PATIENCE)
    with FaultyServer(tmp_path / "place") as server:
        pull(REFERENCE, [bucket, server.url], data_dir=tmp_path / "data", retries=PATIENCE)
        assert [request.path for request in server.requests] == [f"{FOLDER}/large.bin"]
    pd1_builder.verify(REFERENCE, tmp_path / "data")
    pulled = json.loads((tmp_path / "data/pd1/mini/.pulled-1.0.0.json").read_text())
    assert pulled["place"] == bucket


def test_removing_a_missing_file_is_no_error(target: str) -> None:
    found = writable_place_at(target)
    found.replace("folder/one", b"1")
    for _ in range(2):
        found.remove("folder/one")
        assert found.sizes("folder") == {}
