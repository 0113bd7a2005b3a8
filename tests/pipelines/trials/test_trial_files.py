from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hyperbo_pipelines.trials.rows import find_trial_files
from trial_files import SPACE, describe, row, write_bytes, write_lines

from hyperbo.errors import InvalidInputError

HEADER = "task,trial,status,loss,test,curve,hp.rate,layers\n"
CSV_ROW = 'net,a,done,0.25,0.5,"[1.0, 0.25]",0.1,3\n'


def write_parquet(path: Path, rows: int) -> Path:
    pq.write_table(pa.Table.from_pylist([row(str(number)) for number in range(rows)]), path)
    return path


def test_files_of_each_kind_are_described(tmp_path: Path) -> None:
    description = describe(tmp_path)
    paths = [
        write_parquet(tmp_path / "e.parquet", 5),
        write_bytes(tmp_path / "d.csv.gz", (HEADER + CSV_ROW * 4).encode()),
        write_bytes(tmp_path / "c.csv", (HEADER + CSV_ROW * 3).encode()),
        write_lines(tmp_path / "b.jsonl.gz", [row("a"), row("b")]),
        write_lines(tmp_path / "a.jsonl", [row()]),
    ]
    found = find_trial_files(paths, description)
    assert [(file.path, file.rows) for file in found] == [
        (path, rows + 1) for rows, path in enumerate(reversed(paths))
    ]
    for file in found:
        content = file.path.read_bytes()
        assert (file.split, file.phase, file.size) == ("trials", 0, len(content))
        assert file.sha256 == hashlib.sha256(content).hexdigest()


def test_blank_lines_are_no_rows_and_a_line_end_in_quotes_ends_no_row(tmp_path: Path) -> None:
    description = describe(tmp_path, SPACE.replace('"note", ', '"note", "text", '))
    text = "\ufeff" + HEADER.replace("\n", ",text\r\n") + "\r\n"
    for spelled in ("plain", '"two\n\nlines"', '"a ""quote"", and a comma"'):
        text += CSV_ROW.replace("\n", f",{spelled}\r\n\r\n")
    (file,) = find_trial_files([write_bytes(tmp_path / "a.csv", text.encode())], description)
    assert file.rows == 3


def test_rows_that_the_description_skips_do_not_count(tmp_path: Path) -> None:
    description = describe(
        tmp_path, SPACE.replace('column = "status"', 'column = "status", skip = ["RUNNING"]')
    )
    lines = write_lines(tmp_path / "a.jsonl", [row(), row(status="RUNNING"), b"{", row(status="lost")])
    text = HEADER + CSV_ROW + CSV_ROW.replace("done", "RUNNING") + "cut,in,half\n"
    table = write_bytes(tmp_path / "b.csv", text.encode())
    assert [file.rows for file in find_trial_files([lines, table], description)] == [3, 2]


BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "unknown suffix": ("a.txt", b"x", r"a\.txt: not a kind of file that is read; give \.jsonl, "),
    "zero rows": ("a.jsonl", b"\n\n", r"a\.jsonl: there is no trial"),
    "empty CSV": ("a.csv", b"", r"a\.csv: the file names no columns; write a header first"),
    "missing column": ("a.csv", HEADER.replace(",layers", "").encode(), r"a\.csv: missing columns: 'layers'"),
    "unknown column": (
        "a.csv",
        HEADER.replace("\n", ",extra\n").encode(),
        r"a\.csv: unknown columns: 'extra'",
    ),
    "column twice": ("a.csv", HEADER.replace("\n", ",loss\n").encode(), r"a\.csv: the column 'loss'"),
    "header not UTF-8": ("a.csv", b"task,\xff\n", r"a\.csv:1: the header is not UTF-8"),
    "header in UTF-16": ("a.csv", HEADER.encode("utf-16"), r"a\.csv:1: the header is not UTF-8"),
    "quote that never closes": (
        "a.csv",
        (HEADER + CSV_ROW + 'net,"a,done,0.25\n').encode(),
        r"a\.csv:3: is not CSV",
    ),
    "text after a quote": ("a.csv", (HEADER + CSV_ROW + '"net"work,a\n').encode(), r"a\.csv:3: is not CSV"),
    "not gzip": ("a.csv.gz", b"plain", r"a\.csv\.gz:1: cannot be read: Not a gzipped file"),
    "not Parquet": ("a.parquet", b"PAR1 and no more", r"a\.parquet: cannot be read as Parquet"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_cannot_be_used_is_named(name: str, tmp_path: Path) -> None:
    file, content, message = BAD_FILES[name]
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InvalidInputError, match=message):
        find_trial_files([tmp_path / file], describe(tmp_path))


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.gz"])
def test_a_gzip_stream_cut_short_is_an_error(name: str, tmp_path: Path) -> None:
    if ".csv" in name:
        whole = gzip.compress((HEADER + "".join(f"net,{i}{CSV_ROW[5:]}" for i in range(999))).encode())
    else:
        whole = write_lines(tmp_path / name, [row(str(number)) for number in range(999)]).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidInputError, match=rf"{name}:\d+: cannot be read: Compressed file ended"):
        find_trial_files([tmp_path / name], describe(tmp_path))


def test_a_damaged_parquet_file_is_an_error(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", 500)
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"a\.parquet:1: cannot be read"):
        find_trial_files([path], describe(tmp_path))


def test_columns_of_parquet_are_those_of_its_schema(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([{"task": "net", "extra": {"a": 1}}]), path)
    with pytest.raises(InvalidInputError, match=r"missing columns: 'hp.rate', .*; unknown columns: 'extra'"):
        find_trial_files([path], describe(tmp_path))


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"n\xffet.jsonl")
    try:
        write_lines(path, [row()])
    except OSError:
        pytest.skip("this file system has no such names")
    with pytest.raises(
        InvalidInputError, match=r"n\\udcffet\.jsonl: the name .* is not UTF-8; rename"
    ) as caught:
        find_trial_files([path], describe(tmp_path))
    str(caught.value).encode("utf-8")  # It can be printed.


def test_an_absent_file_and_two_of_one_name_are_errors(tmp_path: Path) -> None:
    description = describe(tmp_path)
    with pytest.raises(InvalidInputError, match=r"b\.jsonl: there is no such file"):
        find_trial_files([tmp_path / "b.jsonl"], description)
    (tmp_path / "again").mkdir()
    paths = [write_lines(folder / "a.jsonl", [row()]) for folder in (tmp_path, tmp_path / "again")]
    with pytest.raises(InvalidInputError, match=r"two files have the name a\.jsonl: .*again"):
        find_trial_files(paths, description)
    with pytest.raises(InvalidInputError, match="there is no trial"):
        find_trial_files([], description)
