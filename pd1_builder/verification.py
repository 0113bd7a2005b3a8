"""Verifying a version: its files, its records, and what it states about them. Needs Parquet only."""

from __future__ import annotations

from pathlib import Path

from hyperbo.errors import VersionConflictError
from pd1_builder.catalog import find, remedy
from pd1_builder.content_hash import content_hash
from pd1_builder.derived import check_derived
from pd1_builder.manifest import MANIFEST_NAME, FileDigest, Manifest, declared, digest_file, read_manifest
from pd1_builder.manifest_fields import SIGNATURE_NAME
from pipelines.parquet import read_row_groups


def verify(reference: str, data_dir: Path | None = None) -> Manifest:
    """Check a version against its manifest: the hashes of files and of records, and all derived values.

    Args:
      reference: `<name>/<config>:<version>`.
      data_dir: where versions are kept; None for `catalog.default_data_dir`.

    Returns:
      The manifest.

    Raises:
      NotAvailableError: there is no such version.
      VersionConflictError: a file is missing, unknown or changed, or the records are not those hashed.
    """
    found = find(reference, data_dir)
    return verify_folder(found.folder, found.dataset, found.version)


def verify_folder(folder: Path, dataset: str, version: str) -> Manifest:
    """Check the version in a folder; errors as `verify`."""
    advice = remedy(folder, dataset, version)
    manifest = read_manifest(folder)
    if (manifest.dataset, manifest.version) != (dataset, version):
        raise VersionConflictError(f"{folder} holds {manifest.reference}; {advice}")
    check_files(folder, manifest)
    tables = {split: read_row_groups(folder / f"{split}.parquet") for split in manifest.counts}
    if content_hash(declared(manifest.space, manifest.parameters), tables) != manifest.content_hash:
        raise VersionConflictError(f"the records in {folder} are not those of its content hash; {advice}")
    check_derived(folder, manifest)
    return manifest


def check_files(folder: Path, manifest: Manifest) -> None:
    """Check the files of a version, not its records.

    Raises:
      VersionConflictError: files are missing, unknown or changed; names the first of them.
    """
    found = {file.name: file for file in files_of(folder)}
    expected = {file.name: file for file in manifest.files}
    wrong = [name for name in sorted(found.keys() | expected.keys()) if found.get(name) != expected.get(name)]
    if wrong:
        name = wrong[0]
        state = (
            "is missing"
            if name not in found
            else "has changed"
            if name in expected
            else "is no file of the version"
        )
        others = f" (and {len(wrong) - 1} more)" if wrong[1:] else ""
        advice = remedy(folder, manifest.dataset, manifest.version)
        raise VersionConflictError(f"{folder / name} {state}{others}; {advice}")


def parquet_files(folder: Path, manifest: Manifest) -> dict[str, Path]:
    """The Parquet file of each split.

    Raises:
      VersionConflictError: a file is missing, or its size is not that of the manifest.
    """
    recorded = {file.name: file.size for file in manifest.files}
    paths = {split: folder / f"{split}.parquet" for split in manifest.counts}
    for path in paths.values():
        size = path.stat().st_size if path.exists() else None
        if size is None or size != recorded.get(path.name):
            raise VersionConflictError(
                f"{path} has {size} bytes, not the {recorded.get(path.name)} of the manifest; "
                f"{remedy(folder, manifest.dataset, manifest.version)}"
            )
    return paths


def files_of(folder: Path) -> tuple[FileDigest, ...]:
    """The files of a version but for its manifest and the signature of that, by name.

    Raises:
      VersionConflictError: there is a symbolic link among them; what it leads to is no file of the version.
    """
    apart = (folder / MANIFEST_NAME, folder / SIGNATURE_NAME)
    paths = sorted(folder.rglob("*"))
    for path in paths:
        if path.is_symlink():
            raise VersionConflictError(f"{path} is a symbolic link; put the file in its place")
    return tuple(digest_file(path, folder) for path in paths if path.is_file() and path not in apart)
