"""The universal prior: fit it, and measure it on spaces that it was not fitted to.

python -m benchmarks.universal fit --data DIR --out FILE
python -m benchmarks.universal compare --data DIR --out FOLDER [--seeds 3] [--spaces NAME ...]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.universal import compare, fit, known


def main() -> None:
    """Read the command line, and do it."""
    parser = argparse.ArgumentParser(prog="benchmarks.universal", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for module in (fit, compare, known):
        command = commands.add_parser(module.__name__.rpartition(".")[2])
        command.add_argument("--data", type=Path, required=True, help="folder of dataset versions")
        command.add_argument("--out", type=Path, required=True)
        module.options(command)
        command.set_defaults(run=module.run)
    given = parser.parse_args()
    given.run(given)


if __name__ == "__main__":
    main()
