"""A web server of a folder that fails as it is told to, and counts what it was asked for: for tests only."""

from __future__ import annotations

import gzip
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

_PIECE = 16 << 10
# No test may read so much: what is without an end has one here, or a failing test would fill the disk.
_ENDLESS = 256 << 20
_SECONDS_OF_DRIP = 0.05


@dataclass(frozen=True)
class Fault:
    """What goes wrong with a file.

    Attributes:
      kind: what; see `_FaultyHandler`.
      at: offset in the file at which it goes wrong.
      times: requests that meet it; None for all.
      status: of the answer.
      reason: beside it; None for the usual one.
      headers: of the answer, beside the usual ones.
      content: served in the file's stead; None for its own.
    """

    kind: Literal[
        "close",
        "reset",
        "stall",
        "truncate",
        "wrong",
        "content",
        "status",
        "endless",
        "continue",
        "headers",
        "trailers",
        "drip",
        "gzip",
        "range",
        "garbage",
    ]
    at: int = 0
    times: int | None = None
    status: int = 200
    reason: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None


class Request(NamedTuple):
    """A request: path relative to the folder, and the headers that tests look at."""

    path: str
    range: str | None
    authorization: str | None
    seconds: float


class FaultyServer:
    """Serves a folder on loopback while its block runs.

    Args:
      folder: what is served.
      faults: by path, those that a request meets, the first that is not used up.
      ranges: whether parts of files are served.
      rate: bytes a second of each connection; None for as fast as it goes.
      tls: certificate and key; None for a server without encryption.

    Attributes:
      faults: may be changed at any time.
      requests: all that came.
      sent: bytes of bodies by path.
    """

    def __init__(
        self,
        folder: Path,
        faults: Mapping[str, tuple[Fault, ...]] | None = None,
        *,
        ranges: bool = True,
        rate: float | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.folder, self.ranges, self.rate, self.tls = folder, ranges, rate, tls
        self.faults = dict(faults or {})
        self.requests: list[Request] = []
        self.sent: Counter[str] = Counter()
        self.closing = threading.Event()
        self._met: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()

    def __enter__(self) -> FaultyServer:
        owner = self

        class Handler(_FaultyHandler):
            faulty = owner

        self._server = _Server(("127.0.0.1", 0), Handler)
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"{'http' if self.tls is None else 'https'}://127.0.0.1:{self.port}"

    def ranges_asked(self, path: str) -> list[str | None]:
        """The header Range of each request for a file."""
        return [request.range for request in self.requests if request.path == path]

    def meet(self, request: Request) -> Fault | None:
        """Note a request, and use up the fault that it meets."""
        with self._lock:
            self.requests.append(request)
            for number, fault in enumerate(self.faults.get(request.path, ())):
                if fault.times is None or self._met[request.path, number] < fault.times:
                    self._met[request.path, number] += 1
                    return fault
            return None

    def count(self, path: str, size: int) -> None:
        with self._lock:
            self.sent[path] += size


class _Server(ThreadingHTTPServer):
    # Its threads are waited for at the end, so that none outlives its test.
    daemon_threads = False

    def shutdown_request(self, request: Any) -> None:
        # Without the polite end of a connection before it, a reset is one.
        self.close_request(request)


class _FaultyHandler(BaseHTTPRequestHandler):
    faulty: FaultyServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        path = unquote(self.path).lstrip("/")
        asked = self.headers.get("Range") if self.faulty.ranges else None
        fault = self.faulty.meet(
            Request(path, self.headers.get("Range"), self.headers.get("Authorization"), time.monotonic())
        )
        file = self.faulty.folder / path
        try:
            if fault and fault.kind == "status":
                self._head(fault.status, {"Content-Length": "0"} | dict(fault.headers), fault.reason)
            elif fault and fault.kind == "garbage":
                self.wfile.write(b"220 \x1b[2Jthis is no web server\r\n")
            elif fault and fault.kind == "endless":
                self._head(fault.status, fault.headers)
                self._body(path, _without_end(b"{"))
            elif fault and fault.kind == "continue":
                self._body(path, _without_end(b"HTTP/1.1 100 Continue\r\n\r\n"))
            elif fault and fault.kind == "headers":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Much: ")
                self._body(path, self._dripping())
            elif fault and fault.kind == "drip":
                self._head(200, {})
                self._body(path, self._dripping())
            elif fault and fault.kind == "trailers":
                content = file.read_bytes()
                self._head(200, {"Transfer-Encoding": "chunked"})
                self.wfile.write(b"%x\r\n%b\r\n0\r\n" % (len(content), content))
                self._body(path, _without_end(b"X-Much: more\r\n"))
            elif not file.is_file():
                self._head(404, {"Content-Length": "0"})
            else:
                self._file(path, file.read_bytes(), asked, fault)
        except OSError:
            pass  # Whoever asked has gone.
        finally:
            self.close_connection = True

    def _file(self, path: str, content: bytes, asked: str | None, fault: Fault | None) -> None:
        kind = fault.kind if fault else None
        headers = dict(fault.headers) if fault else {}
        if fault and fault.content is not None:
            content = fault.content
        if kind == "truncate":
            content = content[: fault.at] if fault else content
        elif kind == "wrong":
            content = content.translate(bytes(255 - byte for byte in range(256)))
        elif kind == "gzip":
            content, headers = gzip.compress(content, 1), {"Content-Encoding": "gzip"}
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        if asked and start >= len(content):
            self._head(416, {"Content-Length": "0", "Content-Range": f"bytes */{len(content)}"})
            return
        if asked:
            if kind == "range":
                start -= 1
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._head(206 if asked else 200, {"Content-Length": str(len(content) - start)} | headers)
        end = len(content)
        if kind in ("close", "reset", "stall") and fault:
            end = max(start, min(fault.at, end))
        self._body(path, (content[at : min(at + _PIECE, end)] for at in range(start, end, _PIECE)))
        if kind == "stall":
            self.faulty.closing.wait(10)
        elif kind == "reset":
            # What was sent has time to arrive; then the connection ends by a reset.
            self.faulty.closing.wait(0.02)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _dripping(self) -> Iterator[bytes]:
        while not self.faulty.closing.wait(_SECONDS_OF_DRIP):
            yield b"{"

    def _head(self, status: int, headers: Mapping[str, str], reason: str | None = None) -> None:
        self.send_response(status, reason)
        for name, value in ({"Connection": "close"} | dict(headers)).items():
            self.send_header(name, value)
        self.end_headers()

    def _body(self, path: str, pieces: Iterator[bytes]) -> None:
        for piece in pieces:
            if self.faulty.closing.is_set():
                return
            self.wfile.write(piece)
            self.faulty.count(path, len(piece))
            if self.faulty.rate:
                time.sleep(len(piece) / self.faulty.rate)


def _without_end(piece: bytes) -> Iterator[bytes]:
    piece *= _PIECE // len(piece)
    return repeat(piece, _ENDLESS // len(piece))
