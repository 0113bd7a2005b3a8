"""How a command ends early: by Ctrl-C, by a request to terminate, or with its embedded Prefect server.

Finished work is on disk at every moment, so the process may end at once. Some libraries swallow an interrupt,
or try for minutes to reach a server that has ended too: these are not waited for.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from prefect.server.api.server import SubprocessASGIServer

_SECONDS_TO_END = 10.0
_NOTHING_LOST = "nothing finished is lost: start the same command again"


@contextmanager
def interruptible() -> Iterator[None]:
    """End the process on Ctrl-C or a request to terminate, also where a library handles them otherwise.

    The exit code is 130 after Ctrl-C, and 143 after a request to terminate. Where a library swallows the
    signal, or waits, the process ends some seconds later.
    """
    received: list[int] = []

    def stop(number: int, frame: object) -> None:
        if not received:
            print(f"interrupted; {_NOTHING_LOST}", file=sys.stderr, flush=True)
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
            _end_at_once(128 + received[0])
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def follow(server: SubprocessASGIServer) -> None:
    """End this process some seconds after its embedded server, unless it ends by itself.

    A request to terminate may reach both; without its server, Prefect would try to reach it for minutes.
    """
    process = server.server_process
    assert process is not None

    def wait() -> None:
        process.wait()
        time.sleep(_SECONDS_TO_END)
        # A server that was stopped on purpose has no process any more.
        if server.server_process is process:
            print(
                f"hyperbo: the embedded Prefect server has ended; {_NOTHING_LOST}",
                file=sys.stderr,
                flush=True,
            )
            os._exit(128 + signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def _end_at_once(code: int) -> NoReturn:
    # XLA's threads may still compute: an ordinary exit could crash under them.
    if "prefect.server.api.server" in sys.modules:
        from prefect.server.api.server import SubprocessASGIServer

        SubprocessASGIServer().stop()  # the one that runs
    sys.stdout.flush()
    sys.stderr.flush()
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
