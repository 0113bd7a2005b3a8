"""The records of a version as Arrow tables, read from its Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hyperbo.errors import InvalidInputError, VersionConflictError
from pd1_builder.read.preparations import Preparation
from pd1_builder.version.advice import data_option
from pd1_builder.version.manifest import Manifest


def require_columns(files: Mapping[str, Path], manifest: Manifest, preparation: Preparation) -> None:
    """Check that the files have the columns that a preparation needs.

    Raises:
      InvalidInputError: they do not.
      VersionConflictError: a file is damaged.
    """
    for path in files.values():
        with _explaining_damage(path):
            missing = set(preparation.columns()) - {"split", *pq.read_schema(path).names}
        if missing:
            raise InvalidInputError(
                f"the preparation {preparation.name!r} needs the columns {', '.join(sorted(missing))}",
                where=manifest.reference,
                fix="load a config that has them, or choose another preparation",
            )


@contextmanager
def _explaining_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        reference = f"{path.parents[2].name}/{path.parents[1].name}:{path.parent.name}"
        verify = f"hyperbo data verify {reference} {data_option(path.parents[3])}"
        raise VersionConflictError(f"{path} is damaged ({error}); {verify} tells more") from error


def read_records(files: Mapping[str, Path], columns: Sequence[str] | None = None) -> pa.Table:
    """The records of all splits, with the column `split` and all or some of the stored columns.

    A number that is missing is null, or NaN in a version of an earlier release.
    """
    tables = []
    for split, path in files.items():
        with _explaining_damage(path):
            table = pq.read_table(path, columns=columns)
        label = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(table), np.int8)), pa.array([split]))
        tables.append(table.add_column(0, "split", label.cast(pa.string())))
    return pa.concat_tables(tables)
