"""Building a version. It appears in the data folder complete, or not at all."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hyperbo_pipelines.run.execution import Execution

from hyperbo.errors import InvalidInputError, VersionConflictError
from hyperbo.storage.code_version import CURATION, code_version
from hyperbo.storage.installation import require_extras
from hyperbo.storage.paths import StrPath, as_path
from hyperbo.storage.staging import lock, publish, stage
from pd1_builder.builder.recipe import Recipe
from pd1_builder.compare.diff import diff_folders
from pd1_builder.compare.release_checks import check_number
from pd1_builder.release.card import CARD_NAME, card
from pd1_builder.release.datasets import find_recipe, raw_folder, require_known, tfds_builder
from pd1_builder.version.catalog import find, newest_below, version_folder
from pd1_builder.version.disk_errors import explaining_disk_errors
from pd1_builder.version.makeable import shipped_raw
from pd1_builder.version.manifest import MANIFEST_NAME, FileDigest, Manifest, digest_file
from pd1_builder.version.pull_record import pull_record
from pd1_builder.version.verification import files_of, verify_folder

_LOGGER = logging.getLogger(__name__)
# Checks a new version against its parent: called with both folders, and raises to refuse the version.
Gate = Callable[[Path, Path], object]
_ADVICE = "no part of the version was kept: free some space and build it again"
# The folder in which a version keeps files that it was made from, if it keeps any.
KEPT_FOLDER = "raw"


def build(
    dataset: str = "pd1/mini",
    version: str = "1.0.0",
    *,
    raw: StrPath | None = None,
    data_dir: StrPath | None = None,
    parent: str | None = None,
    max_reject_share: float = 0.001,
    execution: Execution | None = None,
) -> Manifest:
    """Build a dataset version from raw files: TFDS shards, Parquet, Croissant, rejects, card, manifest.

    The version appears by one rename when it is complete. A version that exists is verified and left as it
    is. If two processes build the same version, one builds it, and the other waits and then verifies it.

    Args:
      dataset: `<name>/<config>`, one of `datasets.DATASETS`.
      version: number of the version to build.
      raw: folder of raw files; None for those shipped with this package, else for the official archive, which
        is downloaded.
      data_dir: the data folder; None for `catalog.default_data_dir`.
      parent: number of the version that this one follows; None for the newest one before it, if there is one.
      max_reject_share: largest share of rows that may be rejected.
      execution: where Beam runs; None for this process.

    Returns:
      The manifest of the complete version.

    Raises:
      InvalidInputError: the dataset is unknown, or a raw file cannot be used; the message names file and
        line.
      NotAvailableError: there are no raw files, or the parent does not exist.
      VersionConflictError: the version exists, and is damaged or was made from other raw files; or its number
        does not follow from what changed since its parent.
      HyperBOError: the disk is full, or rows were lost.
    """
    target = version_folder(dataset, version, data_dir)
    require_known(dataset)
    given = None if raw is None else _raw_given(as_path(raw, "raw"))
    if given is None and target.exists() and shipped_raw(dataset, version) is None:
        return verify_folder(target, dataset, version)  # The archive that it was made from may be gone.
    with explaining_disk_errors(f"{dataset}:{version}", _ADVICE):
        folder = given or raw_folder(dataset, version, data_dir)
    return build_from_recipe(
        dataset,
        version,
        find_recipe(dataset, folder),
        data_dir=data_dir,
        parent=parent,
        max_reject_share=max_reject_share,
        execution=execution,
    )


def _raw_given(folder: Path) -> Path:
    if not folder.is_dir():
        what = "this is a file" if folder.exists() else "there is no such folder"
        raise InvalidInputError(what, where=str(folder), fix="give the folder of the raw files")
    return folder


def build_from_recipe(
    dataset: str,
    version: str,
    recipe: Recipe,
    *,
    data_dir: StrPath | None = None,
    parent: str | None = None,
    max_reject_share: float = 0.001,
    execution: Execution | None = None,
    gate: Gate | None = None,
) -> Manifest:
    """Build a version by a recipe, as `build` does for the recipe that it finds.

    Args:
      dataset: `<name>/<config>`.
      version: number of the version to build.
      recipe: how its records are made.
      data_dir: as in `build`.
      parent: as in `build`.
      max_reject_share: as in `build`.
      execution: as in `build`.
      gate: called with the folders of the parent and of the complete version before the version appears. If
        it raises an error, the version does not appear. Without a parent it is not called.

    Returns:
      The manifest of the complete version.

    Raises:
      InvalidInputError: a raw file cannot be used, or the gate refuses the version.
      NotAvailableError: the parent does not exist.
      VersionConflictError: the version exists, and is damaged or was made from other raw files; or its number
        does not follow from what changed since its parent.
      HyperBOError: the disk is full, or rows were lost.
    """
    if not 0 <= max_reject_share <= 1:
        raise InvalidInputError(f"max_reject_share is {max_reject_share}", fix="give a share from 0 to 1")
    target = version_folder(dataset, version, data_dir)
    reference = f"{dataset}:{version}"
    before = find(f"{dataset}:{parent}", data_dir) if parent else newest_below(dataset, version, data_dir)
    with (
        explaining_disk_errors(reference, _ADVICE),
        lock(target, lambda: _LOGGER.info("%s: another build is running; waiting for it", reference)),
    ):
        if target.exists():
            manifest = verify_folder(target, dataset, version)
            if manifest.raw_files != raw_digests(recipe):
                raise VersionConflictError(
                    f"{reference} was made from other raw files, and a version never changes; "
                    "build a new version"
                )
            _LOGGER.info("%s: complete already; verified, nothing to do", reference)
            return manifest
        require_extras("build", purpose="building a version")
        with stage(target) as staging:
            options = {"recipe": recipe, "execution": execution, "max_reject_share": max_reject_share}
            builder = tfds_builder(dataset, version, data_dir=staging, **options)
            written = builder.write()
            folder = Path(builder.data_dir)
            _keep(recipe, folder / KEPT_FOLDER)
            manifest = Manifest(
                dataset=dataset,
                version=version,
                parent=before.version if before else None,
                content_hash=written.content_hash,
                raw_files=raw_digests(recipe),
                files=(),
                code_version=code_version(*CURATION),
                search_space=tuple(recipe.search_space.to_json()) if recipe.search_space else (),
                parameters=dict(recipe.parameters),
                counts=written.counts,
                duplicates=written.duplicates,
                rejects=written.rejects,
                blocks=tuple(
                    {"id": b.block_id, "phase": b.phase, "tasks": list(b.tasks), "inputs": b.inputs}
                    for b in written.blocks
                ),
                rounded=written.rounded,
                exports=recipe.exports,
            )
            page = card(
                manifest,
                recipe.columns,
                foreword=recipe.description,
                description=builder.get_metadata().description,
                citation=builder.info.citation,
                licence=recipe.licence,
            )
            (folder / CARD_NAME).write_text(page, encoding="utf-8")
            manifest = replace(manifest, files=files_of(folder))
            (folder / MANIFEST_NAME).write_text(manifest.to_json(), encoding="utf-8")
            if before:
                check_number(before.version, version, diff_folders(before.folder, folder).changes)
                if gate:
                    gate(before.folder, folder)
            # A pull that was killed at its last step may have left a pull record, and `prune` would trust it.
            pull_record(target).unlink(missing_ok=True)
            publish(folder, target)
    records = sum(manifest.rows(split) for split in manifest.counts)
    _LOGGER.info("%s: built, %d records, %d rejects", reference, records, manifest.rejects)
    return manifest


def _keep(recipe: Recipe, folder: Path) -> None:
    read = {file.path: file.sha256 for file in (*recipe.raw_files, *recipe.companions)}
    for name, path in recipe.kept.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / name)
        # A running sweep may still write to the file. The copy would differ from what the records are made
        # from.
        if digest_file(folder / name, folder).sha256 != read[path]:
            raise InvalidInputError("the file changed while it was read", where=str(path), fix="add it again")


def raw_digests(recipe: Recipe) -> tuple[FileDigest, ...]:
    """The files that a recipe makes a version from, as the manifest lists them."""
    return (
        *(FileDigest(file.path.name, file.size, file.sha256, file.rows) for file in recipe.raw_files),
        *(FileDigest(file.path.name, file.size, file.sha256) for file in recipe.companions),
    )
