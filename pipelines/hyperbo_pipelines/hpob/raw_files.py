"""Finding HPO-B's files: their hashes, row counts and the official initialisations."""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.elements import RawFile
from hyperbo_pipelines.curate.raw_files import raw_file
from hyperbo_pipelines.hpob.layout import DESCRIPTORS, read_descriptors, read_json

INITIALISATIONS_FILE = "bo-initializations.json"
SPLITS = ("train", "validation", "test")
# Row numbers to start with, in order, by search space, dataset and name of the initialisation.
Initialisations = Mapping[str, Mapping[str, Mapping[str, tuple[int, ...]]]]
# The only texts in these files are keys, which hold no brackets, so counting brackets counts rows.
_KEY = re.compile(rb'"([^"\\]*)"\s*:')
_PIECE = 1 << 20


@dataclass(frozen=True)
class HpobFiles:
    """HPO-B's files, described.

    Attributes:
      data: the files of trials, one for each split (train, validation, test).
      initialisations: `bo-initializations.json`; it holds no trials, so its number of rows is 0.
      descriptors: `meta-dataset-descriptors.json`; it holds no trials either.
    """

    data: tuple[RawFile, ...]
    initialisations: RawFile
    descriptors: RawFile


def find_hpob_files(folder: Path, search_space: str | None = None) -> HpobFiles:
    """Find HPO-B's files, read each once, and describe them.

    Rows are counted by brackets, independently of the parser. Initialisations are checked against the counts.

    Args:
      folder: holds `meta-{train,validation,test}-dataset.json[.gz]`, of which some may be absent,
        `bo-initializations.json` and `meta-dataset-descriptors.json`.
      search_space: the search space whose rows are counted; None for all.

    Raises:
      InvalidInputError: a file is absent, comes twice, or is unreadable or cut short; a dataset is in two
        splits; there are no rows; a search space is not described; an initialisation names a row that its
        dataset does not have.
    """
    if not folder.is_dir():
        raise InvalidInputError(
            "no such folder of raw files", where=str(folder), fix="give a folder that exists"
        )
    paths = {split: path for split in SPLITS if (path := _data_file(folder, split))}
    if not paths:
        raise InvalidInputError(
            "no raw file found",
            where=str(folder),
            fix="expected meta-{train,validation,test}-dataset.json, or .json.gz",
        )
    data: list[RawFile] = []
    rows: dict[tuple[str, str], int] = {}
    home: dict[tuple[str, str], str] = {}
    for split, path in paths.items():
        counts = {key: count for key, count in count_rows(path).items() if search_space in (None, key[0])}
        for key in counts:
            if key in home:
                raise InvalidInputError(
                    f"dataset {key[1]} of search space {key[0]} is in {home[key]} too",
                    where=path.name,
                    fix="keep it in one of the two",
                )
            home[key] = path.name
        rows |= counts
        data.append(raw_file(path, split, rows=sum(counts.values())))
    if not any(rows.values()):
        of_space = "" if search_space is None else f" of search space {search_space}"
        raise InvalidInputError(f"the raw files have no rows{of_space}", where=str(folder))
    initialisations = read_initialisations(folder / INITIALISATIONS_FILE)
    for (space, dataset), count in rows.items():
        for name, numbers in initialisations.get(space, {}).get(dataset, {}).items():
            if max(numbers, default=-1) >= count:
                raise InvalidInputError(
                    f"names the row {max(numbers)} of a dataset of {count} rows, counted from 0",
                    where=f"{INITIALISATIONS_FILE}#{space}/{dataset}/{name}",
                    fix="use initialisations and data of one release",
                )
    undescribed = sorted({space for space, _ in rows} - set(read_descriptors(folder)))
    if undescribed:
        raise InvalidInputError(
            f"search spaces {', '.join(undescribed)} are not described",
            where=DESCRIPTORS,
            fix="use descriptors and data of one release",
        )
    return HpobFiles(tuple(data), raw_file(folder / INITIALISATIONS_FILE), raw_file(folder / DESCRIPTORS))


def _data_file(folder: Path, split: str) -> Path | None:
    plain = folder / f"meta-{split}-dataset.json"
    found = [path for path in (plain, plain.with_name(f"{plain.name}.gz")) if path.exists()]
    if len(found) > 1:
        raise InvalidInputError(
            f"the same trials come twice, as {found[0].name} and {found[1].name}",
            where=str(folder),
            fix="remove one of the two",
        )
    return found[0] if found else None


def read_initialisations(path: Path) -> Initialisations:
    """Read the official initialisations: rows of each dataset that an optimisation starts with.

    The file may name datasets that are not there: all versions of HPO-B share it.

    Raises:
      InvalidInputError: the file is absent or not of the layout {search space: {dataset: {name: rows}}}.
    """
    content = read_json(path)
    try:
        return {
            space: {
                dataset: {name: _row_numbers(rows) for name, rows in named.items()}
                for dataset, named in datasets.items()
            }
            for space, datasets in content.items()
        }
    except (AttributeError, ValueError) as error:
        raise InvalidInputError(
            f"is not of the layout {{search space: {{dataset: {{name: row numbers}}}}}}: {error}",
            where=path.name,
        ) from error


def _row_numbers(rows: object) -> tuple[int, ...]:
    # bool is a kind of int in Python, but not a row number.
    if not isinstance(rows, list) or not all(type(row) is int and row >= 0 for row in rows):
        raise ValueError(f"{str(rows)[:60]} is not a list of row numbers")
    return tuple(rows)


def read_pieces(path: Path, size: int, ends: bytes) -> Iterator[bytes]:
    """Read a file, plain or gzipped, in pieces; each but the last ends with one of the characters `ends`.

    The file is read `size` bytes at a time.

    Raises:
      InvalidInputError: the file cannot be read, or its gzip stream is damaged or ends early.
    """
    rest = b""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            # Everything before a damaged place is read too, so that an error can name the place.
            while piece := stream.read1(size):
                piece = rest + piece
                end = max(piece.rfind(character) for character in ends) + 1
                if end:
                    yield piece[:end]
                rest = piece[end:]
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInputError(
            f"cannot be read: {error}", where=path.name, fix="fetch or write the file again"
        ) from error
    if rest:
        yield rest


def count_rows(path: Path) -> dict[tuple[str, str], int]:
    """Count the rows of X of each (search space, dataset) of a file by their brackets.

    Raises:
      InvalidInputError: the file cannot be read or is cut short.
    """
    brackets: Counter[tuple[str, str]] = Counter()
    names = ["", "", ""]
    depth = 0
    try:
        # Pieces end where no key is cut in two.
        for piece in read_pieces(path, _PIECE, b",[]"):
            start = 0
            for match in (*_KEY.finditer(piece), None):
                end = match.start() if match else len(piece)
                if depth == 3 and names[2] == "X":
                    brackets[names[0], names[1]] += piece.count(b"[", start, end)
                depth += piece.count(b"{", start, end) - piece.count(b"}", start, end)
                if match:
                    if 1 <= depth <= 3:
                        names[depth - 1] = match[1].decode(errors="replace")
                    start = match.end()
        if depth:
            raise InvalidInputError(
                "is cut short or not JSON: its braces do not match", fix="fetch or write the file again"
            )
    except InvalidInputError as error:
        place = "#".join(filter(None, (path.name, "/".join(filter(None, names[:2])))))
        raise InvalidInputError(error.what, where=place, fix=error.fix) from error
    return {key: count - 1 for key, count in brackets.items() if count}
