"""Archives downloaded over HTTP from a server on this machine."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import tensorflow_datasets as tfds
from synthetic_pd1 import rows, write

import pd1_builder
import pd1_builder.datasets
from hyperbo.errors import InvalidInputError, NotAvailableError
from pd1_builder.archives import Archive, check, fetch, unpack
from pd1_builder.catalog import versions

NAME = "pd1_matched_phase1_results.jsonl"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address it is served at."""
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as file:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return path


def manager(tmp_path: Path) -> Any:
    tfds.disable_progress_bar()
    return tfds.download.DownloadManager(download_dir=tmp_path / "downloads")


def test_a_version_is_built_from_an_archive_that_is_downloaded_once(
    server: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, address = server
    raw = write(tmp_path / "raw", NAME, rows("matched", 1, inputs=3)).read_bytes()
    members = {f"pd1/{NAME}.gz": gzip.compress(raw, mtime=0), "pd1/README.txt": b"read me"}
    path = tar(folder / "pd1.tar.gz", members)
    digest = hashlib.md5(path.read_bytes()).hexdigest()
    archive = Archive(f"{address}/pd1.tar.gz", "md5", digest, path.stat().st_size)
    monkeypatch.setattr(pd1_builder.datasets, "PD1_ARCHIVE", archive)
    manifest = pd1_builder.build("pd1/release", data_dir=tmp_path / "data")
    assert (manifest.rows("matched"), manifest.raw_files[0].name) == (12, f"{NAME}.gz")
    path.unlink()
    again = pd1_builder.build("pd1/release_without_curves", data_dir=tmp_path / "data")
    assert again.counts == manifest.counts
    # What exists is verified without its archive.
    assert pd1_builder.build("pd1/release", data_dir=tmp_path / "data") == manifest


def test_another_archive_than_the_one_registered_is_refused_and_forgotten(
    server: tuple[Path, str], tmp_path: Path
) -> None:
    folder, address = server
    path = tar(folder / "pd1.tar.gz", {"pd1/x": b"wrong"})
    right = Archive(f"{address}/pd1.tar.gz", "sha256", "ab1c439e50ff")
    with pytest.raises(
        InvalidInputError, match=r"pd1\.tar\.gz: the download has sha256 .*, not sha256 ab1c439"
    ):
        fetch(right, manager(tmp_path))
    # The next attempt downloads anew: by now the right file is there.
    path.unlink()
    tar(path, {"pd1/x": b"right"})
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    unpacked = fetch(Archive(right.url, "sha256", digest[:12]), manager(tmp_path))
    assert (unpacked / "pd1/x").read_bytes() == b"right"


def test_a_size_that_differs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    digest = hashlib.md5(b"abc").hexdigest()
    check(Archive("u", "md5", digest, 3), path)
    with pytest.raises(InvalidInputError, match=r"3 bytes, not md5 .*, 4 bytes"):
        check(Archive("u", "md5", digest, 4), path)


def test_what_cannot_be_downloaded_says_so(server: tuple[Path, str], tmp_path: Path) -> None:
    archive = Archive(f"{server[1]}/absent.tar.gz", "md5", "00")
    with pytest.raises(NotAvailableError, match=r"absent\.tar\.gz cannot be downloaded .*give their folder"):
        fetch(archive, manager(tmp_path))


@pytest.mark.parametrize("name", ["../evil", "pd1/../../evil", "/tmp/evil"])
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_member_that_climbs_out_of_its_folder_is_refused(tmp_path: Path, kind: str, name: str) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "tar":
        tar(path, {"pd1/good": b"1", name: b"2"})
    else:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("pd1/good", "1")
            file.writestr(name, "2")
    with pytest.raises(InvalidInputError, match=r"a\.(tar|zip): the member .*evil' would be written outside"):
        unpack(path, tmp_path / "out")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as file:
        link = tarfile.TarInfo("pd1/link")
        link.type, link.linkname = tarfile.SYMTYPE, "../../evil"
        file.addfile(link)
    with pytest.raises(InvalidInputError, match=r"a\.tar: cannot be unpacked"):
        unpack(path, tmp_path / "out")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_an_archive_that_is_cut_short_leaves_nothing(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tar.gz", {"pd1/x": bytes(range(256)) * 100})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InvalidInputError, match=r"a\.tar\.gz: cannot be unpacked"):
        unpack(path, tmp_path / "out")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert versions(tmp_path) == ()
