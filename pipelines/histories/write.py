"""Writing a table of trials: one file of JSON lines for each task, and a space file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection
from pathlib import Path

from pipelines.histories.table import Table

SPACE_FILE = "space.toml"
_LONGEST = 80


def write_rows(table: Table, folder: Path, columns: Collection[str] | None = None) -> list[Path]:
    """Write the rows of each task to a file, whose name has the task, the tools and a digest of its content.

    The same trials make the same files, byte for byte, whenever they are read.

    Args:
      table: the rows.
      folder: where the files are written.
      columns: the columns that a space file names: others are left out, but for hyperparameters, and missing
        ones are null. None: all columns of the table.

    Returns:
      The files, in the order of the tasks.
    """
    tools = _safe("+".join(table.tools)).lower()
    paths = []
    for task, rows in table.rows.items():
        lines = []
        for row in rows:
            kept = dict(row)
            if columns is not None:
                # A hyperparameter that the space file does not know must not vanish: it is an error later.
                kept = {name: row.get(name) for name in columns} | {
                    name: value for name, value in row.items() if name.startswith("parameters.")
                }
            lines.append(json.dumps(kept, ensure_ascii=False) + "\n")
        content = "".join(lines).encode("utf-8")
        digest = hashlib.sha256(content).hexdigest()[:10]
        path = folder / f"{_safe(task)}.{tools}.{digest}.jsonl"
        path.write_bytes(content)
        paths.append(path)
    return paths


def write_space_file(table: Table, folder: Path) -> Path:
    """Write the draft as a space file, and return its path."""
    path = folder / SPACE_FILE
    path.write_text(table.draft.to_toml(), encoding="utf-8")
    return path


def _safe(text: str) -> str:
    """A text as a part of a file's name.

    >>> _safe("cifar/resnet 50%"), _safe("Weights & Biases 0.31.0")
    ('cifar_resnet_50_', 'Weights_Biases_0.31.0')
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).lstrip(".")[:_LONGEST] or "_"
