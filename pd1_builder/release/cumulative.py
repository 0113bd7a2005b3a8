"""Cumulative exports: of files that repeat recorded rows, the new rows are kept."""

from __future__ import annotations

import shutil
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import chain
from itertools import count as numbers_from
from pathlib import Path
from typing import TYPE_CHECKING

from hyperbo_pipelines.curate.raw_files import sha256_of
from hyperbo_pipelines.trials.row_bytes import copy_rows
from hyperbo_pipelines.trials.rows import require_kind, suffix_of

from hyperbo.errors import InvalidInputError
from hyperbo.storage.printable import count
from pd1_builder.version.manifest import Export

if TYPE_CHECKING:
    from hyperbo_pipelines.trials.description import TrialsDescription
    from hyperbo_pipelines.trials.known import SortedRows


@dataclass(frozen=True)
class NewRows:
    """What new files bring.

    Attributes:
      files: files with all the new rows, to be kept under their names; a file without known rows is itself.
      exports: what became of the files that are not kept as they are.
      known: number of rows that were known and left out.
      trials: number of new rows that are trials.
      rejects: number of new rows that cannot be records.
    """

    files: tuple[Path, ...]
    exports: tuple[Export, ...]
    known: int
    trials: int
    rejects: int

    @property
    def summary(self) -> str:
        """The numbers of rows, for people."""
        rejects = f", of which {self.rejects} cannot be records" if self.rejects else ""
        return f"{count(self.known, 'row')} known, {self.trials + self.rejects} new{rejects}"


def new_rows(
    recorded: Sequence[Path], files: Sequence[Path], description: TrialsDescription, scratch: Path
) -> NewRows:
    """Find the new rows of files, and write them to files of their own where other rows are known.

    The result depends on the names and the contents of the files, not on their order.

    Args:
      recorded: the files that a version keeps.
      files: the new files.
      description: the meaning of the columns.
      scratch: an empty folder for the files of new rows.

    Raises:
      InvalidInputError: a row has the id of a recorded one and another value; or rows have no ids, and a file
        repeats a recorded one; or a file cannot be read, or changed meanwhile.
    """
    # Imported here: it needs Beam.
    from hyperbo_pipelines.trials.known import sort_rows

    for path in files:
        require_kind(path)
    digests = {path: sha256_of(path) for path in files}
    ordered = sorted(files, key=lambda path: (path.name, digests[path]))
    taken = {path.name for path in recorded}
    kept: list[Path] = []
    exports: list[Export] = []
    known = trials = rejects = 0
    for rows in sort_rows(recorded, ordered, description):
        path, new = rows.path, rows.trials + rows.rejects
        known, trials, rejects = known + rows.known, trials + rows.trials, rejects + rows.rejects
        # Without a version before it, a file without rows is an error, which is found later.
        name = _free_name(path, taken) if new or not recorded else ""
        if name:
            kept.append(_written(rows, scratch / name))
            taken.add(name)
        if rows.known or name not in ("", path.name):
            size = path.stat().st_size
            exports.append(Export(path.name, size, digests[path], rows.known, new, name))
        if sha256_of(path) != digests[path]:
            raise InvalidInputError("the file changed while it was read", where=str(path), fix="add it again")
    return NewRows(tuple(kept), tuple(exports), known, trials, rejects)


def _free_name(path: Path, taken: Container[str]) -> str:
    """The name under which a file is kept: its own, or with `~2`, `~3` and so on if that is taken."""
    suffix = suffix_of(path)
    stem = path.name.removesuffix(suffix)
    names = chain((path.name,), (f"{stem}~{number}{suffix}" for number in numbers_from(2)))
    return next(name for name in names if name not in taken)


def _written(rows: SortedRows, target: Path) -> Path:
    """A file with the new rows: the file itself where all rows are new and it keeps its name."""
    if rows.new is not None:
        copy_rows(rows.path, rows.new, target)
        return target
    if rows.path.name == target.name:
        return rows.path
    shutil.copyfile(rows.path, target)
    return target
