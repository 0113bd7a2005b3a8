"""Connections to web servers that can be closed while they wait for an answer."""

from __future__ import annotations

import math
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool


class _Adapter(HTTPAdapter):
    """Remembers the connection in use, so that it can be shut down before the server has answered."""

    connection: Any = None

    def get_connection_with_tls_context(self, *args: Any, **options: Any) -> HTTPConnectionPool:
        pool = super().get_connection_with_tls_context(*args, **options)
        make: Callable[..., Any] = pool.ConnectionCls

        def make_known(**settings: Any) -> Any:
            self.connection = make(**settings)
            return self.connection

        pool.ConnectionCls = make_known  # pyright: ignore[reportAttributeAccessIssue] - all that is called of it
        return pool


class Session(requests.Session):
    """A session that does not see redirects. Otherwise requests would read their whole bodies."""

    def __init__(self) -> None:
        super().__init__()
        self._adapter = _Adapter()
        self.mount("https://", self._adapter)
        self.mount("http://", self._adapter)

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """None for every response."""
        return None

    def descriptor(self) -> int:
        """The file descriptor of the connection in use.

        Raises:
          AttributeError: there is no connection.
        """
        return self._adapter.connection.sock.fileno()


class Watchdog:
    """Shuts down a connection that brings no content of a file for too long, whatever else it brings.

    The time-out of a socket does not do this: it starts again with each byte of any kind.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._deadline, self._has_cut = seconds, math.inf, False
        self._descriptor: Callable[[], int] = lambda: -1
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watchdog", daemon=True)

    def __enter__(self) -> Watchdog:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @contextmanager
    def watching(self, descriptor: Callable[[], int]) -> Iterator[None]:
        """Watch the connection of a file descriptor while the block runs.

        Raises:
          TimeoutError: the connection was shut down.
        """
        self._descriptor, self._deadline = descriptor, time.monotonic() + self._seconds
        try:
            yield
        except Exception:
            if not self._has_cut:
                raise
        finally:
            self._deadline = math.inf
        if self._has_cut:
            raise TimeoutError(f"the server has sent no content of the file for {self._seconds:g} seconds")

    def _look(self) -> None:
        while not self._ended.wait(self._seconds / 8):
            if time.monotonic() < self._deadline:
                continue
            self._has_cut = True
            # A connection that does not exist yet is shut down at the next look.
            with (
                suppress(OSError, AttributeError, ValueError),
                socket.socket(fileno=os.dup(self._descriptor())) as connection,
            ):
                # Closed by a reset, because otherwise the server would wait until its bytes are read.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.shutdown(socket.SHUT_RDWR)
