"""Bundles: what is written is read again, and what was changed or is no bundle is refused."""

from __future__ import annotations

import io
import json
import zipfile

import pytest
from arena_cases import run_tiny, write_versions

from flows.arena import bundle as bundle_module
from flows.arena.bundle import MANIFEST_NAME, read_bundle, write_bundle
from hyperbo.errors import HyperBOError, InvalidInputError, VersionConflictError


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle")
    write_bundle(run_tiny(write_versions(folder / "data"), folder / "runs"), folder / "bundle.zip")
    return folder / "bundle.zip"


def contents(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_what_is_written_is_read_again_and_gives_the_same_file(path, tmp_path):
    found = read_bundle(path)
    assert set(found.parts) == {"mini", "rows"}
    assert len(found.parts["mini"].records) == 3 * 3 * 2 * 6
    assert found.machines[0]["load"] == [0.5, 0.25]
    assert set(found.machines[0]["seconds"]["rows"]) == {"Best-average", "Rand", "Portfolio"}
    write_bundle(found, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", ["mini/records.parquet", "rows/metadata.json"])
def test_a_file_that_was_changed_is_refused(path, tmp_path, name):
    files = contents(path)
    files[name] = files[name][:-1] + b" "
    with pytest.raises(VersionConflictError, match=name):
        read_bundle(rewritten(tmp_path / "changed.zip", files))


@pytest.mark.parametrize(
    "name",
    ["../outside.json", "/etc/passwd", "mini/../../x.json", "mini\\records.parquet", "mini/extra.txt"],
)
def test_a_name_that_is_none_of_a_bundle_is_refused(path, tmp_path, name):
    with pytest.raises(InvalidInputError, match="not of a bundle"):
        read_bundle(rewritten(tmp_path / "odd.zip", contents(path) | {name: b"{}"}))


def test_a_file_that_the_manifest_does_not_name_is_refused(path, tmp_path):
    files = contents(path) | {"methods/other.py": b""}
    with pytest.raises(InvalidInputError, match=r"methods/other\.py"):
        read_bundle(rewritten(tmp_path / "more.zip", files))


def test_a_file_that_is_missing_is_refused(path, tmp_path):
    files = contents(path)
    del files["mini/metadata.json"]
    with pytest.raises(InvalidInputError, match=r"mini/metadata\.json"):
        read_bundle(rewritten(tmp_path / "less.zip", files))


@pytest.mark.parametrize(
    ("field", "value"),
    [("protocol", {"number": 1}), ("machines", []), ("format", 99), ("unknown", 1), ("files", 3)],
)
def test_a_manifest_of_other_fields_is_refused(path, tmp_path, field, value):
    files = contents(path)
    files[MANIFEST_NAME] = json.dumps(json.loads(files[MANIFEST_NAME]) | {field: value}).encode()
    with pytest.raises(HyperBOError):
        read_bundle(rewritten(tmp_path / "fields.zip", files))


def test_what_is_larger_than_a_bundle_may_be_is_refused(path, tmp_path, monkeypatch):
    monkeypatch.setattr(bundle_module, "LARGEST_BUNDLE", 1 << 20)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mini/records.parquet", bytes(2 << 20))
    assert len(bomb.getvalue()) < 1 << 14
    (tmp_path / "bomb.zip").write_bytes(bomb.getvalue())
    with pytest.raises(InvalidInputError, match="larger"):
        read_bundle(tmp_path / "bomb.zip")


def test_a_file_larger_than_a_bundle_is_not_opened(path, monkeypatch):
    monkeypatch.setattr(bundle_module, "LARGEST_ARCHIVE", 1000)
    with pytest.raises(InvalidInputError, match="larger"):
        read_bundle(path)


def test_a_file_that_declares_less_than_comes_out_is_refused(path, tmp_path):
    lying = io.BytesIO()
    with zipfile.ZipFile(lying, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST_NAME, bytes(1 << 20))
    content = lying.getvalue().replace((1 << 20).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    (tmp_path / "lying.zip").write_bytes(content)
    with pytest.raises(InvalidInputError):
        read_bundle(tmp_path / "lying.zip")


def test_more_rows_than_a_bundle_may_have_are_refused(path, monkeypatch):
    monkeypatch.setattr(bundle_module, "MOST_ROWS", 100)
    with pytest.raises(InvalidInputError, match="rows"):
        read_bundle(path)


@pytest.mark.parametrize("content", [b"", b"no zip file", b"PK\x03\x04 broken"])
def test_what_is_no_zip_file_is_refused(tmp_path, content):
    (tmp_path / "none.zip").write_bytes(content)
    with pytest.raises(InvalidInputError, match="ZIP"):
        read_bundle(tmp_path / "none.zip")


def test_a_zip_file_without_a_manifest_is_refused(path, tmp_path):
    files = contents(path)
    del files[MANIFEST_NAME]
    with pytest.raises(InvalidInputError, match=r"manifest\.json"):
        read_bundle(rewritten(tmp_path / "headless.zip", files))
