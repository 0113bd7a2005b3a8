"""Writing a table of trials: one file of JSON lines for each task, and a space file."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from hyperbo_pipelines.histories.table import PARAMETER, Table
from hyperbo_pipelines.trials.description import TrialsDescription

SPACE_FILE = "space.toml"
_LONGEST = 80


def write_rows(table: Table, folder: Path, description: TrialsDescription) -> list[Path]:
    """Write the rows of each task to a file, whose name has the task, the tools and a digest of its content.

    The same trials make the same files, byte for byte, whenever they are read.

    Args:
      table: the rows.
      folder: where the files are written.
      description: the space file. A column that it does not name is left out, unless it is a hyperparameter,
        and one that is missing is null.

    Returns:
      The files, in the order of the tasks.
    """
    tools = _safe("+".join(table.tools)).lower()
    named = {*description.columns, *description.ignore}
    missing = dict.fromkeys(description.columns)
    paths = []
    for task, rows in table.rows.items():
        lines = []
        for row in rows:
            # A hyperparameter that the space file does not know must not vanish: it is an error later.
            known = {name: row[name] for name in row if name in named or name.startswith(PARAMETER)}
            lines.append(json.dumps(missing | known, sort_keys=True) + "\n")
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
