"""Pulling a published version: time and bytes beside other ways to fetch its files (`make bench-pull`).

A local server imitates a remote one: every answer is delayed, and every connection has a limited speed. In
each round, all ways fetch the same files into an empty folder, in turn. Ways that check nothing say so.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import http.server
import platform
import shutil
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
import rich
from fsspec.core import url_to_fs
from rich.table import Table

import pd1_builder
from pd1_builder.distribution.publish import publish
from pd1_builder.distribution.pull import pull
from pd1_builder.version.catalog import find
from pd1_builder.version.manifest import Manifest, read_manifest

_BLOCK = 64 << 10


class _FarAway(http.server.SimpleHTTPRequestHandler):
    """Serves ranges with a delay and at a limited speed."""

    protocol_version = "HTTP/1.1"
    latency = 0.0
    speed = 0.0
    sent: Counter[str]

    def do_GET(self) -> None:
        time.sleep(self.latency)
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        size = path.stat().st_size
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(size - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        self.end_headers()
        with path.open("rb") as file:
            file.seek(start)
            while block := file.read(_BLOCK):
                try:
                    self.wfile.write(block)
                except OSError:  # The client has disconnected.
                    return
                self.sent["bytes"] += len(block)
                time.sleep(len(block) / self.speed)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def far_away(folder: Path, latency: float, speed: float) -> Iterator[tuple[str, Counter[str]]]:
    """Serve a folder; yields its address and a counter of the bytes sent."""
    sent: Counter[str] = Counter()
    handler = type("Handler", (_FarAway,), {"latency": latency, "speed": speed, "sent": sent})
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(handler, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", sent
    finally:
        server.shutdown()
        server.server_close()


def by_pull(url: str, manifest: Manifest, folder: Path) -> None:
    """All files at once, resumable, checked while they arrive."""
    pull(manifest.reference, [url], data_dir=folder)


def by_requests(url: str, manifest: Manifest, folder: Path) -> None:
    """One file after another, each hashed after its download."""
    for file in manifest.files:
        path = folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with requests.get(f"{url}/{file.name}", stream=True, timeout=60) as answer, path.open("wb") as stream:
            for chunk in answer.iter_content(1 << 20):
                stream.write(chunk)
        with path.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != file.sha256:
                raise ValueError(file.name)


def by_fsspec(url: str, manifest: Manifest, folder: Path) -> None:
    """All files at once, not checked, not resumable."""
    system, _ = url_to_fs(url)
    names = [file.name for file in manifest.files]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    system.get([f"{url}/{name}" for name in names], [str(folder / name) for name in names])


def timed(way: Callable[[str, Manifest, Path], None], url: str, manifest: Manifest) -> float:
    """Seconds to fetch all files into an empty folder."""
    folder = Path(tempfile.mkdtemp())
    begun = time.perf_counter()
    way(url, manifest, folder)
    seconds = time.perf_counter() - begun
    shutil.rmtree(folder)
    return seconds


class _BrokenOffError(Exception):
    """Interrupts a pull."""


def broken_off(url: str, reference: str, folder: Path, share: float) -> None:
    """Pull until a share of the bytes has arrived."""

    def end(done: int, total: int) -> None:
        if done > share * total:
            raise _BrokenOffError

    try:
        pull(reference, [url], data_dir=folder, on_progress=end)
    except _BrokenOffError:
        return
    raise RuntimeError("the pull was not broken off")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", default="pd1/mini:2.0.0")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds before an answer")
    parser.add_argument("--speed", type=float, default=10e6, help="bytes a second of a connection")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        own, place = Path(scratch) / "own", Path(scratch) / "place"
        dataset, _, version = options.reference.partition(":")
        pd1_builder.build(dataset, version, data_dir=own)
        publish(options.reference, place, data_dir=own)
        manifest = read_manifest(find(options.reference, own).folder)
        with far_away(place, options.latency, options.speed) as (url, sent):
            _compare(options, manifest, url)
            _resume(options, url, sent, Path(scratch))


def _compare(options: argparse.Namespace, manifest: Manifest, url: str) -> None:
    ways = {
        "pull": functools.partial(by_pull, url),
        "requests, then sha256": functools.partial(
            by_requests, f"{url}/{manifest.dataset}/{manifest.version}"
        ),
        "fsspec get, unchecked": functools.partial(by_fsspec, f"{url}/{manifest.dataset}/{manifest.version}"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            seconds[name].append(timed(lambda _, m, f, way=way: way(m, f), url, manifest))
    size = sum(file.size for file in manifest.files)
    table = Table("way", "median s", "range", "ratio to pull, median of rounds")
    for name, values in seconds.items():
        ratios = [value / own for value, own in zip(values, seconds["pull"], strict=True)]
        spread = f"{min(values):.2f} to {max(values):.2f}"
        table.add_row(name, f"{statistics.median(values):.2f}", spread, f"{statistics.median(ratios):.2f}")
    rich.print(f"{manifest.reference}, {size} bytes in {len(manifest.files)} files, {options.rounds} rounds;")
    rich.print(
        f"{options.latency} s before an answer, {options.speed:g} bytes a second each; {platform.platform()}"
    )
    rich.print(table)


def _resume(options: argparse.Namespace, url: str, sent: Counter[str], scratch: Path) -> None:
    table = Table("broken off at", "bytes until then", "s to go on", "bytes to go on")
    for share in (0.0, 0.25, 0.5, 0.9):
        folder = scratch / f"resumed-{share}"
        sent.clear()
        if share:
            broken_off(url, options.reference, folder, share)
        time.sleep(0.1)  # Bytes on their way count as sent before the interruption.
        before = sent["bytes"]
        sent.clear()
        begun = time.perf_counter()
        pull(options.reference, [url], data_dir=folder)
        table.add_row(f"{share:.0%}", str(before), f"{time.perf_counter() - begun:.2f}", str(sent["bytes"]))
    rich.print(table)


if __name__ == "__main__":
    main()
