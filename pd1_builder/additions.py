"""Adding trials: the first version of a dataset of one's own, or the next."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from hyperbo.errors import InvalidInputError, NotAvailableError
from pd1_builder.catalog import find
from pd1_builder.manifest import Manifest
from pd1_builder.releases import KEPT_FOLDER, release
from pd1_builder.semver import next_version
from pd1_builder.trials.recipe import raw_in, trials_recipe
from pd1_builder.verification import verify
from pipelines.execution import Execution
from pipelines.raw_files import sha256_of

_LOGGER = logging.getLogger(__name__)


def add(
    name: str,
    files: Sequence[Path],
    space: Path | None = None,
    *,
    version: str | None = None,
    data_dir: Path | None = None,
    max_reject_share: float = 0.001,
    execution: Execution | None = None,
) -> Manifest:
    """Make a version of the dataset `trials/<name>` of files of trials, added to those it has already.

    A version keeps the files it was made from: the next is made of them and the new ones together.

    Args:
      name: of the dataset: small letters, digits and underscores.
      files: JSON lines or CSV, both gzipped or not, or Parquet.
      space: the space file; None for that of the newest version.
      version: semantic version to make; None for 1.0.0, or the next after the newest that adds records.
      data_dir: where versions are kept; None for `catalog.default_data_dir`.
      max_reject_share: largest share of rows that may be rejected.
      execution: where Beam runs; None for this process.

    Returns:
      The manifest of the version made; of the newest, where it holds all these files already.

    Raises:
      InvalidInputError: a file cannot be used; names file, line and field.
      VersionConflictError: as `releases.build`.
    """
    dataset = f"trials/{name}"
    if space is not None and not space.is_file():
        raise InvalidInputError("no such file", where=str(space), fix="give a space file that exists")
    try:
        newest = find(dataset, data_dir)
    except NotAvailableError:
        newest = None
    if newest is None:
        if space is None:
            raise InvalidInputError(
                f"{dataset} is new, and nothing says what its columns mean", fix="give a space file"
            )
        recipe = trials_recipe(_new_files(files, ()), space)
        return release(
            dataset,
            version or "1.0.0",
            recipe,
            data_dir=data_dir,
            max_reject_share=max_reject_share,
            execution=execution,
        )
    kept, kept_space = raw_in(newest.folder / KEPT_FOLDER)
    new = _new_files(files, kept)
    same_space = space is None or sha256_of(space) == sha256_of(kept_space)
    if not new and same_space:
        _LOGGER.info("%s:%s holds these files already; nothing to do", dataset, newest.version)
        return verify(f"{dataset}:{newest.version}", data_dir)
    return release(
        dataset,
        version or next_version(newest.version, "minor"),
        trials_recipe([*kept, *new], space or kept_space),
        data_dir=data_dir,
        parent=newest.version,
        max_reject_share=max_reject_share,
        execution=execution,
    )


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
