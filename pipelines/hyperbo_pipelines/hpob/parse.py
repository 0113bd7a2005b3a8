"""ParseHpob: files of HPO-B become tables of curated records and rejects."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float64

from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.build import with_rejects
from hyperbo_pipelines.curate.columns import MOST_DUPLICATES, schema
from hyperbo_pipelines.curate.elements import RawFile, Reject
from hyperbo_pipelines.hpob.layout import DESCRIPTORS, METRIC, SPLIT, SpaceDescription, mixed_columns
from hyperbo_pipelines.hpob.raw_files import Initialisations
from hyperbo_pipelines.hpob.stream import RawDataset, Rows, read_datasets

TABLE_ROWS = 8192


class ParseHpob(beam.PTransform):
    """PCollection[RawFile] -> (PCollection[pa.Table], PCollection[Reject]).

    A table has at most `TABLE_ROWS` rows of one dataset. Its columns are `split` and those of
    `SpaceDescription.layout`, or `mixed_columns` if all search spaces are read. Rows are numbered from 0, as
    in the initialisations.

    Args:
      descriptions: the search spaces, by id.
      initialisations: the official initialisations.
      search_space: the search space to read; None for all.
    """

    def __init__(
        self,
        descriptions: Mapping[str, SpaceDescription],
        initialisations: Initialisations,
        search_space: str | None = None,
    ) -> None:
        super().__init__()
        if search_space is not None and search_space not in descriptions:
            raise InvalidInputError(
                f"search space {search_space} is not described",
                where=DESCRIPTORS,
                fix=f"use one of {', '.join(sorted(descriptions))}",
            )
        self._arguments = (dict(descriptions), initialisations, search_space)

    def expand(self, input_or_inputs: Any) -> Any:
        """Read each file as a stream; one worker reads a file."""
        return with_rejects(input_or_inputs, "ParseFile", _parse_file, *self._arguments)


def _parse_file(
    file: RawFile,
    descriptions: Mapping[str, SpaceDescription],
    initialisations: Initialisations,
    search_space: str | None,
) -> Iterator[pa.Table | Reject]:
    for raw in read_datasets(file.path, search_space):
        begins = initialisations.get(raw.search_space, {}).get(raw.dataset, {})
        space, mixed = descriptions[raw.search_space], search_space is None
        yield from curate_dataset(raw, file, space, begins, mixed=mixed)


class _ValidRows(NamedTuple):
    """The valid rows of a dataset, and the reasons why the others are not valid."""

    numbers: np.ndarray
    x: Float64[np.ndarray, "n d"]
    y: Float64[np.ndarray, " n"]
    reasons: dict[int, str]


def curate_dataset(
    raw: RawDataset,
    file: RawFile,
    description: SpaceDescription,
    initialisations: Mapping[str, tuple[int, ...]],
    *,
    mixed: bool,
) -> Iterator[pa.Table | Reject]:
    """Make the rejects and then the records of one dataset of a file, in the order of its rows.

    `initialisations` are the official ones of the dataset, by name. If `mixed` is set, the records are for a
    dataset of several search spaces (`mixed_columns`).

    Raises:
      InvalidInputError: no row of X has as many entries as the search space has variables.
    """
    place = f"{file.path.name}#{raw.search_space}/{raw.dataset}"
    task = f"{raw.search_space}-{raw.dataset}"
    valid = _valid_rows(raw, description, place)
    begins: dict[int, list[str]] = {}
    for name, rows in sorted(initialisations.items()):
        for position, row in enumerate(rows):
            begins.setdefault(row, []).append(f"{name}:{position}")
    for row, reason in sorted(valid.reasons.items()):
        lost = f"; the row is {', '.join(begins[row])} of the initialisations" if row in begins else ""
        yield Reject(place, row, reason + lost)
    input_ids = _input_ids(valid.x)
    trial_ids = [f"{task}/{row:07d}" for row in valid.numbers.tolist()]
    same = _groups(input_ids)
    columns = schema((SPLIT, *(mixed_columns() if mixed else description.layout.columns)))
    constants: dict[str, str | int] = {
        SPLIT.name: file.split,
        "task": task,
        "task_dataset": raw.dataset,
        "phase": 0,
        "origin": "hpob",
        "status": "done",
        "diverged": False,
        "block": "",
        "search_space": raw.search_space,
    }
    for start in range(0, len(trial_ids), TABLE_ROWS):
        part = slice(start, start + TABLE_ROWS)
        numbers, y = valid.numbers[part].tolist(), pa.array(valid.y[part])
        duplicates = [
            [trial_ids[other] for other in same.get(row, ()) if other != row][:MOST_DUPLICATES]
            for row in range(start, start + len(numbers))
        ]
        arrays: dict[str, Any] = {
            "trial_id": trial_ids[part],
            "source": [f"{place}:{row}" for row in numbers],
            "input_id": input_ids[part],
            "duplicates": duplicates,
            "initialisations": [begins.get(row, ()) for row in numbers],
            "y": y,  # Warped by the identity, as x is.
            f"metrics.{METRIC}": y,
            **_inputs(valid.x[part], None if mixed else description.search_space.names),
        }
        arrays |= {
            name: pa.repeat(pa.scalar(value, columns.field(name).type), len(numbers))
            for name, value in constants.items()
            if name in columns.names
        }
        yield pa.Table.from_pydict(arrays, schema=columns)


def _inputs(x: Float64[np.ndarray, "n d"], names: tuple[str, ...] | None) -> dict[str, pa.Array]:
    """The columns of raw inputs and of inputs in [0, 1], which are equal; without names, columns of lists."""
    if names is None:
        offsets = pa.array(np.arange(len(x) + 1, dtype=np.int32) * x.shape[1])
        columns = {"": pa.ListArray.from_arrays(offsets, pa.array(x.ravel()))}
    else:
        columns = {
            f".{name}": pa.array(np.ascontiguousarray(x[:, column])) for column, name in enumerate(names)
        }
    return {
        f"{group}{name}": values for group in ("hyperparameters", "x") for name, values in columns.items()
    }


def _valid_rows(raw: RawDataset, description: SpaceDescription, place: str) -> _ValidRows:
    """Find the rows with one number in [0, 1] for each variable and an accuracy in [0, 1]."""
    names = [variable.name for variable in description.variables]
    x, x_whole = _matrix(raw.x, len(names))
    y, y_whole = _matrix(raw.y, 1)
    if len(x_whole) and not x_whole.any():
        raise InvalidInputError(
            f"X has rows of {raw.x.ends[0]} entries, the search space has {len(names)} variables",
            where=place,
            fix="use descriptors and data of one release",
        )
    # A comparison with NaN is false, so a NaN is not valid.
    x_right, y_right = (x >= 0) & (x <= 1), (y >= 0) & (y <= 1)
    right = x_whole & y_whole
    right[x_whole] &= x_right.all(axis=1)
    right[y_whole] &= y_right.all(axis=1)
    reasons: dict[int, str] = {}
    for row in np.flatnonzero(~right).tolist():
        reasons[row] = _reason(raw.x, row, names) or _reason(raw.y, row, [METRIC])
    numbers = np.flatnonzero(right)
    return _ValidRows(numbers, x[right[x_whole]], y[right[y_whole], 0], reasons)


def _matrix(rows: Rows, width: int) -> tuple[Float64[np.ndarray, "m width"], Bool[np.ndarray, " n"]]:
    """The rows of this width as a matrix, and a mask of these rows."""
    widths = np.diff(rows.ends, prepend=0)
    whole = widths == width
    values = rows.values if whole.all() else rows.values[np.repeat(whole, widths)]
    return values.reshape(-1, width), whole


def _reason(rows: Rows, row: int, names: list[str]) -> str:
    """The reason why a row is not valid; empty if it is."""
    start, end = (rows.ends[row - 1] if row else 0), rows.ends[row]
    if end - start != len(names):
        return f"{end - start} entries, not {len(names)}: {', '.join(names)}"
    if row in rows.wrong:
        column, value = rows.wrong[row]
        return f"{names[column]} is {repr(value)[:60]}, not a number"
    for name, value in zip(names, rows.values[start:end].tolist(), strict=True):
        if not 0 <= value <= 1:
            return f"{name} = {value!r} is outside [0, 1]"
    return ""


def _input_ids(x: Float64[np.ndarray, "n d"]) -> list[str]:
    """`SearchSpace.input_id` of every row."""
    # Adding 0.0 turns -0.0 into 0.0: they are equal, but their bytes differ.
    content = memoryview((x.astype("<f8") + 0.0).tobytes())
    size = 8 * x.shape[1]
    return [
        hashlib.sha256(content[start : start + size]).hexdigest()[:16]
        for start in range(0, len(content), size)
    ]


def _groups(input_ids: list[str]) -> dict[int, list[int]]:
    """For each row whose input occurs more than once: the first rows with this input, in order."""
    codes = pa.array(input_ids, pa.string()).dictionary_encode().indices.to_numpy()
    groups: dict[int, list[int]] = {}
    for row in np.flatnonzero(np.bincount(codes)[codes] > 1).tolist():
        groups.setdefault(int(codes[row]), []).append(row)
    return {row: rows[: MOST_DUPLICATES + 1] for rows in groups.values() for row in rows}
