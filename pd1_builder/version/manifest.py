"""Manifest: what a dataset version is made of, where it came from, and what it holds."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints
from typing_extensions import TypedDict  # pydantic asks for this TypedDict before Python 3.12

from hyperbo.data.search_space import SearchSpace
from hyperbo.errors import NotAvailableError, VersionConflictError
from hyperbo.storage.printable import printable
from hyperbo.storage.validation import validated, without_format

MANIFEST_NAME = "manifest.json"
# The signature of a manifest lies beside it; it is no file of the version.
SIGNATURE_NAME = f"{MANIFEST_NAME}.minisig"
DATASET = re.compile(r"[a-z0-9_]+/[a-z0-9_]+")
VERSION = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)")
SHA256 = re.compile(r"[0-9a-f]{64}")
Dataset = Annotated[str, StringConstraints(pattern=f"^{DATASET.pattern}$")]
Version = Annotated[str, StringConstraints(pattern=f"^{VERSION.pattern}$")]
Sha256 = Annotated[str, StringConstraints(pattern=f"^{SHA256.pattern}$")]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
# Much more than a thousand tasks need, and little enough to be read from anyone.
LARGEST_MANIFEST = 16 << 20
_FORMAT = 1
_MOST_FILES = 10_000
_LONGEST_NAME = 200
_LONGEST_PATH = 1_000


@dataclass(frozen=True)
class FileDigest:
    """A file by name, size in bytes and SHA-256; `rows` where it holds trials."""

    name: str
    size: Count
    sha256: Sha256
    rows: Count | None = None


@dataclass(frozen=True)
class Export:
    """A file that was added, and of which some rows were known, or whose name was taken.

    Attributes:
      name: its name.
      size: its size in bytes.
      sha256: its SHA-256.
      known: number of its rows that were known and skipped.
      new: number of its rows that were new.
      raw_file: the raw file with its new rows; empty where it had none.
    """

    name: str
    size: Count
    sha256: Sha256
    known: Count
    new: Count
    raw_file: str


class Block(TypedDict):
    """A matched block: its name and phase, the tasks that share its inputs, and the number of inputs."""

    id: str
    phase: int
    tasks: list[str]
    inputs: Count


def _check_parameters(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in ("objective", "warping"):
        if not isinstance(parameters.get(name), str):
            raise ValueError(f"{name} is {parameters.get(name)!r}, not text")
    return parameters


def check_name(name: str) -> str:
    """Check that a name is that of a file inside a folder, and return it.

    Raises:
      ValueError: the name leads out of the folder, is too long, or holds what cannot be printed.

    >>> check_name("raw/trials.csv")
    'raw/trials.csv'
    >>> check_name("../trials.csv")
    Traceback (most recent call last):
    ValueError: '../trials.csv' is not the name of a file in this folder
    """
    parts = name.split("/")
    is_safe = (
        len(name) <= _LONGEST_PATH
        and not PurePosixPath(name).is_absolute()
        and "\\" not in name
        and name.isprintable()
        and all(part not in ("", ".", "..") and len(part.encode()) <= _LONGEST_NAME for part in parts)
    )
    if not is_safe:
        raise ValueError(f"{name!r} is not the name of a file in this folder")
    return name


def _check_files(files: tuple[FileDigest, ...]) -> tuple[FileDigest, ...]:
    """Check that the files can lie in one folder with the manifest and its signature."""
    folders = {parent.as_posix() for file in files for parent in PurePosixPath(check_name(file.name)).parents}
    taken = {MANIFEST_NAME, SIGNATURE_NAME}
    if folders & taken:
        raise ValueError(f"{MANIFEST_NAME} and {SIGNATURE_NAME} are no folders")
    taken |= folders
    for file in files:
        if file.name in taken:
            raise ValueError(f"the name {file.name!r} is taken")
        taken.add(file.name)
    return files


_Files = Annotated[tuple[FileDigest, ...], Field(max_length=_MOST_FILES)]


@dataclass(frozen=True)
class Manifest:
    """Release manifest of a dataset version.

    Attributes:
      dataset: `<name>/<config>`.
      version: semantic version.
      parent: version that this one follows; None for the first.
      content_hash: identity of the version, `content_hash.content_hash` over its records.
      raw_files: the files it was made from.
      files: the files it consists of, this manifest aside.
      code_version: `hyperbo.storage.code_version.code_version` of the code that built it.
      search_space: `SearchSpace.to_json` of the declared bounds; empty for a dataset that spans several.
      parameters: the other options that decide the records.
      counts: records by split, task and status.
      duplicates: records whose task ran the same input more than once.
      rejects: rows that became no record.
      blocks: matched blocks.
      rounded: records with a raw value a rounding outside of its declared range, where `x` is clipped.
      exports: files that were added whole, and of which raw files hold the new rows only; in their order.
    """

    dataset: Dataset
    version: Version
    parent: Version | None
    content_hash: Sha256
    raw_files: _Files
    files: Annotated[_Files, AfterValidator(_check_files)]
    code_version: str
    search_space: tuple[dict[str, Any], ...]
    parameters: Annotated[Mapping[str, Any], AfterValidator(_check_parameters)]
    counts: Annotated[Mapping[str, Mapping[str, Mapping[str, Count]]], Field(min_length=1)]
    duplicates: Count
    rejects: Count
    blocks: tuple[Block, ...]
    rounded: Count = 0
    exports: Annotated[tuple[Export, ...], Field(max_length=_MOST_FILES)] = ()

    @property
    def reference(self) -> str:
        """`<name>/<config>:<version>`."""
        return f"{self.dataset}:{self.version}"

    @property
    def space(self) -> SearchSpace | None:
        """The search space; None for a dataset that spans several."""
        return SearchSpace.from_json(list(self.search_space)) if self.search_space else None

    def rows(self, split: str) -> int:
        """Number of records of a split."""
        return sum(count for statuses in self.counts[split].values() for count in statuses.values())

    def to_json(self) -> str:
        """The manifest as the text of `manifest.json`; equal manifests give equal texts.

        Raises:
          ValueError: a number is not finite, which JSON cannot hold.
        """
        fields = asdict(self)
        for name in ("rounded", "exports"):
            if not fields[name]:
                del fields[name]  # Versions without it, as all earlier ones, do not name it.
        return json.dumps({"format": _FORMAT} | fields, indent=2, allow_nan=False) + "\n"


def declared(search_space: SearchSpace | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What the derived columns of a version are computed from: a part of its identity."""
    return {
        "search_space": search_space.to_json() if search_space else [],
        "objective": parameters["objective"],
        "warping": parameters["warping"],
    }


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a version's folder.

    Raises:
      NotAvailableError: there is no manifest.
      VersionConflictError: the manifest is damaged, or its format is not understood.
    """
    path = folder / MANIFEST_NAME
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_MANIFEST + 1)
    except FileNotFoundError as error:
        raise NotAvailableError(
            f"{folder} is no dataset version: it has no {MANIFEST_NAME}; "
            "if there was one, move the folder away, and build or pull the version again"
        ) from error
    return parse_manifest(content, str(path))


def parse_manifest(content: bytes, where: str) -> Manifest:
    """The manifest with this content, whoever wrote it: what it names lies in the version's own folder.

    `where` is the file or URL that the content is from.

    Raises:
      VersionConflictError: the manifest is damaged, names files elsewhere, is larger than any manifest, or
        its format is not understood.
    """
    try:
        if len(content) > LARGEST_MANIFEST:
            raise ValueError(f"more than {LARGEST_MANIFEST} bytes")
        fields = without_format(json.loads(content), _FORMAT, where)
        manifest = validated(Manifest, fields, "")
        names = {file.name for file in manifest.files}
        for split in manifest.counts:
            if "/" in check_name(split) or f"{split}.parquet" not in names:
                raise ValueError(f"counts: no file of the split {split!r}")
        return manifest
    except (ValueError, RecursionError) as error:
        raise VersionConflictError(
            f"{where}: is damaged ({printable(error, 200)}); build or pull the version again"
        ) from error


def digest_file(path: Path, root: Path) -> FileDigest:
    """Size and SHA-256 of a file, named relative to the version's folder."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    return FileDigest(path.relative_to(root).as_posix(), path.stat().st_size, digest.hexdigest())
