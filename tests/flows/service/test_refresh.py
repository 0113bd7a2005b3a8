"""Refresh from sources that are elsewhere: an object store, a web server that fails, or is not there."""

from __future__ import annotations

import collections
import contextlib
import functools
import http.server
import threading

import pytest
from hyperbo_flows.service import refresh as refresh_module
from hyperbo_flows.service.intake import newest, take_in, terms
from hyperbo_flows.service.refresh import refresh
from hyperbo_flows.service.settings import read_service
from hyperbo_flows.service.sources import SourceState, listing
from object_stores import object_store
from synthetic_pd1 import rows, write
from unattended import ARCHIVE, drop, write_service

from hyperbo.errors import NotAvailableError, UnreachableError

pytestmark = pytest.mark.usefixtures("prefect_server")


@pytest.fixture(autouse=True)
def told(monkeypatch):
    """Events that the flows send; and attempts that follow each other at once."""
    sent = []
    monkeypatch.setattr(
        "hyperbo_flows.service.events.emit_event",
        lambda event, resource, payload: sent.append((event, payload["version"])),
    )
    for name in ("look", "fetch", "publish"):
        patient = getattr(refresh_module, name)
        monkeypatch.setattr(refresh_module, name, patient.with_options(retry_delay_seconds=0.01))
    return sent


@pytest.fixture
def bucket():
    """A bucket of an object store that speaks S3, which the environment names."""
    with object_store() as store:
        store.mkdir("trials")
        yield store


@pytest.mark.slow
def test_a_file_in_an_object_store_becomes_a_version(tmp_path, bucket, told, capsys):
    path = write_service(tmp_path)
    drop(tmp_path, "first.csv", 0, 10)
    take_in(read_service(path), (), listing(read_service(path).source.inbox))
    path.write_text(path.read_text().replace('"inbox"', '"s3://trials/inbox"'))
    bucket.put(str(tmp_path / "inbox/first.csv"), "trials/inbox/first.csv")
    drop(tmp_path, "second.csv", 10, 20)
    bucket.put(str(tmp_path / "inbox/second.csv"), "trials/inbox/second.csv")
    assert refresh(str(path)) == "1.1.0"
    manifest = newest(read_service(path))
    assert {file.name for file in manifest.raw_files} == {"first.csv", "second.csv", "space.toml"}
    assert refresh(str(path)) == "1.1.0"
    assert "nothing new since 1.1.0" in capsys.readouterr().out
    assert set(told) == {("dataset.published", "1.1.0")}


@contextlib.contextmanager
def web(folder, failures):
    """A web server that cannot send a file that ends in .csv so many times."""
    asked = collections.Counter()

    class Failing(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            asked[self.path] += 1
            if self.path.endswith(".csv") and asked[self.path] <= failures:
                self.send_error(503)
            else:
                super().do_GET()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Failing, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(("failures", "version", "attempts"), [(2, "1.0.0", 3), (9, "", 4)])
def test_a_file_that_cannot_be_read_is_asked_for_again(tmp_path, failures, version, attempts, capsys):
    path = write_service(tmp_path)
    drop(tmp_path, "first.csv", 0, 10)
    with web(tmp_path, failures) as (address, asked):
        path.write_text(path.read_text().replace('"inbox"', f'"{address}/inbox/"'))
        assert refresh(str(path)) == version
    assert asked["/inbox/first.csv"] == attempts
    # What cannot be read now is left for the next time, and refused by nobody.
    assert ("first.csv left for later" in capsys.readouterr().out) == (not version)
    assert not (tmp_path / "runs/refusal").exists()


@pytest.mark.slow
def test_an_archive_that_cannot_be_reached_does_not_hold_up_the_inbox(tmp_path, told, capsys):
    for name in ("raw", "inbox"):
        (tmp_path / name).mkdir()
    write(tmp_path / "raw", "pd1_matched_phase1_results.jsonl", rows("matched", 1, inputs=4))
    write(tmp_path / "raw", "pd1_unmatched_phase1_results.jsonl", rows("unmatched", 1, inputs=3))
    path = tmp_path / "service.toml"
    path.write_text(ARCHIVE)
    assert refresh(str(path)) == "1.0.0"
    write(tmp_path / "inbox", "pd1_unmatched_phase1_results-more.jsonl", rows("more", 1, inputs=2))
    path.write_text(ARCHIVE.replace('"raw"', '"http://127.0.0.1:1/pd1.tar.gz"'))
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1"):
        refresh(str(path))
    assert "pd1/release_without_curves:1.1.0; the newest is 1.1.0" in capsys.readouterr().out
    assert newest(read_service(path)).version == "1.1.0"
    assert told[-1] == ("dataset.published", "1.1.0")
    # The archive was not seen: it is looked at again, and so is not remembered as what the version holds.
    of = read_service(path)
    state = SourceState(of.design.runs, f"{of.dataset}-archive", terms(of))
    assert not state.holds((), "1.1.0")


def test_a_fault_that_does_not_pass_is_met_once(tmp_path, monkeypatch):
    path = write_service(tmp_path)
    (tmp_path / "inbox").rmdir()
    asked = []
    monkeypatch.setattr(refresh_module, "listing", lambda url: asked.append(url) or listing(url))
    with pytest.raises(NotAvailableError, match="is not there; make the folder"):
        refresh(str(path))
    assert len(asked) == 1
