"""Sources on real file systems: a folder, memory, and a web server on loopback."""

from __future__ import annotations

import functools
import http.server
import io
import tarfile
import threading

import fsspec
import pytest
from hyperbo_flows.service.sources import SourceState, fetched, fetched_archive, listing

from hyperbo.errors import InvalidInputError, NotAvailableError


@pytest.fixture
def web(tmp_path):
    """A folder, and its address on a web server."""
    folder = tmp_path / "web"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def archive(path, content):
    with tarfile.open(path, "w:gz") as file:
        member = tarfile.TarInfo("pd1/a.jsonl")
        member.size = len(content)
        file.addfile(member, io.BytesIO(content))


def test_a_folder_is_listed_without_what_is_not_finished(tmp_path):
    for name in ("b.csv", "a.csv", ".hidden.csv", "c.csv.tmp", "d.part"):
        (tmp_path / name).write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "deep.csv").write_text("x")
    assert [file.name for file in listing(str(tmp_path))] == ["a.csv", "b.csv"]
    first = listing(str(tmp_path))[0]
    assert (first.size, fetched(first, tmp_path / "copies")) == (1, tmp_path / "a.csv")
    assert not (tmp_path / "copies").exists()


def test_a_file_elsewhere_is_copied(tmp_path):
    system = fsspec.filesystem("memory")
    system.pipe("/inbox/a.csv", b"task,loss\n")
    (file,) = listing("memory://inbox")
    assert fetched(file, tmp_path).read_bytes() == b"task,loss\n"
    system.pipe("/inbox/a.csv", b"task,loss,more\n")
    with pytest.raises(InvalidInputError, match="changed while it was read"):
        fetched(file, tmp_path)
    system.rm("/inbox", recursive=True)


def test_an_object_store_has_no_empty_folders():
    assert listing("memory://nothing-yet") == ()


def test_a_folder_of_files_behind_a_web_server(tmp_path, web):
    folder, address = web
    (folder / "release").mkdir()
    (folder / "release" / "a.jsonl").write_bytes(b"{}\n")
    (file,) = listing(f"{address}/release/")
    assert (file.name, file.size) == ("a.jsonl", 3)
    assert fetched(file, tmp_path / "copies").read_bytes() == b"{}\n"


def test_what_is_not_there(tmp_path):
    with pytest.raises(NotAvailableError, match="is not there; make the folder"):
        listing(str(tmp_path / "absent"))
    with pytest.raises(NotAvailableError, match="cannot be read"):
        listing("nothing-of-the-kind://here")
    with pytest.raises(NotAvailableError, match=r"127\.0\.0\.1:1"):
        listing("http://127.0.0.1:1/archive.tar.gz")


def test_an_archive_of_a_web_server_is_fetched_once_for_each_content(tmp_path, web):
    folder, address = web
    archive(folder / "pd1.tar.gz", b"{}\n")
    url, downloads = f"{address}/pd1.tar.gz", tmp_path / "downloads"
    (before,) = listing(url)
    assert (before.name, before.size) == ("pd1.tar.gz", (folder / "pd1.tar.gz").stat().st_size)
    first = fetched_archive(before, downloads)
    assert (first / "pd1" / "a.jsonl").read_bytes() == b"{}\n"
    archive(folder / "pd1.tar.gz", b'{"more": 1}\n' * 50)
    (after,) = listing(url)
    assert after != before
    second = fetched_archive(after, downloads)
    assert (first != second, len(list(downloads.iterdir()))) == (True, 2)


def test_the_state_of_a_source_is_that_of_all_its_files_and_of_the_version(tmp_path):
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "a.csv").write_text("x")
    state, files = SourceState(tmp_path / "runs", "trials/own", "limits"), listing(str(tmp_path / "inbox"))
    assert not state.holds(files, "1.0.0")
    state.record(files, "1.0.0")
    again = SourceState(tmp_path / "runs", "trials/own", "limits")
    assert again.holds(files, "1.0.0")
    assert not again.holds(files, "1.1.0")
    # A limit that was raised lets refused files be tried again.
    assert not SourceState(tmp_path / "runs", "trials/own", "other limits").holds(files, "1.0.0")
    (tmp_path / "inbox" / "a.csv").write_text("longer")
    assert not again.holds(listing(str(tmp_path / "inbox")), "1.0.0")
    (tmp_path / "runs/sources/trials-own.json").write_bytes(b"\xff")
    assert not again.holds(files, "1.0.0")
