"""A benchmark's result as a record: what it printed, and on what machine."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import rich
from rich.table import Table

# What may decide a time; those that are not installed are left out.
LIBRARIES = ("jax", "numpy", "optuna", "apache-beam", "pandas", "torch", "gpytorch", "botorch")

Show = Callable[[str | Table], None]


def add_record_option(parser: argparse.ArgumentParser) -> None:
    """Give a benchmark the option `--record`."""
    parser.add_argument("--record", type=Path, help="also write the result to this file, as JSON")


@contextmanager
def recorded(title: str, path: Path | None) -> Iterator[Show]:
    """Print what a benchmark shows, and write it to a record at the end, if a path is given.

    A benchmark that fails leaves no record.

    Args:
      title: of the benchmark.
      path: of the record, or None.
    """
    conditions = _conditions()
    said: list[str] = []
    tables: list[dict[str, object]] = []

    def show(what: str | Table) -> None:
        rich.print(what)
        if isinstance(what, Table):
            tables.append(plain_table(what))
        else:
            said.append(what)

    yield show
    if path is not None:
        conditions["load_at_end"] = round(os.getloadavg()[0], 1)
        record = {"title": title, **conditions, "said": said, "tables": tables}
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def plain_table(table: Table) -> dict[str, object]:
    """Title, columns and rows of a table, as texts."""
    cells = [[str(cell) for cell in column.cells] for column in table.columns]
    return {
        "title": str(table.title or ""),
        "columns": [str(column.header) for column in table.columns],
        "rows": [list(row) for row in zip(*cells, strict=True)],
    }


def _conditions() -> dict[str, object]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    used = len(os.sched_getaffinity(0))
    return {
        "command": _command(),
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {used} of {os.cpu_count()} cores used, {memory:.0f} GB of memory",
        "load_at_start": round(os.getloadavg()[0], 1),
        "versions": {"python": platform.python_version(), **_versions()},
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _command() -> str:
    """The command line, without the record's own option."""
    words = sys.orig_argv[1:]
    if "--record" in words:
        place = words.index("--record")
        words = words[:place] + words[place + 2 :]
    return " ".join(["python", *words])
