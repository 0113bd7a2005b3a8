"""Space files and files of trials in three formats: for tests only."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyperbo_pipelines.trials.description import TrialsDescription
from hyperbo_pipelines.trials.space_file import read_space_file

SPACE = """
objective = "loss"
direction = "minimize"
trial_id = { column = "trial" }
status = { column = "status" }
metrics = ["test"]
curves = ["curve"]
ignore = ["note", "git_*"]

[[parameters]]
name = "rate"
column = "hp.rate"
lower = 1e-3
upper = 10.0
scaling = "log"

[[parameters]]
name = "layers"
lower = 1
upper = 8
"""


def describe(folder: Path, text: str = SPACE) -> TrialsDescription:
    """Read a space file of that text."""
    path = folder / "space.toml"
    path.write_text(text, encoding="utf-8")
    return read_space_file(path)


def row(trial: str = "a", **changes: Any) -> dict[str, Any]:
    """A good row of `SPACE`, with changes."""
    good = {
        "task": "net",
        "trial": trial,
        "status": "done",
        "loss": 0.25,
        "test": 0.5,
        "curve": [1.0, 0.25],
        "hp.rate": 0.1,
        "layers": 3,
    }
    return good | changes


def write_lines(path: Path, rows: Sequence[dict[str, Any] | bytes]) -> Path:
    """Write JSON lines; bytes as they are."""
    lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in rows]
    return write_bytes(path, b"".join(line + b"\n" for line in lines))


def write_bytes(path: Path, content: bytes) -> Path:
    """Write a file, gzipped if the name says so."""
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path
