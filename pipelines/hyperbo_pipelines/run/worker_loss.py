"""An error when a worker process dies: Beam's runner alone would wait for its answer for ever."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from apache_beam.runners.portability.fn_api_runner import worker_handlers

from hyperbo.errors import HyperBOError

# Beam's message if the data connection breaks before the control connection.
_BROKEN = "Channel closed prematurely"


def _lost() -> HyperBOError:
    return HyperBOError(
        "a worker process ended before its work was done; it was probably killed, perhaps for lack of "
        "memory. Use fewer workers, or free some memory"
    )


class _Connection(worker_handlers.ControlConnection):
    """The runner's end of a worker's control connection: when it ends, everything that waits for it fails."""

    _ended: HyperBOError | None = None

    def _read(self) -> None:
        with contextlib.suppress(Exception):  # How it broke does not matter: the worker is gone.
            super()._read()
        # If the connection was closed on purpose, nothing waits any more.
        self._ended = _lost()
        self.abort(self._ended)

    def push(self, req: Any) -> Any:
        future = super().push(req)
        if self._ended is not None and future is not None:
            future.abort(self._ended)
        return future


@contextlib.contextmanager
def noticing_lost_workers() -> Iterator[None]:
    """A context in which a worker that dies is an error at once.

    Raises:
      HyperBOError: a worker ended before its work was done.
    """
    before, worker_handlers.ControlConnection = worker_handlers.ControlConnection, _Connection
    try:
        yield
    except RuntimeError as error:
        if _BROKEN in str(error):
            raise _lost() from error
        raise
    finally:
        worker_handlers.ControlConnection = before
