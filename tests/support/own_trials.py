"""A version of somebody's own trials, whose names hold what means something elsewhere: for tests only."""

from __future__ import annotations

import json
from pathlib import Path

from trial_files import SPACE, row, write_lines

import pd1_builder

# To Markdown, to YAML, to HTML, to a terminal.
ODD_METRICS = ("a|b`c\\", "--- #: x", "<b>_x_ 100% ☃", "new\nline")
RAW_NAME = "o|w[n].jsonl"


def build_own_trials(data_dir: Path) -> Path:
    """Build trials/own:1.0.0, of 3 records, in a data folder, and return that."""
    values = dict.fromkeys(ODD_METRICS, 0.5)
    rows = [row("a", **values), row("b", **values), row("c", status="diverged", loss=None, **values)]
    space = data_dir / "space.toml"
    metrics = ", ".join(map(json.dumps, ("test", *ODD_METRICS)))
    space.write_text(SPACE.replace('"test"', metrics), encoding="utf-8")
    pd1_builder.add("own", [write_lines(data_dir / RAW_NAME, rows)], space, data_dir=data_dir)
    return data_dir
