"""Manifest: what a dataset version is made of, where it came from, and what it holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hyperbo.errors import NotAvailableError, VersionConflictError
from hyperbo.printable import printable
from hyperbo.search_space import SearchSpace
from pd1_builder.manifest_fields import MANIFEST_NAME, check_fields

# Much more than a thousand tasks need, and little enough to be read from anyone.
LARGEST_MANIFEST = 16 << 20
_FORMAT = 1


@dataclass(frozen=True)
class FileDigest:
    """A file by name, size in bytes and SHA-256; `rows` where it holds trials."""

    name: str
    size: int
    sha256: str
    rows: int | None = None


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
      code_version: `hyperbo.code_version.code_version` of the code that built it.
      search_space: `SearchSpace.to_json` of the declared bounds; empty for a dataset that spans several.
      parameters: the other options that decide the records.
      counts: records by split, task and status.
      duplicates: records whose task ran the same input more than once.
      rejects: rows that became no record.
      blocks: matched blocks: id, phase, tasks, number of inputs.
    """

    dataset: str
    version: str
    parent: str | None
    content_hash: str
    raw_files: tuple[FileDigest, ...]
    files: tuple[FileDigest, ...]
    code_version: str
    search_space: tuple[dict[str, Any], ...]
    parameters: Mapping[str, Any]
    counts: Mapping[str, Mapping[str, Mapping[str, int]]]
    duplicates: int
    rejects: int
    blocks: tuple[Mapping[str, Any], ...]

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
          ValueError: a number is not finite: no number of JSON, nor equal to itself.
        """
        return json.dumps({"format": _FORMAT} | asdict(self), indent=2, allow_nan=False) + "\n"


def declared(search_space: SearchSpace | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What the derived columns of a version follow from: a part of its identity."""
    return {
        "search_space": search_space.to_json() if search_space else [],
        "objective": parameters["objective"],
        "warping": parameters["warping"],
    }


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a version's folder.

    Raises:
      NotAvailableError: there is none.
      VersionConflictError: it is damaged, or was written by a version that is not understood.
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

    Args:
      content: of `manifest.json`.
      where: it is from.

    Raises:
      VersionConflictError: it is damaged, names files elsewhere, is larger than any manifest, or was written
        by a version that is not understood.
    """
    try:
        if len(content) > LARGEST_MANIFEST:
            raise ValueError(f"more than {LARGEST_MANIFEST} bytes")
        fields = json.loads(content)
        found = fields.pop("format")
        if found != _FORMAT:
            raise VersionConflictError(
                f"{where}: format {printable(found, 50)} is not {_FORMAT}; use the hyperbo that wrote it"
            )
        check_fields(fields)
        for name in ("raw_files", "files"):
            fields[name] = tuple(FileDigest(**file) for file in fields[name])
        for name in ("search_space", "blocks"):
            fields[name] = tuple(fields[name])
        return Manifest(**fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise VersionConflictError(
            f"{where}: is damaged ({printable(error, 200)}); build or pull the version again"
        ) from error


def digest_file(path: Path, root: Path) -> FileDigest:
    """Size and SHA-256 of a file, named relative to the version's folder."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    return FileDigest(path.relative_to(root).as_posix(), path.stat().st_size, digest.hexdigest())
