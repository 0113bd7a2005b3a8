"""Archives downloaded over HTTP from a server on this machine."""

from __future__ import annotations

import gzip
import hashlib
import io
import logging
import random
import resource
import socket
import tarfile
import threading
import time
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import tensorflow_datasets as tfds
from synthetic_pd1 import rows, write
from tensorflow_datasets.core.download import downloader
from tensorflow_datasets.core.download.resource import get_dl_fname

import pd1_builder
import pd1_builder.release.archives
import pd1_builder.release.datasets
from hyperbo.errors import InvalidInputError, NotAvailableError
from pd1_builder.release.archives import Archive, check, fetch, unpack
from pd1_builder.version.catalog import versions

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
        threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        yield folder, f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as file:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return path


def packed(path: Path, members: dict[str, bytes]) -> Path:
    """A tar or zip file, by its suffix."""
    if path.suffix != ".zip":
        return tar(path, members)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
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
    monkeypatch.setattr(pd1_builder.release.datasets, "PD1_ARCHIVE", archive)
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


def test_a_failed_download_names_the_address(server: tuple[Path, str], tmp_path: Path) -> None:
    archive = Archive(f"{server[1]}/absent.tar.gz", "md5", "00")
    with pytest.raises(NotAvailableError, match=r"absent\.tar\.gz cannot be downloaded .*give their folder"):
        fetch(archive, manager(tmp_path))
    assert list((tmp_path / "downloads").glob("*absent*")) == []


def test_without_a_network_the_error_comes_soon(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as closed:  # A port that nobody listens at.
        closed.bind(("127.0.0.1", 0))
        archive = Archive(f"http://127.0.0.1:{closed.getsockname()[1]}/pd1.tar.gz", "md5", "00")
        start = time.monotonic()
        with pytest.raises(NotAvailableError, match=r"pd1\.tar\.gz cannot be downloaded .*refused"):
            fetch(archive, manager(tmp_path))
    assert time.monotonic() - start < 20.0
    assert [record.name for record in caplog.records if record.name.startswith("urllib3")] == []
    assert list((tmp_path / "downloads").glob("*.tmp.*")) == []
    # Others find TFDS and the log as they were.
    assert (downloader.MAX_RETRIES, downloader._open_url.__name__) == (10, "_open_url")
    assert logging.getLogger("urllib3.connectionpool").level == logging.NOTSET


def test_a_server_that_falls_silent_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pd1_builder.release.archives, "_SECONDS_OF_SILENCE", 0.1)
    monkeypatch.setattr(pd1_builder.release.archives, "_RETRIES", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        archive = Archive(f"http://127.0.0.1:{silent.getsockname()[1]}/pd1.tar.gz", "md5", "00")
        with pytest.raises(NotAvailableError, match="timed out"):
            fetch(archive, manager(tmp_path))


def test_what_a_killed_download_left_is_removed_by_the_next(server: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = server
    path = tar(folder / "pd1.tar.gz", {"pd1/x": b"right"})
    archive = Archive(f"{address}/pd1.tar.gz", "md5", hashlib.md5(path.read_bytes()).hexdigest())
    name = get_dl_fname(archive.url)
    dead, other = (tmp_path / "downloads" / f"{of}.tmp.0123456789abcdef" for of in (name, "another_url"))
    for each in (dead, other):
        each.mkdir(parents=True)
        (each / "pd1.tar.gz").write_bytes(b"half")
    fetch(archive, manager(tmp_path))
    assert (dead.exists(), other.exists()) == (False, True)


def test_two_processes_download_an_archive_once(
    server: tuple[Path, str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, address = server
    path = tar(folder / "pd1.tar.gz", {"pd1/x": b"right"})
    archive = Archive(f"{address}/pd1.tar.gz", "md5", hashlib.md5(path.read_bytes()).hexdigest())
    first, second = manager(tmp_path), manager(tmp_path)
    download, found = first.download, []
    other = threading.Thread(target=lambda: found.append(fetch(archive, second)))

    def while_the_other_waits(url: str) -> Any:
        other.start()
        late = time.monotonic() + 10.0
        while "another process downloads it" not in caplog.text and time.monotonic() < late:
            time.sleep(0.01)
        downloaded = download(url)
        path.unlink()  # The other can only find what is here.
        return downloaded

    monkeypatch.setattr(first, "download", while_the_other_waits)
    with caplog.at_level(logging.INFO, "pd1_builder"):
        unpacked = fetch(archive, first)
        other.join()
    assert "another process downloads it; waiting" in caplog.text
    assert found == [unpacked]


@pytest.mark.parametrize("name", ["../evil", "pd1/../../evil", "/tmp/evil"])
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_an_archive_member_outside_its_folder_is_refused(tmp_path: Path, kind: str, name: str) -> None:
    path = packed(tmp_path / f"a.{kind}", {"pd1/good": b"1", name: b"2"})
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


@pytest.mark.parametrize("name", ["a.tar.gz", "a.zip"])
def test_an_archive_is_refused_wherever_it_is_damaged(name: str, tmp_path: Path) -> None:
    source = random.Random(0)
    members = {f"pd1/{i}": bytes(source.choices(range(64), k=30_000)) for i in range(2)}
    path = packed(tmp_path / name, members)
    whole = path.read_bytes()
    causes: set[type] = set()
    for place in (*range(60), *range(60, len(whole), 999)):
        path.write_bytes(whole[:place] + b"\xff" * 9 + whole[place + 9 :])
        # Not every byte decides whether it can be read: whether it is right, its digest says.
        try:
            unpack(path, tmp_path / f"out{place}")
        except InvalidInputError as error:
            causes.add(type(error.__cause__))
        assert list(tmp_path.glob(".*")) == []
    assert zlib.error in causes


@pytest.mark.parametrize("name", ["a.tar.gz", "a.zip"])
def test_a_full_disk_is_not_the_fault_of_the_archive(name: str, tmp_path: Path) -> None:
    path = packed(tmp_path / name, {"pd1/x": bytes(100_000)})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            unpack(path, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not isinstance(caught.value, InvalidInputError)
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_disk_that_fills_while_downloading_is_not_the_fault_of_the_network(
    server: tuple[Path, str], tmp_path: Path
) -> None:
    folder, address = server
    path = folder / "pd1.tar.gz"
    path.write_bytes(bytes(1_000_000))
    digest = hashlib.md5(path.read_bytes()).hexdigest()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    dl_manager = manager(tmp_path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            fetch(Archive(f"{address}/pd1.tar.gz", "md5", digest), dl_manager)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list((tmp_path / "downloads").glob("*pd1*")) == []


def test_two_processes_that_unpack_at_once_both_get_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tar(tmp_path / "a.tar.gz", {"pd1/x": b"1"})
    target = tmp_path / "out"
    rename = Path.rename

    def after_another(staging: Path, to: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        unpack(path, target)
        return rename(staging, to)

    monkeypatch.setattr(Path, "rename", after_another)
    assert unpack(path, target) == target
    assert (target / "pd1/x").read_bytes() == b"1"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.tar.gz", "out"]
