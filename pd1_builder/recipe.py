"""Recipe: what makes the records of a dataset from its raw files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperbo.search_space import SearchSpace
from pipelines.columns import Column
from pipelines.records import RawFile

if TYPE_CHECKING:
    import apache_beam as beam


@dataclass(frozen=True)
class Recipe:
    """What makes the records of a dataset from its raw files.

    Attributes:
      raw_files: the files whose rows become records.
      columns: of the records.
      search_space: the declared bounds and scalings; None where a dataset spans several spaces.
      parameters: the other options that decide the records, plain JSON; `objective` and `warping` among them.
      curate: given a folder, the transform PCollection[RawFile] -> tables and summary in that folder.
      companions: files that decide records beside them, such as official initialisations.
      kept: files copied into the version, by name there, so that it can be built again from itself.
      licence: address of the licence of the records; empty where it is not known.
      description: what the records are, as Markdown; empty for what the dataset's own card says.
      citation: how to cite them, as BibTeX; empty for what the dataset's own card says.
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

    @property
    def splits(self) -> tuple[str, ...]:
        """Splits that the raw files have rows of, sorted."""
        return tuple(sorted({file.split for file in self.raw_files if file.rows}))

    @property
    def rows(self) -> int:
        """Number of rows that the raw files hold, counted independently of the parser."""
        return sum(file.rows for file in self.raw_files)
