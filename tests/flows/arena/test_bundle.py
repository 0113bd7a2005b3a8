"""Bundles: what is written is read again, and what was changed or is no bundle is refused."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arena_cases import run_tiny, write_versions
from hyperbo_flows.arena import bundle as bundle_module
from hyperbo_flows.arena.bundle import MANIFEST_NAME, read_bundle, write_bundle

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


def test_a_file_that_declares_too_much_is_not_opened(path, tmp_path, monkeypatch):
    monkeypatch.setattr(bundle_module, "LARGEST_FILE", 1000)
    monkeypatch.setattr(zipfile.ZipFile, "read", None)
    with pytest.raises(InvalidInputError, match="is larger than a bundle may have"):
        read_bundle(path)


def test_a_list_of_too_many_files_is_not_read(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for place in range(5000):
            archive.writestr(f"methods/own_{place}.py", b"")
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(InvalidInputError, match="too many files"):
        read_bundle(tmp_path / "many.zip")


def test_a_list_of_files_of_64_bits_is_refused(path, tmp_path):
    content = path.read_bytes()
    (tmp_path / "wide.zip").write_bytes(content[:-22] + b"PK\x06\x07" + bytes(16) + content[-22:])
    with pytest.raises(InvalidInputError, match="ZIP"):
        read_bundle(tmp_path / "wide.zip")


def with_files(path, out, changed):
    """A bundle with other files, of which the manifest has the right hashes."""
    files = contents(path) | changed
    manifest = json.loads(files.pop(MANIFEST_NAME))
    manifest["files"] = {
        name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in files.items()
    }
    return rewritten(out, {MANIFEST_NAME: json.dumps(manifest).encode(), **files})


def with_metadata(path, out, **changed):
    metadata = json.loads(contents(path)["mini/metadata.json"]) | changed
    return with_files(path, out, {"mini/metadata.json": json.dumps(metadata).encode()})


@pytest.mark.parametrize(
    "changed", [{"iterations": 2_000_000_000}, {"seeds": list(range(200_000))}], ids=["iterations", "seeds"]
)
def test_metadata_that_ask_for_too_much_are_refused(path, tmp_path, changed):
    with pytest.raises(InvalidInputError, match="rows are asked for"):
        read_bundle(with_metadata(path, tmp_path / "vast.zip", **changed))


def test_json_that_is_too_large_is_not_parsed(path, tmp_path, monkeypatch):
    many = with_metadata(path, tmp_path / "large.zip", command="x" * (3 << 20))
    monkeypatch.setattr(json, "loads", None)
    with pytest.raises(InvalidInputError, match=r"mini/metadata\.json is larger"):
        read_bundle(many)


def test_more_rows_than_are_asked_for_are_refused(path, tmp_path):
    with pytest.raises(InvalidInputError, match="108 rows are more than the 18"):
        read_bundle(with_metadata(path, tmp_path / "long.zip", iterations=1))


def parquet(path, change=lambda table: table, **options):
    """The records of a part, changed, as Parquet."""
    table = pq.read_table(io.BytesIO(contents(path)["mini/records.parquet"]))
    buffer = io.BytesIO()
    pq.write_table(change(table), buffer, **{"compression": "none", "store_schema": False, **options})
    return buffer.getvalue()


def twice(table):
    return table.append_column("method", table["method"])


def extra(table):
    return table.append_column("extra", table["y"])


def less(table):
    return table.drop_columns("y_initial")


def text_for_number(table):
    return table.set_column(table.schema.get_field_index("y"), "y", table["method"])


def long_text(table):
    return table.set_column(0, "method", pa.array(["m" * 400] * len(table)))


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (twice, {}, "one name"),
        (extra, {}, "extra"),
        (less, {}, "y_initial"),
        (text_for_number, {}, "another type: y;"),
        (long_text, {}, "400 characters"),
        (lambda table: table, {"compression": "zstd"}, "packed"),
        (
            lambda table: table,
            {"use_dictionary": False, "column_encoding": {"trial_id": "DELTA_BYTE_ARRAY"}},
            "packed",
        ),
    ],
)
def test_records_of_another_shape_are_refused(path, tmp_path, change, options, words):
    content = parquet(path, change, **options)
    with pytest.raises(InvalidInputError, match=words):
        read_bundle(with_files(path, tmp_path / "shape.zip", {"mini/records.parquet": content}))


def test_what_a_file_says_of_pandas_is_not_believed(path, tmp_path):
    def lying(table):
        return table.replace_schema_metadata({"pandas": '{"index_columns": ["nowhere"], "columns": 3}'})

    content = parquet(path, lying, store_schema=True)
    found = read_bundle(with_files(path, tmp_path / "pandas.zip", {"mini/records.parquet": content}))
    assert found.parts["mini"].records.equals(read_bundle(path).parts["mini"].records)


@pytest.mark.parametrize("content", [b"", b"PAR1 no PAR1", b"PAR1" + bytes(100) + b"\x10\0\0\0PAR1"])
def test_records_that_are_no_parquet_file_are_refused(path, tmp_path, content):
    with pytest.raises(InvalidInputError, match="records cannot be read"):
        read_bundle(with_files(path, tmp_path / "none.zip", {"mini/records.parquet": content}))


def test_records_damaged_anywhere_give_no_traceback(path, tmp_path):
    whole = parquet(path)
    refused = 0
    for place in range(0, len(whole), len(whole) // 50):
        content = whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]
        try:
            read_bundle(with_files(path, tmp_path / "damaged.zip", {"mini/records.parquet": content}))
        except InvalidInputError:
            refused += 1
    assert refused > 10


def test_a_file_whose_packing_is_damaged_is_refused(path, tmp_path):
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        entry = archive.infolist()[0]
    at = entry.header_offset + 30 + len(entry.filename)
    content[at : at + 20] = b"\xff" * 20
    (tmp_path / "deflate.zip").write_bytes(content)
    with pytest.raises(InvalidInputError, match="ZIP"):
        read_bundle(tmp_path / "deflate.zip")


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(InvalidInputError, match="there is no such file; name a bundle"):
        read_bundle(tmp_path / "missing.zip")


def test_a_long_name_of_a_stranger_is_cut(path, tmp_path):
    with pytest.raises(InvalidInputError, match="not of a bundle") as raised:
        read_bundle(rewritten(tmp_path / "name.zip", {"x" * 5000: b""}))
    assert len(str(raised.value)) < 500 + len(str(tmp_path))


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
