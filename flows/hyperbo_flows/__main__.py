"""Starts the command `hyperbo`: also where it is interrupted at once, or does not fit its environment.

It imports little, because Ctrl-C leaves a traceback until `main` has set what Ctrl-C does.
"""

import os
import signal
import sys


def main() -> None:
    """Run the command. While its code is imported, Ctrl-C ends it with code 130, and without a traceback."""
    # A shell starts a job in the background with interrupts ignored, and they stay so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    try:
        import hyperbo  # noqa: F401 - first: it refuses a Python that is too old or too new
        from hyperbo_flows.cli.main import app
    except ImportError as error:
        print(f"hyperbo: {_reason(error)}", file=sys.stderr)
        sys.exit(1)
    app(prog_name="hyperbo")


def _stop(number: int, frame: object) -> None:
    # Nothing has begun, or all is done: there is nothing to clean up.
    os._exit(128 + number)


def _reason(error: ImportError) -> str:
    # Nothing of this project can be imported here.
    from importlib.util import find_spec

    package = (error.name or "").partition(".")[0]
    found = find_spec(package) if package else None
    if package == "hyperbo" and found is not None:
        return (
            f"{found.origin} is not a file of hyperbo-priors; remove what installed it, such as the "
            "distribution hyperbo (pip uninstall hyperbo), and install hyperbo-priors again"
        )
    if package and found is None:
        return f"the package {package} is not installed; install hyperbo-priors again"
    return str(error)


if __name__ == "__main__":
    main()
