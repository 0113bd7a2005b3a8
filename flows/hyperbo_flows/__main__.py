"""Starts the command `hyperbo`: also where it is interrupted at once, or does not fit its environment."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any


def main() -> None:
    """Run the command. While its code is imported, Ctrl-C ends it with code 130, and without a traceback."""
    # A shell starts a job in the background with interrupts ignored, and they stay so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    try:
        from hyperbo_flows.cli.main import app
    except ImportError as error:
        print(f"hyperbo: {_reason(error)}", file=sys.stderr)
        sys.exit(1)
    app(prog_name="hyperbo")


def _stop(number: int, frame: Any) -> None:
    # Nothing has begun, or all is done: there is nothing to clean up.
    os._exit(128 + number)


def _reason(error: ImportError) -> str:
    # Of this project nothing but this file can be imported here.
    from importlib.util import find_spec

    module = error.name or ""
    if module.partition(".")[0] == "hyperbo" and (found := find_spec("hyperbo")) is not None:
        return (
            f"{found.origin} is not a file of hyperbo-priors; remove what installed it, such as the "
            "distribution hyperbo (pip uninstall hyperbo), and install hyperbo-priors again"
        )
    if module and find_spec(module.partition(".")[0]) is None:
        return f"the package {module} is not installed; install hyperbo-priors again"
    return str(error)


if __name__ == "__main__":
    main()
