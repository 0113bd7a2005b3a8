"""Noticing workers that die: by itself, Beam's runner waits for their answer for ever."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from apache_beam.runners.portability.fn_api_runner import worker_handlers

from hyperbo.errors import HyperBOError

# What the runner says where the line of data breaks before the line of control.
_BROKEN = "Channel closed prematurely"


def _lost() -> HyperBOError:
    return HyperBOError(
        "a worker process ended before its work was done: was it killed, for want of memory perhaps? "
        "Use fewer workers, or free some memory"
    )


class _Connection(worker_handlers.ControlConnection):
    """The runner's end of a worker's line of control: when the line ends, so does all that waits for it."""

    _ended: HyperBOError | None = None

    def _read(self) -> None:
        with contextlib.suppress(Exception):  # How the line broke is no help: the worker is gone.
            super()._read()
        # Where the line was closed on purpose, nothing waits any more.
        self._ended = _lost()
        self.abort(self._ended)

    def push(self, req: Any) -> Any:
        future = super().push(req)
        if self._ended is not None and future is not None:
            future.abort(self._ended)
        return future


@contextlib.contextmanager
def noticing_lost_workers() -> Iterator[None]:
    """Run pipelines in which a dead worker is an error at once.

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
