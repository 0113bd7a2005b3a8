"""Releases: building a version that appears complete or not at all."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hyperbo.code_version import code_version
from hyperbo.errors import InvalidInputError, VersionConflictError
from pd1_builder.card import CARD_NAME, card
from pd1_builder.catalog import find, newest_below, version_folder
from pd1_builder.datasets import find_recipe, raw_folder, require_known, tfds_builder
from pd1_builder.manifest import MANIFEST_NAME, FileDigest, Manifest, digest_file
from pd1_builder.pulled import pull_record
from pd1_builder.recipe import Recipe
from pd1_builder.semver import check_version
from pd1_builder.shipped import shipped_raw
from pd1_builder.staging import explaining_disk_errors, lock_version, publish, stage
from pd1_builder.verification import files_of, verify_folder
from pipelines.execution import Execution

_LOGGER = logging.getLogger(__name__)
# Looks at a version, beside its parent, before it is published.
Gate = Callable[[Path, Path], object]
_ADVICE = "nothing of it was published: free some space and build it again"
# Where a version keeps the files it was made from, if it does.
KEPT_FOLDER = "raw"


def build(
    dataset: str = "pd1/mini",
    version: str = "1.0.0",
    *,
    raw: Path | None = None,
    data_dir: Path | None = None,
    parent: str | None = None,
    max_reject_share: float = 0.001,
    execution: Execution | None = None,
) -> Manifest:
    """Build a dataset version from raw files: TFDS shards, Parquet, Croissant, rejects, card, manifest.

    The version appears by one rename when it is complete. A version that exists is verified and left as it
    is. Of two builds at once one builds, the other waits, says so, and verifies.

    Args:
      dataset: `<name>/<config>`, one of `datasets.DATASETS`.
      version: semantic version to build.
      raw: folder of raw files; None for those shipped with this package, or else the official archive, which
        is downloaded.
      data_dir: where versions are kept; None for `catalog.default_data_dir`.
      parent: version of the same dataset that this one follows; None for the newest before it, if any.
      max_reject_share: largest share of rows that may be rejected.
      execution: where Beam runs; None for this process.

    Returns:
      The manifest of the complete version.

    Raises:
      InvalidInputError: the raw files cannot be used; names file and line.
      NotAvailableError: there are no raw files, or the parent does not exist.
      VersionConflictError: the version exists, and is damaged or was made from other raw files; or its number
        is not the one that follows from what changed since its parent.
    """
    target = version_folder(dataset, version, data_dir)
    require_known(dataset)
    if raw is None and target.exists() and shipped_raw(dataset, version) is None:
        return verify_folder(target, dataset, version)  # Its archive need not be here any more.
    with explaining_disk_errors(f"{dataset}:{version}", _ADVICE):
        folder = raw or raw_folder(dataset, version, data_dir)
    return release(
        dataset,
        version,
        find_recipe(dataset, folder),
        data_dir=data_dir,
        parent=parent,
        max_reject_share=max_reject_share,
        execution=execution,
    )


def release(
    dataset: str,
    version: str,
    recipe: Recipe,
    *,
    data_dir: Path | None = None,
    parent: str | None = None,
    max_reject_share: float = 0.001,
    execution: Execution | None = None,
    gate: Gate | None = None,
) -> Manifest:
    """Build a version by a recipe; further arguments and errors as `build`.

    Where there is a `gate`, it is called with the folders of the parent and of the complete version before
    that is published: what it raises keeps it from being published. Without a parent it is not called.
    """
    if not 0 <= max_reject_share <= 1:
        raise InvalidInputError(f"max_reject_share is {max_reject_share}", fix="give a share from 0 to 1")
    target = version_folder(dataset, version, data_dir)
    reference = f"{dataset}:{version}"
    before = find(f"{dataset}:{parent}", data_dir) if parent else newest_below(dataset, version, data_dir)
    with (
        explaining_disk_errors(reference, _ADVICE),
        lock_version(target, lambda: _LOGGER.info("%s: another build is running; waiting for it", reference)),
    ):
        if target.exists():
            manifest = verify_folder(target, dataset, version)
            _require_same_raw(manifest, recipe)
            _LOGGER.info("%s: complete already; verified, nothing to do", reference)
            return manifest
        with stage(target) as staging:
            builder = tfds_builder(
                dataset,
                version,
                data_dir=staging,
                recipe=recipe,
                execution=execution,
                max_reject_share=max_reject_share,
            )
            prepared = builder.prepare()
            folder = Path(builder.data_dir)
            _keep(recipe, folder / KEPT_FOLDER)
            manifest = Manifest(
                dataset=dataset,
                version=version,
                parent=before.version if before else None,
                content_hash=prepared.content_hash,
                raw_files=raw_digests(recipe),
                files=(),
                code_version=code_version("hyperbo", "pipelines", "pd1_builder"),
                search_space=tuple(recipe.search_space.to_json()) if recipe.search_space else (),
                parameters=dict(recipe.parameters),
                counts=prepared.counts,
                duplicates=prepared.duplicates,
                rejects=prepared.rejects,
                blocks=tuple(
                    {"id": b.block_id, "phase": b.phase, "tasks": list(b.tasks), "inputs": b.inputs}
                    for b in prepared.blocks
                ),
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
                check_version(before.folder, folder)
                if gate:
                    gate(before.folder, folder)
            # A pull that was killed on its last step left one: what is built may be nowhere else.
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
        # A file that a running sweep still writes to: what is kept would not be what the records are made of.
        if digest_file(folder / name, folder).sha256 != read[path]:
            raise InvalidInputError("the file changed while it was read", where=str(path), fix="add it again")


def _require_same_raw(manifest: Manifest, recipe: Recipe) -> None:
    if manifest.raw_files != raw_digests(recipe):
        raise VersionConflictError(
            f"{manifest.reference} was made from other raw files, and a published version never changes; "
            "build a new version"
        )


def raw_digests(recipe: Recipe) -> tuple[FileDigest, ...]:
    """The files that a version by a recipe is made from, as its manifest has them."""
    return (
        *(FileDigest(file.path.name, file.size, file.sha256, file.rows) for file in recipe.raw_files),
        *(FileDigest(file.path.name, file.size, file.sha256) for file in recipe.companions),
    )
