"""A worker process of Beam that does not log its steps; errors are raised all the same."""

from __future__ import annotations

import logging
import sys


def main() -> None:
    """Run the worker that Beam's direct runner asks for."""
    logging.disable(logging.WARNING)
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
