from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import hyperbo_pipelines.curate.raw_files
import pytest
from hyperbo_pipelines.curate.raw_files import read_lines
from hyperbo_pipelines.pd1.layout import find_raw_files
from hypothesis import given
from hypothesis import strategies as st
from synthetic_pd1 import rows, write, write_release

from hyperbo.errors import InvalidInputError


def test_describes_each_file_of_the_layout_and_leaves_others_alone(tmp_path: Path) -> None:
    write_release(tmp_path, inputs=3)
    (tmp_path / "README").write_text("not trials")
    found = find_raw_files(tmp_path)
    assert [(f.path.name, f.split, f.phase, f.rows) for f in found] == [
        ("pd1_matched_phase0_results.jsonl", "matched", 0, 12),
        ("pd1_matched_phase1_results.jsonl.gz", "matched", 1, 12),
        ("pd1_unmatched_phase1_results.jsonl.gz", "unmatched", 1, 12),
    ]
    content = (tmp_path / "pd1_matched_phase1_results.jsonl.gz").read_bytes()
    assert (found[1].sha256, found[1].size) == (hashlib.sha256(content).hexdigest(), len(content))


def test_line_numbers_count_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", ["{}", "", "  ", "[]"])
    assert list(read_lines(path)) == [(1, b"{}\n"), (4, b"[]\n")]


def test_no_files_of_the_layout(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no raw file found; expected pd1_"):
        find_raw_files(tmp_path)
    with pytest.raises(InvalidInputError, match="no such folder"):
        find_raw_files(tmp_path / "absent")


def test_zero_rows(tmp_path: Path) -> None:
    write(tmp_path, "pd1_matched_phase1_results.jsonl", [])
    with pytest.raises(InvalidInputError, match="no rows"):
        find_raw_files(tmp_path)


def test_the_same_trials_plain_and_gzipped(tmp_path: Path) -> None:
    for name in ("pd1_matched_phase1_results.jsonl", "pd1_matched_phase1_results.jsonl.gz"):
        write(tmp_path, name, rows("matched", 1, inputs=1))
    with pytest.raises(InvalidInputError, match=r"come twice.*jsonl and .*jsonl\.gz; remove one"):
        find_raw_files(tmp_path)


def test_truncated_gzip_names_the_first_lost_line(tmp_path: Path) -> None:
    path = write(tmp_path, "pd1_matched_phase1_results.jsonl.gz", rows("matched", 1, inputs=50))
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(
        InvalidInputError, match=r"^pd1_matched_phase1_results\.jsonl\.gz:\d+: cannot be read"
    ) as e:
        find_raw_files(tmp_path)
    assert 1 < int(e.value.where.rsplit(":")[1]) <= 200


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"not gzip at all", id="not gzip"),
        # A gzip header holds the time it was made: an id taken from it would differ between test workers.
        pytest.param(gzip.compress(b"{}\n" * 50, mtime=0)[:-12] + b"\0" * 12, id="damaged trailer"),
    ],
)
def test_damaged_gzip(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pd1_matched_phase1_results.jsonl.gz").write_bytes(content)
    with pytest.raises(InvalidInputError, match="cannot be read"):
        find_raw_files(tmp_path)


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "pd1_matched_phase1_results.jsonl").mkdir()
    with pytest.raises(InvalidInputError, match="cannot be read"):
        find_raw_files(tmp_path)


LINE = st.sampled_from([b"", b"  ", b"{}", b"[1, 2, 3]", b"\xff", b"a\rb", "\u2028".encode(), b"x" * 40])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("chunks")


@given(lines=st.lists(LINE, max_size=20), ends=st.booleans(), size=st.integers(1, 60), zipped=st.booleans())
def test_chunks_cover_a_file_once(
    folder: Path, lines: list[bytes], ends: bool, size: int, zipped: bool
) -> None:
    content = b"\n".join([*lines, b"{}"]) + b"\n" * ends
    for old in folder.iterdir():
        old.unlink()
    path = folder / f"pd1_matched_phase1_results.jsonl{'.gz' if zipped else ''}"
    path.write_bytes(gzip.compress(content, mtime=0) if zipped else content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hyperbo_pipelines.curate.raw_files, "_CHUNK_BYTES", size)
        (file,) = find_raw_files(folder)
    # Only a line feed ends a line: what else Unicode counts as one may stand in a text.
    expected = [
        (number, line)
        for number, line in enumerate(content.split(b"\n"), start=1)
        if line.strip(b" \t\r\n\x0b\x0c")
    ]
    assert file.rows == len(expected)
    assert bool(file.chunks) != zipped
    for parts in (file.chunks or (None,), (None,)):
        read = [(number, line.rstrip(b"\n")) for part in parts for number, line in read_lines(path, part)]
        assert read == expected
