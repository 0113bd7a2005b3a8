"""A file read in chunks is the file: same lines, same numbers, each once."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipelines.raw_files
from pipelines.raw_files import find_raw_files, read_lines

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
        patch.setattr(pipelines.raw_files, "_CHUNK_BYTES", size)
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
