"""Adding trials: the first version of a dataset of one's own, or the next of one that takes more."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from hyperbo.errors import InvalidInputError, NotAvailableError
from pd1_builder.catalog import Version, find
from pd1_builder.datasets import raw_folder
from pd1_builder.manifest import Manifest, read_manifest
from pd1_builder.pd1.recipe import CONFIGURATIONS as PD1
from pd1_builder.pd1.recipe import pd1_recipe
from pd1_builder.recipe import Recipe
from pd1_builder.releases import KEPT_FOLDER, Gate, release
from pd1_builder.semver import next_version
from pd1_builder.trials.recipe import raw_in, trials_recipe
from pd1_builder.verification import verify
from pipelines.execution import Execution
from pipelines.raw_files import is_raw_file, sha256_of
from pipelines.trials.rows import suffix_of
from pipelines.trials.space_file import read_space_file

_LOGGER = logging.getLogger(__name__)
# What a name begins with that is a dataset's own.
_DATASETS = ("trials/", "pd1/", "hpob/", "bo_runs/")


def add(
    name: str,
    files: Sequence[Path],
    space: Path | None = None,
    *,
    version: str | None = None,
    data_dir: Path | None = None,
    max_reject_share: float = 0.001,
    execution: Execution | None = None,
    gate: Gate | None = None,
) -> Manifest:
    """Make a version of trials added to those that a dataset has already.

    A version keeps the files it was made from: the next is made of them and the new ones together.

    Args:
      name: a name of small letters, digits and underscores stands for the dataset `trials/<name>`; or
        `pd1/<config>`, to which files of the release's layout are added.
      files: of `trials/<name>`: JSON lines or CSV, both gzipped or not, or Parquet; of `pd1/<config>`: as
        `pd1_unmatched_phase0_results-<anything>.jsonl.gz`.
      space: the space file of `trials/<name>`; None for that of the newest version.
      version: semantic version to make; None for 1.0.0, or the next after the newest: one that adds records,
        or a patch where nothing is new but what the space file says about the trials.
      data_dir: where versions are kept; None for `catalog.default_data_dir`.
      max_reject_share: largest share of rows that may be rejected.
      execution: where Beam runs; None for this process.
      gate: as in `releases.release`.

    Returns:
      The manifest of the version made; of the newest, where it holds all these files already.

    Raises:
      InvalidInputError: a file cannot be used; names file, line and field.
      NotAvailableError: there is no version of `pd1/<config>` to add to.
      VersionConflictError: as `releases.build`; or the gate refuses the version.
    """
    dataset = name if name.startswith(_DATASETS) else f"trials/{name}"
    newest = _newest(dataset, data_dir)
    extended = _extended_pd1 if dataset.startswith("pd1/") else _extended_trials
    recipe = extended(dataset, newest, files, space, data_dir)
    if newest is not None and recipe is None:
        _LOGGER.info("%s:%s holds these files already; nothing to do", dataset, newest.version)
        return verify(f"{dataset}:{newest.version}", data_dir)
    assert recipe is not None
    return release(
        dataset,
        version or (_following(newest, recipe) if newest else "1.0.0"),
        recipe,
        data_dir=data_dir,
        parent=newest.version if newest else None,
        max_reject_share=max_reject_share,
        execution=execution,
        gate=gate,
    )


def can_be_added(dataset: str) -> Callable[[Path], bool] | None:
    """Which files, by their names, can be added to a dataset; None where none can."""
    name, _, config = dataset.partition("/")
    if name == "trials":
        return lambda path: bool(suffix_of(path))
    return is_raw_file if name == "pd1" and config in PD1 else None


def _newest(dataset: str, data_dir: Path | None) -> Version | None:
    if can_be_added(dataset) is None:
        raise InvalidInputError(
            f"nothing can be added to {dataset}", fix="add to trials/<name>, pd1/mini or pd1/release"
        )
    try:
        return find(dataset, data_dir)
    except NotAvailableError:
        if dataset.startswith("pd1/"):
            raise
        return None


def _following(newest: Version, recipe: Recipe) -> str:
    """The number after the newest version's where records are added, or nothing changes that decides them."""
    manifest = read_manifest(newest.folder)
    held = {file.sha256 for file in manifest.raw_files}
    is_same = recipe.parameters == manifest.parameters and all(
        file.sha256 in held for file in recipe.raw_files
    )
    return next_version(newest.version, "patch" if is_same else "minor")


def _extended_trials(
    dataset: str, newest: Version | None, files: Sequence[Path], space: Path | None, _: Path | None
) -> Recipe | None:
    if space is not None and not space.is_file():
        raise InvalidInputError("no such file", where=str(space), fix="give a space file that exists")
    if newest is None:
        if space is None:
            raise InvalidInputError(
                f"{dataset} is new, and nothing says what its columns mean",
                fix="give a space file: space, or --space",
            )
        return trials_recipe(_new_files(files, ()), space)
    kept, kept_space = raw_in(newest.folder / KEPT_FOLDER)
    new = _new_files(files, kept)
    if not new and (space is None or read_space_file(space) == read_space_file(kept_space)):
        return None
    return trials_recipe([*kept, *new], space or kept_space)


def _extended_pd1(
    dataset: str, newest: Version | None, files: Sequence[Path], space: Path | None, data_dir: Path | None
) -> Recipe | None:
    assert newest is not None
    if space is not None:
        raise InvalidInputError(
            "a space file", where=str(space), fix=f"leave it out: {dataset} has the space of the release"
        )
    kept = newest.folder / KEPT_FOLDER
    parent = kept if kept.is_dir() else _raw_of(newest, data_dir)
    new = _new_files(files, [path for path in sorted(parent.iterdir()) if is_raw_file(path)])
    return pd1_recipe(dataset.partition("/")[2], parent, new) if new else None


def _raw_of(version: Version, data_dir: Path | None) -> Path:
    """The raw files that a version was made from, where they are still at hand.

    Raises:
      NotAvailableError: they are not.
    """
    folder = raw_folder(version.dataset, version.version, data_dir)
    recorded = {file.name: file.sha256 for file in read_manifest(version.folder).raw_files}
    for path in sorted(folder.iterdir()):
        if is_raw_file(path) and recorded.get(path.name) != sha256_of(path):
            raise NotAvailableError(
                f"{path} is not what {version.dataset}:{version.version} was made from; build it again from "
                "raw files that are at hand"
            )
    return folder


def _new_files(files: Sequence[Path], kept: Sequence[Path]) -> list[Path]:
    """Those of the files whose content is neither kept already nor that of another one."""
    held = {sha256_of(path): path for path in kept}
    names = {path.name for path in kept}
    new = []
    for path in files:
        if not path.is_file():
            raise InvalidInputError("no such file", where=str(path), fix="give files that exist")
        same = held.setdefault(sha256_of(path), path)
        if same != path:
            _LOGGER.info("%s holds what %s holds already; left out", path, same)
            continue
        if path.name in names:
            raise InvalidInputError(
                f"another file {path.name} was added before",
                where=str(path),
                fix="rename it: a record names the file it was read from",
            )
        new.append(path)
    return new
