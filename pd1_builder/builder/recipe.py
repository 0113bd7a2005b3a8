"""Recipe: how the records of a version are made from raw files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperbo_pipelines.curate.columns import Column
from hyperbo_pipelines.curate.elements import RawFile

from hyperbo.data.search_space import SearchSpace
from pd1_builder.version.manifest import Export

if TYPE_CHECKING:
    import apache_beam as beam


@dataclass(frozen=True)
class Recipe:
    """How the records of a version are made from raw files.

    Attributes:
      raw_files: the files whose rows become records.
      columns: columns of the records.
      search_space: the declared bounds and scalings; None if the dataset spans several spaces.
      parameters: the other options that decide the records, as JSON values; among them `objective` and
        `warping`.
      curate: for a folder, the transform of a PCollection[RawFile] that writes tables and a summary there.
      companions: files without rows that decide records too, such as official initialisations.
      kept: files that are copied into the version, by their name there, so that it can be built again from
        itself.
      licence: address of the licence of the records; empty if it is not known.
      description: what the records are, as Markdown; empty for the text of the dataset's own card.
      citation: how to cite them, as BibTeX; empty for that of the dataset's own card.
      exports: files that were added whole, and of which raw files hold the new rows only.
    """

    raw_files: tuple[RawFile, ...]
    columns: tuple[Column, ...]
    search_space: SearchSpace | None
    parameters: Mapping[str, Any]
    curate: Callable[[Path], beam.PTransform]
    companions: tuple[RawFile, ...] = ()
    kept: Mapping[str, Path] = field(default_factory=dict)
    licence: str = ""
    description: str = ""
    citation: str = ""
    exports: tuple[Export, ...] = ()

    @property
    def splits(self) -> tuple[str, ...]:
        """Splits of which the raw files have rows, sorted."""
        return tuple(sorted({file.split for file in self.raw_files if file.rows}))

    @property
    def rows(self) -> int:
        """Number of rows that the raw files hold, counted independently of the parser."""
        return sum(file.rows for file in self.raw_files)
