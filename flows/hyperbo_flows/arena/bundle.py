"""A bundle: the results of an arena in one ZIP file, which another machine can verify and merge.

    manifest.json              what was run, by which protocol, code and machine; the hash of every other file
    <part>/records.parquet     one row per observation, not compressed: the ZIP file is
    <part>/metadata.json       what was asked for, and what failed
    methods/<name>.py          the source of a method that is not of the project

A bundle comes from strangers. It is read within limits of number, size and rows, which are looked at before
anything of their size is made; no name in it becomes a path, and nothing in it is run.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, NonNegativeFloat
from typing_extensions import TypedDict

from hyperbo.errors import InvalidInputError, VersionConflictError
from hyperbo.evaluation.records.join import Evaluation
from hyperbo.evaluation.records.metadata import (
    EvaluationMetadata,
    check_records_belong,
    validate_metadata,
)
from hyperbo.evaluation.records.runs import validate_records
from hyperbo.storage.atomic import write_atomically
from hyperbo.storage.printable import printable
from hyperbo.storage.validation import validated, without_format
from hyperbo_flows.arena.table import packed, unpacked

MANIFEST_NAME = "manifest.json"
_FORMAT = 2
_NAME = re.compile(
    r"[a-z0-9][a-z0-9-]{0,63}/(records\.parquet|metadata\.json)|methods/[A-Za-z0-9_.]{1,80}\.py"
)
# Far above what all divisions with many methods take: half a million rows, some thirty megabytes.
LARGEST_ARCHIVE, MOST_FILES, LARGEST_FILE, LARGEST_BUNDLE = 64 << 20, 500, 64 << 20, 256 << 20
# Parsed JSON takes seventy times its size.
LARGEST_JSON, LARGEST_JSON_IN_ALL = 2 << 20, 8 << 20
# Observations that the metadata of all parts ask for: scoring has an array of them.
MOST_ROWS = 4_000_000
# The end of a ZIP file without a comment, and what stands before it in one with 64-bit sizes.
_END, _END_OF_64 = b"PK\x05\x06", b"PK\x06\x07"
_END_SIZE, _LOCATOR_SIZE, _MOST_OF_AN_ENTRY = 22, 20, 256
_LONGEST_SHOWN = 200
# The time of every entry of the ZIP file: the earliest that it can say.
_EPOCH = (1980, 1, 1, 0, 0, 0)

_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class FileEntry(TypedDict):
    """A file of a bundle: its size in bytes and its SHA-256."""

    size: Annotated[int, Field(ge=0, le=LARGEST_FILE)]
    sha256: _Sha256


class ProtocolEntry(TypedDict):
    """The number and the hash of the protocol."""

    number: int
    sha256: _Sha256


class Seconds(TypedDict):
    """Times of a method in a part: seconds of pre-training by prior, and of a choice."""

    prior: NonNegativeFloat
    choice: NonNegativeFloat


class Machine(TypedDict):
    """Where runs were made: processor, cores, system, versions, load, and seconds by part and method."""

    processor: str
    cores: int
    system: str
    libraries: dict[str, str]
    code_version: str
    load: list[NonNegativeFloat]
    seconds: dict[str, dict[str, Seconds]]


class Manifest(TypedDict):
    """The manifest of a bundle.

    Attributes:
      protocol: by which it was made.
      machines: where; of a merged bundle there may be several.
      does_not_apply: by part, the methods that were not run there, and why.
      sources: the file of a method that is not of the project, by its name.
      files: all files but the manifest.
    """

    protocol: ProtocolEntry
    machines: Annotated[list[Machine], Field(min_length=1)]
    does_not_apply: dict[str, dict[str, str]]
    sources: dict[str, str]
    files: Annotated[dict[str, FileEntry], Field(max_length=MOST_FILES)]


@dataclass(frozen=True)
class Bundle:
    """A bundle in memory.

    Attributes:
      protocol: number and hash of the protocol.
      machines: where runs were made, and how long they took.
      parts: records and metadata by part.
      does_not_apply: by part, the methods that were not run there, and why.
      sources: the source of each method that is not of the project, by the method's name.
    """

    protocol: ProtocolEntry
    machines: tuple[Machine, ...]
    parts: Mapping[str, Evaluation]
    does_not_apply: Mapping[str, Mapping[str, str]]
    sources: Mapping[str, bytes]


def write_bundle(bundle: Bundle, path: Path) -> None:
    """Write a bundle, atomically. Equal bundles give equal files."""
    files: dict[str, bytes] = {}
    for name, evaluation in sorted(bundle.parts.items()):
        files[f"{name}/records.parquet"] = packed(evaluation.records)
        files[f"{name}/metadata.json"] = _json(evaluation.metadata)
    sources = {method: f"methods/{_file_name(method)}.py" for method in sorted(bundle.sources)}
    files |= {sources[method]: content for method, content in sorted(bundle.sources.items())}
    manifest = {
        "format": _FORMAT,
        "protocol": bundle.protocol,
        "machines": list(bundle.machines),
        "does_not_apply": {part: dict(methods) for part, methods in bundle.does_not_apply.items()},
        "sources": sources,
        "files": {
            name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in files.items()
        },
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {MANIFEST_NAME: _json(manifest), **files}.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    write_atomically(path, buffer.getvalue())


def read_bundle(path: Path) -> Bundle:
    """Read a bundle, and check its files against its manifest.

    Raises:
      InvalidInputError: the file is no bundle, is larger than a bundle may be, has files that the manifest
        does not name or that differ from it, or its records or metadata are invalid.
      VersionConflictError: the bundle has another format.
    """
    files = _files(path)
    parsed = [name for name in files if name.endswith(".json")]
    large = [name for name in parsed if len(files[name]) > LARGEST_JSON]
    if large or sum(len(files[name]) for name in parsed) > LARGEST_JSON_IN_ALL:
        told = large[0] if large else "the JSON of all parts"
        raise InvalidInputError(f"{told} is larger than it may be", where=str(path))
    if MANIFEST_NAME not in files:
        raise InvalidInputError(
            f"no {MANIFEST_NAME} in it", where=str(path), fix="name a bundle of the arena"
        )
    fields = without_format(_parsed(files.pop(MANIFEST_NAME), f"{path}: {MANIFEST_NAME}"), _FORMAT, str(path))
    manifest = validated(Manifest, fields, f"{path}: {MANIFEST_NAME}")
    _check_files(manifest["files"], files, path)
    names = sorted({name.partition("/")[0] for name in files if name.endswith("records.parquet")})
    unpaired = [name for name in names if f"{name}/metadata.json" not in files]
    unknown = sorted(
        set(manifest["sources"].values()) ^ {name for name in files if name.startswith("methods/")}
    )
    if unpaired or unknown or not names:
        told = printable(", ".join(unpaired + unknown), _LONGEST_SHOWN) or "no part"
        raise InvalidInputError(f"files do not belong together: {told}", where=str(path))
    metadata = {name: _metadata(files[f"{name}/metadata.json"], f"{path}: {name}") for name in names}
    if sum(map(_asked, metadata.values())) > MOST_ROWS:
        raise InvalidInputError(f"more than {MOST_ROWS} rows are asked for", where=str(path))
    return Bundle(
        manifest["protocol"],
        tuple(manifest["machines"]),
        {
            name: _evaluation(files[f"{name}/records.parquet"], metadata[name], f"{path}: {name}")
            for name in names
        },
        manifest["does_not_apply"],
        {method: files[name] for method, name in manifest["sources"].items()},
    )


def _files(path: Path) -> dict[str, bytes]:
    try:
        if path.stat().st_size > LARGEST_ARCHIVE:
            raise InvalidInputError("it is larger than a bundle may be", where=str(path))
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise InvalidInputError(
            "there is no such file", where=str(path), fix="name a bundle that hyperbo arena run made"
        ) from error
    except OSError as error:
        raise InvalidInputError(f"cannot be read: {error}", where=str(path)) from error
    _check_directory(content, path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            _check_entries(entries, path)
            return {entry.filename: archive.read(entry) for entry in entries}
    except InvalidInputError:
        raise
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError) as error:
        raise InvalidInputError(f"cannot be read as a ZIP file: {error}", where=str(path)) from error


def _check_directory(content: bytes, path: Path) -> None:
    """Refuse a list of files that is longer than a bundle's: `zipfile` reads all of it at once."""
    end = content[-_END_SIZE:]
    before = content[-_END_SIZE - _LOCATOR_SIZE : -_END_SIZE]
    size = int.from_bytes(end[12:16], "little")
    if len(end) != _END_SIZE or end[:4] != _END or end[-2:] != b"\0\0" or before[:4] == _END_OF_64:
        raise InvalidInputError(
            "cannot be read as a ZIP file of a bundle: its end is not that of one", where=str(path)
        )
    if size > MOST_FILES * _MOST_OF_AN_ENTRY:
        raise InvalidInputError("it lists too many files, which is not of a bundle", where=str(path))


def _check_entries(entries: Sequence[zipfile.ZipInfo], path: Path) -> None:
    names = [entry.filename for entry in entries]
    odd = [name for name in names if name != MANIFEST_NAME and not _NAME.fullmatch(name)]
    if odd or len(set(names)) != len(names) or len(names) > MOST_FILES:
        told = f"{len(names)} files, some of one name or too many"
        if odd:
            told = f"a file named {printable(repr(odd[0]), _LONGEST_SHOWN)}"
        raise InvalidInputError(f"{told} is not of a bundle", where=str(path))
    packing = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if any(entry.compress_type not in packing or entry.flag_bits & 1 for entry in entries):
        raise InvalidInputError("a file is encrypted or packed as none of a bundle is", where=str(path))
    # No more comes out of a file than it declares: `zipfile` stops there.
    large = [entry.filename for entry in entries if entry.file_size > LARGEST_FILE]
    if large or sum(entry.file_size for entry in entries) > LARGEST_BUNDLE:
        told = f"{large[0]} is" if large else "its files are"
        raise InvalidInputError(f"{told} larger than a bundle may have", where=str(path))


def _check_files(entries: Mapping[str, FileEntry], files: Mapping[str, bytes], path: Path) -> None:
    if set(entries) != set(files):
        told = printable(", ".join(sorted(set(entries) ^ set(files))), _LONGEST_SHOWN)
        raise InvalidInputError(f"manifest and files differ in {told}", where=str(path))
    for name, entry in entries.items():
        content = files[name]
        if len(content) != entry["size"] or hashlib.sha256(content).hexdigest() != entry["sha256"]:
            raise VersionConflictError(f"{path}: {name} is not the file that the manifest names")


def _metadata(content: bytes, where: str) -> EvaluationMetadata:
    return validate_metadata(_parsed(content, where), where=where)


def _asked(metadata: EvaluationMetadata) -> int:
    """How many observations metadata ask for."""
    runs = len(metadata["methods"]) * len(metadata["tasks"]) * len(metadata["seeds"])
    return runs * metadata["iterations"]


def _evaluation(content: bytes, metadata: EvaluationMetadata, where: str) -> Evaluation:
    records = unpacked(content, _asked(metadata), where)
    validate_records(records, where=where)
    check_records_belong(records, metadata)
    return Evaluation(records, metadata)


def _parsed(content: bytes, where: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"not JSON: {error}", where=where) from error


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _file_name(method: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", method)[:60] + "_" + hashlib.sha256(method.encode()).hexdigest()[:8]
