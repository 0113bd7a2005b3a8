"""How a command ends early: by Ctrl-C, by a request to terminate, or with its embedded Prefect server.

Finished work is on disk at every moment, so that ending is never late; what takes long are libraries that
swallow an interrupt, or try for minutes to tell a server that has ended too.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prefect.server.api.server import SubprocessASGIServer

_SECONDS_TO_END = 10.0
_GOES_ON = "the same command goes on with what is finished"


@contextmanager
def interruptible() -> Iterator[None]:
    """End the process as Ctrl-C or a request to terminate asks, whatever libraries make of it.

    What they take for an error ends it with the exit code of the signal; what they swallow or wait over ends
    it some seconds later.

    Raises:
      SystemExit: 130 after Ctrl-C, 143 after a request to terminate.
    """
    received: list[int] = []

    def stop(number: int, frame: object) -> None:
        if not received:
            print(f"interrupted; {_GOES_ON}", file=sys.stderr, flush=True)
            last_resort = threading.Timer(_SECONDS_TO_END, _end_at_once, (128 + number,))
            last_resort.daemon = True
            last_resort.start()
        received.append(number)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except BaseException as error:
        if not received and _was_terminated(error):
            received.append(signal.SIGTERM)
        if received:
            raise SystemExit(128 + received[0]) from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def follow(server: SubprocessASGIServer) -> None:
    """End this process some seconds after its embedded server, unless it ends by itself.

    A request to terminate that reaches both leaves Prefect talking to nobody.
    """
    process = server.server_process
    assert process is not None

    def wait() -> None:
        process.wait()
        time.sleep(_SECONDS_TO_END)
        # Stopped on purpose, it is no longer the server's process.
        if server.server_process is process:
            print(f"hyperbo: the embedded Prefect server has ended; {_GOES_ON}", file=sys.stderr, flush=True)
            os._exit(128 + signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def _end_at_once(code: int) -> None:
    if "prefect.server.api.server" in sys.modules:
        from prefect.server.api.server import SubprocessASGIServer

        SubprocessASGIServer().stop()  # the one that runs
    os._exit(code)


def _was_terminated(error: BaseException | None) -> bool:
    # Inside a flow, Prefect's own handler stands in place of ours and raises this.
    if "prefect.exceptions" not in sys.modules:
        return False
    from prefect.exceptions import TerminationSignal

    while error is not None:
        if isinstance(error, TerminationSignal):
            return True
        error = error.__cause__ or error.__context__
    return False
