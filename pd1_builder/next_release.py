"""The next release: raw files that somebody publishes anew become the version that follows the newest."""

from __future__ import annotations

import logging
import tempfile
from dataclasses import replace
from pathlib import Path

from hyperbo.errors import NotAvailableError
from pd1_builder.catalog import Version, find, version_folder
from pd1_builder.datasets import find_recipe
from pd1_builder.diff import diff_folders
from pd1_builder.manifest import Manifest, read_manifest
from pd1_builder.pd1.recipe import pd1_recipe
from pd1_builder.recipe import Recipe
from pd1_builder.releases import KEPT_FOLDER, Gate, raw_digests, release
from pd1_builder.semver import next_version
from pd1_builder.verification import verify
from pipelines.execution import Execution
from pipelines.raw_files import is_addition

_LOGGER = logging.getLogger(__name__)


def next_release(
    dataset: str,
    raw: Path,
    *,
    data_dir: Path | None = None,
    max_reject_share: float = 0.001,
    execution: Execution | None = None,
    gate: Gate | None = None,
) -> Manifest:
    """Build the version that follows the newest from raw files of a release; its number says what changed.

    Trials that were added to the newest version are in the next one too. What changed is found out from a
    version that is built aside and thrown away.

    Args:
      dataset: `<name>/<config>`, one of `datasets.DATASETS`.
      raw: folder that holds the raw files, in a folder of its own perhaps.
      data_dir: where versions are kept; None for `catalog.default_data_dir`.
      max_reject_share: largest share of rows that may be rejected.
      execution: where Beam runs; None for this process.
      gate: as in `releases.release`.

    Returns:
      The manifest of the version made; of the newest, where its records are the same.

    Raises:
      HyperBOError: as `releases.release`.
    """
    try:
        newest = find(dataset, data_dir)
    except NotAvailableError:
        newest = None
    recipe = _recipe(dataset, raw, newest)
    if newest is None:
        return release(
            dataset,
            "1.0.0",
            recipe,
            data_dir=data_dir,
            max_reject_share=max_reject_share,
            execution=execution,
        )
    if read_manifest(newest.folder).raw_files == raw_digests(recipe):
        return verify(f"{dataset}:{newest.version}", data_dir)
    with tempfile.TemporaryDirectory(prefix="next-release-") as scratch:
        aside = release(
            dataset,
            "1.0.0",
            replace(recipe, kept={}),
            data_dir=Path(scratch),
            max_reject_share=max_reject_share,
            execution=execution,
        )
        if aside.content_hash == read_manifest(newest.folder).content_hash:
            _LOGGER.info("%s:%s holds the same records already; nothing to do", dataset, newest.version)
            return verify(f"{dataset}:{newest.version}", data_dir)
        bump = diff_folders(newest.folder, version_folder(dataset, "1.0.0", Path(scratch))).bump
    return release(
        dataset,
        next_version(newest.version, bump),
        recipe,
        data_dir=data_dir,
        parent=newest.version,
        max_reject_share=max_reject_share,
        execution=execution,
        gate=gate,
    )


def _recipe(dataset: str, raw: Path, newest: Version | None) -> Recipe:
    kept = newest.folder / KEPT_FOLDER if newest else None
    added = [path for path in sorted(kept.iterdir()) if is_addition(path)] if kept and kept.is_dir() else []
    folder = _folder_of_files(dataset, raw)
    if not dataset.startswith("pd1/"):
        return find_recipe(dataset, folder)
    recipe = pd1_recipe(dataset.partition("/")[2], folder, added)
    # Trials can be added to it later, when the archive may be another.
    return replace(recipe, kept={file.path.name: file.path for file in recipe.raw_files})


def _folder_of_files(dataset: str, raw: Path) -> Path:
    """The folder itself, or the one in it that an official archive has its files in."""
    inside = raw / {"pd1": "pd1", "hpob": "hpob-data"}[dataset.partition("/")[0]]
    return inside if inside.is_dir() else raw
