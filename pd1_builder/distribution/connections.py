"""Connections to web servers that can be ended while an answer is waited for."""

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
    """Knows the connection in use: one that has not answered yet could not be shut down otherwise."""

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
    """Follows no redirect: requests would read its body whole, even where it was told not to follow."""

    def __init__(self) -> None:
        super().__init__()
        self._adapter = _Adapter()
        self.mount("https://", self._adapter)
        self.mount("http://", self._adapter)

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """None, whatever the answer."""
        return None

    def descriptor(self) -> int:
        """That of the connection in use.

        Raises:
          AttributeError: there is none.
        """
        return self._adapter.connection.sock.fileno()


class Watch:
    """Shuts down a connection on which nothing of a file comes for too long, whatever else does.

    Time-outs of sockets are for a server that is silent, and start anew with each byte.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._deadline, self._has_cut = seconds, math.inf, False
        self._descriptor: Callable[[], int] = lambda: -1
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch", daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @contextmanager
    def waiting(self, descriptor: Callable[[], int]) -> Iterator[None]:
        """While its block runs, the connection of a descriptor is watched.

        Raises:
          TimeoutError: it was shut down.
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
            raise TimeoutError(f"the server sends nothing of the file for {self._seconds:g} seconds")

    def _look(self) -> None:
        while not self._ended.wait(self._seconds / 8):
            if time.monotonic() < self._deadline:
                continue
            self._has_cut = True
            # A connection that is not there yet is shut down next time.
            with (
                suppress(OSError, AttributeError, ValueError),
                socket.socket(fileno=os.dup(self._descriptor())) as connection,
            ):
                # Closed by a reset then, or the server would wait for somebody to read what it sends.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.shutdown(socket.SHUT_RDWR)
