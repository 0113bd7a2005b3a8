"""Releases: building a version that appears complete or not at all, and verifying one."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from hyperbo.code_version import code_version
from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from pd1_builder.catalog import find, version_folder
from pd1_builder.content_hash import content_hash
from pd1_builder.derived import check_derived
from pd1_builder.manifest import MANIFEST_NAME, FileDigest, Manifest, declared, digest_file, read_manifest
from pd1_builder.shipped import shipped_raw
from pd1_builder.staging import lock_version, publish, stage
from pipelines.raw_files import find_raw_files
from pipelines.records import RawFile

_LOGGER = logging.getLogger(__name__)
DATASETS = ("pd1/mini", "pd1/release")
# Beam's third mode, multi_threading, loses rows without an error.
RunningMode = Literal["in_memory", "multi_processing"]


def build(
    dataset: str = "pd1/mini",
    version: str = "1.0.0",
    *,
    raw: Path | None = None,
    data_dir: Path | None = None,
    parent: str | None = None,
    max_reject_share: float = 0.001,
    running_mode: RunningMode = "in_memory",
    workers: int = 1,
) -> Manifest:
    """Build a dataset version from raw files: TFDS shards, Parquet, rejects and a release manifest.

    The version appears by one rename when it is complete. A version that exists is verified and left as it
    is. Of two builds at once one builds, the other waits, says so, and verifies.

    Args:
      dataset: `<name>/<config>`, one of `DATASETS`.
      version: semantic version to build.
      raw: folder of raw files; None for those shipped with this package.
      data_dir: where versions are kept; None for `catalog.default_data_dir`.
      parent: version of the same dataset that this one follows; must exist.
      max_reject_share: largest share of rows that may be rejected.
      running_mode: of Beam's FnApiRunner: `in_memory`, or `multi_processing` with some workers.
      workers: number of worker processes.

    Returns:
      The manifest of the complete version.

    Raises:
      InvalidInputError: the raw files cannot be used; names file and line.
      NotAvailableError: no raw files are shipped for the version, or the parent does not exist.
      VersionConflictError: the version exists, and is damaged or was made from other raw files.
    """
    target = version_folder(dataset, version, data_dir)
    if dataset not in DATASETS:
        raise InvalidInputError(f"unknown dataset {dataset!r}", fix=f"use one of {', '.join(DATASETS)}")
    if running_mode not in get_args(RunningMode) or workers < 1:
        raise InvalidInputError(
            f"running mode {running_mode!r} with {workers} workers",
            fix=f"use {' or '.join(get_args(RunningMode))}, and at least one worker",
        )
    raw_files = find_raw_files(_raw_folder(dataset, version, raw))
    if parent is not None:
        find(f"{dataset}:{parent}", data_dir)
    reference = f"{dataset}:{version}"
    with lock_version(
        target, lambda: _LOGGER.info("%s: another build is running; waiting for it", reference)
    ):
        if target.exists():
            manifest = _verify_folder(target, dataset, version)
            _require_same_raw(manifest, raw_files)
            _LOGGER.info("%s: complete already; verified, nothing to do", reference)
            return manifest
        with stage(target) as staging:
            # Beam and TFDS are imported where something is built, not where a version is verified.
            from pd1_builder.prepare import prepare

            prepared = prepare(
                dataset.partition("/")[2],
                version,
                raw_files,
                staging,
                max_reject_share=max_reject_share,
                running_mode=running_mode,
                workers=workers,
            )
            folder, summary = prepared.folder, prepared.summary
            manifest = Manifest(
                dataset=dataset,
                version=version,
                parent=parent,
                content_hash=prepared.content_hash,
                raw_files=_raw_digests(raw_files),
                files=_files(folder),
                code_version=code_version("hyperbo", "pipelines", "pd1_builder"),
                search_space=tuple(prepared.search_space.to_json()),
                parameters=prepared.parameters,
                counts=summary.counts,
                duplicates=summary.duplicates,
                rejects=summary.rejects,
                blocks=tuple(summary.blocks),
            )
            (folder / MANIFEST_NAME).write_text(manifest.to_json(), encoding="utf-8")
            publish(folder, target)
    _LOGGER.info("%s: built, %d records, %d rejects", reference, summary.records(), summary.rejects)
    return manifest


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
    return _verify_folder(found.folder, found.dataset, found.version)


def _verify_folder(folder: Path, dataset: str, version: str) -> Manifest:
    remedy = f"remove {folder} and build {dataset}:{version} again"
    manifest = read_manifest(folder)
    if (manifest.dataset, manifest.version) != (dataset, version):
        raise VersionConflictError(f"{folder} holds {manifest.reference}; {remedy}")
    found = {file.name: file for file in _files(folder)}
    expected = {file.name: file for file in manifest.files}
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            state = (
                "is missing" if name not in found else "has changed" if name in expected else "is not its own"
            )
            raise VersionConflictError(f"{folder / name} {state}; {remedy}")
    tables = {
        split: (
            pa.Table.from_batches([batch])
            for batch in pq.ParquetFile(folder / f"{split}.parquet").iter_batches()
        )
        for split in manifest.counts
    }
    if content_hash(declared(manifest.space, manifest.parameters), tables) != manifest.content_hash:
        raise VersionConflictError(f"the records in {folder} are not those of its content hash; {remedy}")
    check_derived(folder, manifest)
    return manifest


def _raw_folder(dataset: str, version: str, raw: Path | None) -> Path:
    folder = raw or shipped_raw(dataset, version)
    if folder is None:
        raise NotAvailableError(
            f"no raw files are shipped for {dataset}:{version}; pass raw=<folder of the release's files>"
        )
    return folder


def _require_same_raw(manifest: Manifest, raw_files: tuple[RawFile, ...]) -> None:
    if manifest.raw_files != _raw_digests(raw_files):
        raise VersionConflictError(
            f"{manifest.reference} was made from other raw files, and a published version never changes; "
            "build a new version"
        )


def _raw_digests(raw_files: tuple[RawFile, ...]) -> tuple[FileDigest, ...]:
    return tuple(FileDigest(file.path.name, file.size, file.sha256, file.rows) for file in raw_files)


def _files(folder: Path) -> tuple[FileDigest, ...]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST_NAME)
    return tuple(digest_file(path, folder) for path in paths)
