"""Histories that other tuning tools recorded: read, brought into one form, and described by a space file."""

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from hyperbo_pipelines.histories.columns import draft_of_rows
    from hyperbo_pipelines.histories.detect import is_rows, read_histories
    from hyperbo_pipelines.histories.table import Options, Table, make_table
    from hyperbo_pipelines.histories.tried import tried
    from hyperbo_pipelines.histories.write import SPACE_FILE, write_rows, write_space_file

__all__ = [
    "SPACE_FILE",
    "Options",
    "Table",
    "draft_of_rows",
    "is_rows",
    "make_table",
    "read_histories",
    "tried",
    "write_rows",
    "write_space_file",
]
# Imported when they are used: they need the extra `build`.
__getattr__, __dir__ = attach(
    __name__,
    {
        "columns": ["draft_of_rows"],
        "detect": ["is_rows", "read_histories"],
        "table": ["Options", "Table", "make_table"],
        "tried": ["tried"],
        "write": ["SPACE_FILE", "write_rows", "write_space_file"],
    },
)
