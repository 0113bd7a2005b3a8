"""Adding the histories of other tuning tools to a dataset of trials, and drafting space files."""

from __future__ import annotations

import logging
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hyperbo_pipelines.histories import (
    SPACE_FILE,
    Options,
    Table,
    draft_of_rows,
    is_rows,
    make_table,
    read_histories,
    tried,
    write_rows,
    write_space_file,
)
from hyperbo_pipelines.trials.space_file import read_space_file

from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.storage.paths import StrPath, as_path
from hyperbo.storage.printable import count
from pd1_builder.release.build_version import KEPT_FOLDER
from pd1_builder.release.next_version import add
from pd1_builder.trials.recipe import raw_in
from pd1_builder.version.catalog import find
from pd1_builder.version.manifest import Manifest

_LOGGER = logging.getLogger(__name__)


def add_sources(
    name: str,
    sources: Sequence[StrPath],
    space: StrPath | None = None,
    *,
    options: Options | None = None,
    data_dir: StrPath | None = None,
    **settings: Any,
) -> Manifest:
    """Build the version of a dataset that has more trials: `add`, also for what other tuning tools recorded.

    A history becomes one file of rows for each task. The first version is described by the draft of a space
    file, later ones by the space file of the newest version.

    Args:
      name: as in `add`.
      sources: files of rows; or histories: addresses of databases, files and folders of other tools.
      space: as in `add`. For a history it may be left out.
      options: what the caller says of a history.
      data_dir: as in `add`.
      settings: further arguments of `add`.

    Returns:
      The manifest of the new version; or of the newest one, if it already holds all these trials.

    Raises:
      InvalidInputError: as in `add`; or files of rows and histories are mixed, a history cannot be read, or
        the dataset takes none.
      NotAvailableError: as in `add`; or Optuna is missing.
      VersionConflictError: as in `add`.
    """
    options, space = options or Options(), None if space is None else as_path(space, "space")
    sources = _texts(sources)
    rows = [source for source in sources if is_rows(source)]
    if rows and len(rows) < len(sources):
        raise InvalidInputError(
            f"{rows[0]} is a file of rows, and other sources are histories",
            fix="add them one after the other",
        )
    if rows:
        if options != Options():
            raise InvalidInputError(
                "--task, --objective and --direction are for the histories of tuning tools",
                fix="say it in the space file",
            )
        files = [Path(source) for source in sources]
        return _with_results(add(name, files, space, data_dir=data_dir, **settings))
    dataset = name if "/" in name else f"trials/{name}"
    if not dataset.startswith("trials/"):
        raise InvalidInputError(f"{dataset} takes no histories", fix="add to trials/<name>")
    known = space or _kept_space(dataset, data_dir)
    # A space file that is given says itself which trials have a value.
    table = make_table(read_histories(sources), options, strict=known is None)
    _report(table)
    with tempfile.TemporaryDirectory(prefix="histories-") as made:
        folder = Path(made)
        given = known or write_space_file(table, folder)
        with _naming(_places(table, folder)):
            description = read_space_file(given)
        files = write_rows(table, folder, description)
        with _naming(_places(table, folder, files)):
            manifest = add(name, files, given, data_dir=data_dir, **settings)
    return _with_results(manifest)


def draft_space(sources: Sequence[StrPath], options: Options | None = None) -> str:
    """Draft the space file of files of rows or of histories, with a comment on each guess.

    The draft is tried on the data first; its head says how many rows it rejects.

    Args:
      sources: as in `add_sources`.
      options: what the caller says. For rows, `task` is the name of a column.

    Returns:
      The draft as TOML.

    Raises:
      InvalidInputError: a source cannot be read, or nothing can be guessed of it.
      NotAvailableError: Optuna is missing.
    """
    options, sources = options or Options(), _texts(sources)
    paths = [Path(source) for source in sources if is_rows(source)]
    if paths and len(paths) < len(sources):
        raise InvalidInputError(
            f"{paths[0]} is a file of rows, and other sources are histories", fix="draft two space files"
        )
    if paths:
        return tried(draft_of_rows(paths, options), paths).to_toml()
    table = make_table(read_histories(sources), options, strict=False)
    _report(table)
    with tempfile.TemporaryDirectory(prefix="histories-") as made:
        folder = Path(made)
        with _naming(_places(table, folder)):
            description = read_space_file(write_space_file(table, folder))
        files = write_rows(table, folder, description)
        with _naming(_places(table, folder, files)):
            return tried(table.draft, files).to_toml()


def _texts(sources: Sequence[StrPath] | StrPath) -> list[str]:
    """Addresses and paths as texts; a single one is a list of one."""
    several = [sources] if isinstance(sources, str | os.PathLike) else sources
    return [str(each) if isinstance(each, str) else str(as_path(each, "sources")) for each in several]


def _kept_space(dataset: str, data_dir: StrPath | None) -> Path | None:
    """The space file of the newest version; None if there is no version."""
    try:
        newest = find(dataset, data_dir)
    except NotAvailableError:
        return None
    return raw_in(newest.folder / KEPT_FOLDER)[1]


@contextmanager
def _naming(places: Mapping[str, str]) -> Iterator[None]:
    """Errors name the places of a history in place of the files that were made of it for a moment."""
    try:
        yield
    except InvalidInputError as error:
        what, where, fix = error.what, error.where, error.fix
        for written, place in places.items():
            what, where, fix = (text.replace(written, place) for text in (what, where, fix))
        raise InvalidInputError(what, where=where, fix=fix) from error


def _places(table: Table, folder: Path, files: Sequence[Path] = ()) -> dict[str, str]:
    """The places of a history by the files made of it: by their paths first, then by their names."""
    sources = ", ".join(dict.fromkeys(place.source for place in table.places.values()))
    by_file = {path: str(table.places[task]) for path, task in zip(files, table.rows, strict=False)}
    return (
        {str(folder / SPACE_FILE): f"{sources}: draft of a space file"}
        | {str(path): place for path, place in by_file.items()}
        | {path.name: place for path, place in by_file.items()}
    )


def _with_results(manifest: Manifest) -> Manifest:
    """A manifest; the log says so if no trial of its version has a result."""
    endings = Counter[str]()
    for counts in manifest.counts.get("trials", {}).values():
        endings.update(counts)
    if endings and not endings["done"]:
        listed = ", ".join(f"{number} {status}" for status, number in sorted(endings.items()))
        _LOGGER.warning(
            "%s: no trial has a result, so no prior can be trained: %s", manifest.reference, listed
        )
    return manifest


def _report(table: Table) -> None:
    trials, tasks = count(sum(map(len, table.rows.values())), "trial"), count(len(table.rows), "task")
    skipped = "".join(f"; left out: {number} ({reason})" for reason, number in table.skipped.items())
    _LOGGER.info("%s: %s of %s%s", ", ".join(table.tools), trials, tasks, skipped)
    if table.undeclared:
        reasons = "; ".join(f"{name} ({reason})" for name, reason in table.undeclared.items())
        _LOGGER.warning("left out, because no space file can declare it: %s", reasons)
    if len(table.rows) == 1:
        _LOGGER.warning(
            "all trials are of one task, %r: a prior needs several; --task says what names the task",
            next(iter(table.rows)),
        )
