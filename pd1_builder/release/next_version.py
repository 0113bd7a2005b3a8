"""The next version of a dataset: trials are added to it, or its raw files are released anew."""

from __future__ import annotations

import logging
import os
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from hyperbo_pipelines.curate.raw_files import sha256_of
from hyperbo_pipelines.pd1.layout import is_addition, is_raw_file
from hyperbo_pipelines.run.execution import Execution
from hyperbo_pipelines.trials.rows import no_file, suffix_of
from hyperbo_pipelines.trials.space_file import read_space_file

from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.storage.paths import StrPath, as_path
from hyperbo.storage.printable import count
from pd1_builder.builder.recipe import Recipe
from pd1_builder.compare.diff import diff_folders
from pd1_builder.compare.release_checks import next_number
from pd1_builder.pd1.recipe import CONFIGURATIONS as PD1
from pd1_builder.pd1.recipe import pd1_recipe
from pd1_builder.release.build_version import KEPT_FOLDER, Gate, build_from_recipe, raw_digests
from pd1_builder.release.cumulative import new_rows
from pd1_builder.release.datasets import find_recipe, raw_folder
from pd1_builder.trials.recipe import raw_in, trials_recipe
from pd1_builder.version.catalog import Version, find, version_folder
from pd1_builder.version.manifest import Manifest, read_manifest
from pd1_builder.version.verification import verify

_LOGGER = logging.getLogger(__name__)
# A name that begins so is a whole dataset, not the name of a user's dataset.
_DATASETS = ("trials/", "pd1/", "hpob/", "bo_runs/")
# Names of files in a line of the log.
_SHOWN = 3


def add(
    name: str,
    files: Sequence[StrPath],
    space: StrPath | None = None,
    *,
    version: str | None = None,
    data_dir: StrPath | None = None,
    max_reject_share: float = 0.001,
    execution: Execution | None = None,
    gate: Gate | None = None,
) -> Manifest:
    """Build the version of a dataset that has more trials than the newest one.

    A version keeps the files that it was made from. The next one is made from them and the new files
    together.

    Args:
      name: the dataset. A name of small letters, digits and underscores means the dataset `trials/<name>`.
        `pd1/<config>` takes files in the layout of the PD1 release.
      files: the new files. For `trials/<name>`: JSON lines or CSV, both gzipped or not, or Parquet. For
        `pd1/<config>`: `pd1_unmatched_phase0_results-<anything>.jsonl.gz` and the like.
      space: the space file of `trials/<name>`; None for that of the newest version.
      version: number of the version to build. None for 1.0.0 if it is the first; else for a minor step, or
        for a patch step if only the description in the space file is new.
      data_dir: the data folder; None for `catalog.default_data_dir`.
      max_reject_share: largest share of rows that may be rejected.
      execution: where Beam runs; None for this process.
      gate: as in `build_from_recipe`.

    Returns:
      The manifest of the new version; or of the newest one, if it already holds all these files.

    Raises:
      InvalidInputError: a file cannot be used; the message names file, line and field. Or the gate refuses
        the version.
      NotAvailableError: there is no version of `pd1/<config>` to add to.
      VersionConflictError: the version exists, and is damaged or was made from other raw files; or its number
        does not follow from what changed since the newest version.
    """
    dataset = name if name.startswith(_DATASETS) else f"trials/{name}"
    newest = _newest(dataset, data_dir)
    if isinstance(files, str | os.PathLike):
        files = [files]
    paths = [as_path(each, "files") for each in files]
    description = None if space is None else as_path(space, "space")
    with tempfile.TemporaryDirectory(prefix="new-rows-") as scratch:
        if dataset.startswith("pd1/"):
            extension = _extend_pd1(dataset, newest, paths, description, data_dir)
        else:
            extension = _extend_trials(dataset, newest, paths, description, Path(scratch))
        if newest is not None and extension is None:
            _LOGGER.info("%s:%s holds these files already; nothing to do", dataset, newest.version)
            return verify(f"{dataset}:{newest.version}", data_dir)
        assert extension is not None
        return build_from_recipe(
            dataset,
            version or (_following_number(newest, extension) if newest else "1.0.0"),
            extension.recipe,
            data_dir=data_dir,
            parent=newest.version if newest else None,
            max_reject_share=max_reject_share,
            execution=execution,
            gate=gate,
        )


def next_release(
    dataset: str,
    raw: StrPath,
    *,
    data_dir: StrPath | None = None,
    max_reject_share: float = 0.001,
    execution: Execution | None = None,
    gate: Gate | None = None,
) -> Manifest:
    """Build the version after the newest one from the raw files of a new release.

    Its number follows from what changed, which is found by building a version in a temporary folder first.
    Trials that were added to the newest version are in the next one too.

    Args:
      dataset: `<name>/<config>`, one of `datasets.DATASETS`.
      raw: folder of the raw files, or the folder around it that an official archive has.
      data_dir: the data folder; None for `catalog.default_data_dir`.
      max_reject_share: largest share of rows that may be rejected.
      execution: where Beam runs; None for this process.
      gate: as in `build_from_recipe`.

    Returns:
      The manifest of the new version; or of the newest one, if its records are the same.

    Raises:
      InvalidInputError: the dataset is unknown, a raw file cannot be used, or the gate refuses the version.
      VersionConflictError: the newest version is damaged.
      HyperBOError: the disk is full, or rows were lost.
    """
    try:
        newest = find(dataset, data_dir)
    except NotAvailableError:
        newest = None
    recipe = _release_recipe(dataset, as_path(raw, "raw"), newest)
    make = partial(build_from_recipe, dataset, max_reject_share=max_reject_share, execution=execution)
    if newest is None:
        return make("1.0.0", recipe, data_dir=data_dir)
    if read_manifest(newest.folder).raw_files == raw_digests(recipe):
        return verify(f"{dataset}:{newest.version}", data_dir)
    with tempfile.TemporaryDirectory(prefix="next-release-") as scratch:
        trial_build = make("1.0.0", replace(recipe, kept={}), data_dir=Path(scratch))
        if trial_build.content_hash == read_manifest(newest.folder).content_hash:
            _LOGGER.info("%s:%s holds the same records already; nothing to do", dataset, newest.version)
            return verify(f"{dataset}:{newest.version}", data_dir)
        bump = diff_folders(newest.folder, version_folder(dataset, "1.0.0", Path(scratch))).bump
    number = next_number(newest.version, bump)
    return make(number, recipe, data_dir=data_dir, parent=newest.version, gate=gate)


def can_be_added(dataset: str) -> Callable[[Path], bool] | None:
    """Which files can be added to a dataset, judged by their names; None if the dataset takes no files."""
    name, _, config = dataset.partition("/")
    if name == "trials":
        return lambda path: bool(suffix_of(path))
    return is_raw_file if name == "pd1" and config in PD1 else None


def _newest(dataset: str, data_dir: StrPath | None) -> Version | None:
    if can_be_added(dataset) is None:
        raise InvalidInputError(
            f"{dataset} takes no files", fix="add to trials/<name>, pd1/mini or pd1/release"
        )
    try:
        return find(dataset, data_dir)
    except NotAvailableError:
        if dataset.startswith("pd1/"):
            raise
        return None


class _Extension(NamedTuple):
    """The recipe of the next version, and whether it has trials that the newest one has not."""

    recipe: Recipe
    has_new_trials: bool


def _following_number(newest: Version, extension: _Extension) -> str:
    """The number after the newest version's: a patch step if nothing that decides the records is new."""
    is_same = extension.recipe.parameters == read_manifest(newest.folder).parameters
    bump = "patch" if is_same and not extension.has_new_trials else "minor"
    return next_number(newest.version, bump)


def _extend_trials(
    dataset: str, newest: Version | None, files: Sequence[Path], space: Path | None, scratch: Path
) -> _Extension | None:
    if space is not None and not space.is_file():
        raise InvalidInputError(
            "there is no such space file", where=str(space), fix=f"draft it: {_draft(files, space)}"
        )
    if newest is None:
        if space is None:
            draft = Path("space.toml")
            raise InvalidInputError(
                f"{dataset} is new and has no space file, which says what its columns mean",
                fix=f"draft one, {_draft(files, draft)}, look at it, and give it by --space {draft}, "
                "or space= in Python",
            )
        found = new_rows((), _new_files(files, {}), read_space_file(space), scratch)
        if found.known:
            _LOGGER.info("%s: %s", dataset, found.summary)
        return _Extension(replace(trials_recipe(found.files, space), exports=found.exports), True)
    kept, kept_space = raw_in(newest.folder / KEPT_FOLDER)
    exports = read_manifest(newest.folder).exports
    held = {sha256_of(path): path.name for path in kept} | {each.sha256: each.name for each in exports}
    description = read_space_file(space or kept_space)
    new = _new_files(files, held)
    if not description.trial_id:
        _refuse_taken_names(new, kept)
    found = new_rows(kept, new, description, scratch)
    if new:
        unknown = "" if description.trial_id else "; the space file names no trial_id, so no row can be known"
        _LOGGER.info("%s: %s%s", dataset, found.summary, unknown)
    if not found.files and (space is None or description == read_space_file(kept_space)):
        return None
    recipe = trials_recipe([*kept, *found.files], space or kept_space)
    return _Extension(replace(recipe, exports=(*exports, *found.exports)), found.trials > 0)


def _draft(files: Sequence[Path], space: Path) -> str:
    """The command that drafts a space file of files of rows."""
    return shlex.join(["hyperbo", "data", "space", *map(str, files), "--out", str(space)])


def _extend_pd1(
    dataset: str, newest: Version | None, files: Sequence[Path], space: Path | None, data_dir: StrPath | None
) -> _Extension | None:
    assert newest is not None
    if space is not None:
        raise InvalidInputError(
            "a space file", where=str(space), fix=f"leave it out: {dataset} has the space of the release"
        )
    folder = newest.folder / KEPT_FOLDER
    parent = folder if folder.is_dir() else _raw_of(newest, data_dir)
    kept = [path for path in sorted(parent.iterdir()) if is_raw_file(path)]
    new = _new_files(files, {sha256_of(path): path.name for path in kept})
    _refuse_taken_names(new, kept)
    return _Extension(pd1_recipe(dataset.partition("/")[2], parent, new), True) if new else None


def _raw_of(version: Version, data_dir: StrPath | None) -> Path:
    """The folder of the raw files that a version was made from.

    Raises:
      NotAvailableError: these files are not available any more.
    """
    folder = raw_folder(version.dataset, version.version, data_dir)
    recorded = {file.name: file.sha256 for file in read_manifest(version.folder).raw_files}
    for path in sorted(folder.iterdir()):
        if is_raw_file(path) and recorded.get(path.name) != sha256_of(path):
            raise NotAvailableError(
                f"{path} has changed since {version.dataset}:{version.version} was made from it; build that "
                "version again from raw files that you have"
            )
    return folder


def _new_files(files: Sequence[Path], held: Mapping[str, str]) -> list[Path]:
    """The files without those whose content is held already or equals that of an earlier file.

    `held` has the names of the files that were added before, by their SHA-256.
    """
    held = dict(held)
    new, known = [], []
    for path in files:
        if not path.is_file():
            raise no_file(path)
        digest = sha256_of(path)
        if digest in held:
            known.append(path.name)
            continue
        held[digest] = path.name
        new.append(path)
    if known:
        more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
        shown = f"{', '.join(known[:_SHOWN])}{more}"
        _LOGGER.info("%d of %s left out, known by content: %s", len(known), count(len(files), "file"), shown)
    return new


def _refuse_taken_names(files: Sequence[Path], kept: Sequence[Path]) -> None:
    names = {path.name for path in kept}
    for path in files:
        if path.name in names:
            raise InvalidInputError(
                f"another file {path.name} was added before",
                where=str(path),
                fix="rename it, because a record names the file it was read from",
            )


def _release_recipe(dataset: str, raw: Path, newest: Version | None) -> Recipe:
    kept = newest.folder / KEPT_FOLDER if newest else None
    added = [path for path in sorted(kept.iterdir()) if is_addition(path)] if kept and kept.is_dir() else []
    folder = _folder_of_files(dataset, raw)
    if not dataset.startswith("pd1/"):
        return find_recipe(dataset, folder)
    recipe = pd1_recipe(dataset.partition("/")[2], folder, added)
    # Kept, because trials may be added later, when the archive may have changed.
    return replace(recipe, kept={file.path.name: file.path for file in recipe.raw_files})


def _folder_of_files(dataset: str, raw: Path) -> Path:
    """The folder itself, or the folder inside it in which an official archive has its files."""
    inside = raw / {"pd1": "pd1", "hpob": "hpob-data"}[dataset.partition("/")[0]]
    return inside if inside.is_dir() else raw
