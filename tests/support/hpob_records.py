"""Records of HPO-B's layout, by formula, with the initialisations of their runs: for tests only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from version_folders import record

ROWS = 8
# Positions of the rows of each test task in its two initialisations.
BEGINNINGS = {"s-4": {"test0": (5, 2), "test1": (1, 0)}, "s-5": {"test0": (3, 7), "test1": (2, 3)}}


def hpob_records(
    tasks: Sequence[str], named: Mapping[str, Mapping[str, Sequence[int]]] | None = None
) -> list[dict[str, Any]]:
    """Eight rows of every task, its value rising by 0.1 from row to row."""
    return [
        record(
            task,
            f"{task}/{row}",
            a=row / 8,
            value=row / 10 + int(task[-1]) / 100,
            task_dataset=task[2:],
            initialisations=[
                f"{name}:{rows.index(row)}"
                for name, rows in (named or {}).get(task, {}).items()
                if row in rows
            ],
        )
        for task in tasks
        for row in range(ROWS)
    ]
