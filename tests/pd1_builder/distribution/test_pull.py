from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from version_folders import record, write_version

import pd1_builder
from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from pd1_builder.distribution.publish import publish
from pd1_builder.distribution.pull import pull
from pd1_builder.version.catalog import version_folder, versions
from pd1_builder.version.pull_record import pull_folder, revision_of


@pytest.fixture(scope="module")
def published(own: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("place")
    for reference in ("pd1/mini:1.0.0", "pd1/mini:1.1.0"):
        publish(reference, place, data_dir=own)
    return place


def test_the_newest_is_pulled_and_nothing_else(published: Path, own: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    version = pull(
        "pd1/mini", [published], data_dir=tmp_path, on_progress=lambda *bytes_: told.append(bytes_)
    )
    assert [each.version for each in versions(tmp_path)] == [version.version] == ["1.1.0"]
    assert pd1_builder.verify("pd1/mini:1.1.0", tmp_path) == pd1_builder.verify("pd1/mini:1.1.0", own)
    total = sum(path.stat().st_size for path in version.folder.glob("*.parquet"))
    assert told[0] == (0, total)
    assert told[-1] == (total, total)


def test_a_version_in_the_data_folder_needs_no_place(published: Path, tmp_path: Path) -> None:
    first = pull("pd1/mini:1.0.0", [published], data_dir=tmp_path)
    assert pull("pd1/mini:1.0.0", str(tmp_path / "gone"), data_dir=tmp_path) == first
    for reference in ("pd1/mini:1.0.0", "pd1/mini"):
        assert pull(reference, data_dir=tmp_path) == first


def test_the_newest_version_is_not_pulled_again(published: Path, tmp_path: Path) -> None:
    first = pull("pd1/mini:1.1.0", [published], data_dir=tmp_path)
    before = (first.folder / "one.parquet").stat().st_mtime_ns
    assert pull("pd1/mini", [published], data_dir=tmp_path) == first
    assert (first.folder / "one.parquet").stat().st_mtime_ns == before


def test_load_pulls_a_missing_version(published: Path, own: Path, tmp_path: Path) -> None:
    frame = pd1_builder.load("pd1/mini:1.1.0", as_="dataframe", data_dir=tmp_path, source=str(published))
    assert isinstance(frame, pd.DataFrame)
    pd.testing.assert_frame_equal(frame, pd1_builder.load("pd1/mini:1.1.0", as_="dataframe", data_dir=own))
    # Without a version, what is here is good enough.
    assert len(pd1_builder.load("pd1/mini", as_="dataframe", data_dir=tmp_path, source="/nowhere")) == len(
        frame
    )


def test_load_pulls_from_the_configured_places(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYPERBO_DATA_SOURCES", f"{tmp_path / 'nowhere'} {published}")
    pd1_builder.load("pd1/mini:1.0.0", as_="dataframe", data_dir=tmp_path / "data")
    assert [each.version for each in versions(tmp_path / "data")] == ["1.0.0"]


def test_load_says_why_it_could_not_pull(tmp_path: Path) -> None:
    with pytest.raises(
        NotAvailableError, match=r"http://127\.0\.0\.1:1/index\.json: \[Errno 111\] Connection refused$"
    ):
        pd1_builder.load("pd1/mini:1.0.0", data_dir=tmp_path, source="http://127.0.0.1:1")


def test_a_file_that_cannot_be_read_is_named(published: Path, tmp_path: Path) -> None:
    version = pull("pd1/mini:1.0.0", published, data_dir=tmp_path / "data")
    path = version.folder / "one.parquet"
    path.write_bytes(b"\0" * path.stat().st_size)
    with pytest.raises(VersionConflictError, match=r"one\.parquet is damaged .* hyperbo data verify"):
        pd1_builder.load("pd1/mini:1.0.0", data_dir=tmp_path / "data")


def test_load_uses_no_network_unless_asked_to(tmp_path: Path) -> None:
    with pytest.raises(NotAvailableError, match=r"build it: hyperbo data build pd1/mini:1\.0\.0 --data"):
        pd1_builder.load("pd1/mini:1.0.0", data_dir=tmp_path)


def test_without_a_place_the_error_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="HYPERBO_DATA_SOURCES"):
        pull("pd1/mini:1.0.0", data_dir=tmp_path)


def test_a_revision_pins_every_byte(published: Path, own: Path, tmp_path: Path) -> None:
    revision = revision_of(own / "pd1/mini/1.0.0")
    for wrong in ("0" * 64, revision_of(own / "pd1/mini/1.1.0")):
        with pytest.raises(VersionConflictError, match=rf"has the revision {revision}, not {wrong}"):
            pull("pd1/mini:1.0.0", [published], data_dir=tmp_path, revision=wrong)
    assert not versions(tmp_path)
    pull("pd1/mini:1.0.0", [published], data_dir=tmp_path, revision=revision)
    assert len(pd1_builder.load("pd1/mini:1.0.0", as_="dataframe", data_dir=tmp_path, revision=revision)) == 1
    # It is held to what is here too, which must be undamaged.
    for call in (pull, pd1_builder.load):
        with pytest.raises(VersionConflictError, match="has the revision"):
            call("pd1/mini:1.0.0", data_dir=tmp_path, revision="0" * 64)
    path = tmp_path / "pd1/mini/1.0.0/one.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    for call in (pull, pd1_builder.load):
        with pytest.raises(VersionConflictError, match=r"one\.parquet has changed"):
            call("pd1/mini:1.0.0", data_dir=tmp_path, revision=revision)


@pytest.mark.parametrize("revision", ["", "abc", "0" * 63, "G" * 64])
def test_a_revision_is_a_whole_sha256(revision: str, published: Path, own: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="64 digits of a SHA-256"):
        pull("pd1/mini:1.0.0", [published], data_dir=tmp_path, revision=revision)
    with pytest.raises(InvalidInputError, match="64 digits of a SHA-256"):
        pd1_builder.load("pd1/mini:1.0.0", data_dir=own, revision=revision)


def test_a_built_version_with_the_same_records_is_used(published: Path, tmp_path: Path) -> None:
    folder = write_version(tmp_path, "pd1/mini:1.1.0", {"one": [record("a", "other")]})
    with pytest.raises(VersionConflictError, match="holds other records"):
        pull("pd1/mini", [published], data_dir=tmp_path)
    (folder / "manifest.json").write_bytes((published / "pd1/mini/1.1.0/manifest.json").read_bytes() + b"\n")
    assert pull("pd1/mini", [published], data_dir=tmp_path).folder == folder


def test_a_version_that_is_not_published_is_named_with_those_that_are(
    published: Path, tmp_path: Path
) -> None:
    with pytest.raises(NotAvailableError, match=r"\(versions of pd1/mini: 1\.0\.0, 1\.1\.0\)"):
        pull("pd1/mini:3.0.0", [published], data_dir=tmp_path)
    with pytest.raises(InvalidInputError, match=r"'pd1'.* has pd1/mini"):
        pull("pd1", [published], data_dir=tmp_path)
    with pytest.raises(NotAvailableError, match="nothing is published at"):
        pull("pd1/mini", [tmp_path / "empty"], data_dir=tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_an_unreadable_place_is_skipped(published: Path, tmp_path: Path) -> None:
    # For gs:// a package is needed that is not installed.
    places = ["gs://bucket/data", tmp_path / "nothing", published]
    pull("pd1/mini:1.0.0", places, data_dir=tmp_path / "data")
    with pytest.raises(NotAvailableError, match=r"gs://bucket/data .*gcsfs"):
        pull("pd1/mini:1.1.0", places[:1], data_dir=tmp_path / "data")


def test_a_version_missing_in_the_index_is_found_by_its_entry(own: Path, tmp_path: Path) -> None:
    for reference in ("pd1/mini:1.0.0", "pd1/mini:1.1.0"):
        publish(reference, tmp_path / "place", data_dir=own)
    index = json.loads((tmp_path / "place/index.json").read_text())
    index["versions"].pop()
    (tmp_path / "place/index.json").write_text(json.dumps(index))
    assert pull("pd1/mini:1.1.0", tmp_path / "place", data_dir=tmp_path / "data").version == "1.1.0"


def test_files_of_another_revision_are_removed_after_a_pull(published: Path, tmp_path: Path) -> None:
    other = pull_folder(version_folder("pd1/mini", "1.0.0", tmp_path), "ab" * 32)
    other.mkdir(parents=True)
    pull("pd1/mini:1.0.0", published, data_dir=tmp_path)
    assert not other.exists()


def test_texts_of_an_index_are_shortened_and_printable(published: Path, tmp_path: Path) -> None:
    index = json.loads((published / "index.json").read_text())
    index["versions"][0]["\x1b[2Jpwned" + "x" * 100_000] = 1
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(VersionConflictError) as caught:
        pull("pd1/mini:1.0.0", tmp_path, data_dir=tmp_path / "data")
    assert len(str(caught.value)) < 1000
    assert "\x1b" not in str(caught.value)


def test_a_version_too_large_is_refused_before_it_is_pulled(published: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"more than 100; allow more: --largest"):
        pull("pd1/mini:1.0.0", [published], data_dir=tmp_path, largest=100)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_the_advice_depends_on_the_origin_of_a_damaged_version(published: Path, tmp_path: Path) -> None:
    version = pull("pd1/mini:1.0.0", [published], data_dir=tmp_path)
    (version.folder / "one.parquet").write_bytes(b"")
    with pytest.raises(
        VersionConflictError, match=r"hyperbo data prune pd1/mini:1\.0\.0 --data .*, and pull it again"
    ):
        pd1_builder.load("pd1/mini:1.0.0", data_dir=tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"versions": [{}]},
        {"version": {"revision": "../../etc/passwd"}},
        {"version": {"dataset": "../../etc"}},
        {"version": {"records": [1]}},
    ],
    ids=lambda change: "-".join(f"{name}={value}" for name, value in change.items()).replace("/", "_"),
)
def test_a_damaged_index_is_an_error_that_names_it(change: dict, published: Path, tmp_path: Path) -> None:
    index = json.loads((published / "index.json").read_text())
    if "version" in change:
        index["versions"][0] |= change["version"]
    else:
        index |= change
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(VersionConflictError, match=r"index\.json: is damaged"):
        pull("pd1/mini:1.0.0", [tmp_path], data_dir=tmp_path / "data")
