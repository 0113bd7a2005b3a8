"""Which tool wrote a file, a folder or a database, and reading it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hyperbo.errors import HyperBOError, InvalidInputError
from hyperbo_pipelines.histories.files import read_json, sqlite_database, tables
from hyperbo_pipelines.histories.history import Study
from hyperbo_pipelines.histories.tools import (
    ax,
    keras_tuner,
    mlflow,
    ray_tune,
    smac,
    syne_tune,
    vizier,
    wandb,
)
from hyperbo_pipelines.trials.rows import suffix_of

TOOLS = "Optuna, Ax, Syne Tune, Ray Tune, SMAC, Vizier, Weights & Biases, MLflow or KerasTuner"
_SQLITE = b"SQLite format 3\x00"
_DEEPEST = 4
_MOST_FOLDERS = 100_000
_PICKLES = (".pkl", ".pickle", ".dill")
_Reader = Callable[[Path], list[Study]]


def is_rows(source: str) -> bool:
    """Whether a source is a file of rows: JSON lines, CSV or Parquet.

    >>> is_rows("trials.csv"), is_rows("sqlite:///runs.db"), is_rows("result.json")
    (True, False, False)
    """
    return "://" not in source and bool(suffix_of(Path(source)))


def read_histories(sources: Sequence[str]) -> list[Study]:
    """Read the histories of databases, files and folders, whatever tools wrote them.

    Args:
      sources: addresses of databases, such as `sqlite:///runs.db`; files; or folders, also those that hold
        folders of several studies.

    Raises:
      InvalidInputError: a source is absent, is of no tool that is read, or is damaged.
      NotAvailableError: Optuna, or a driver of databases, is missing.
    """
    return [study for source in sources for study in _read(source)]


def _read(source: str) -> list[Study]:
    """Read one source; whatever a reader did not expect of a stranger's file is one line, too."""
    try:
        return list(_read_any(source))
    except HyperBOError:
        raise
    except (
        ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError
    ) as error:  # fmt: skip
        raise InvalidInputError(
            f"not as the tool writes it: {error!r}",
            where=source,
            fix="give the tool's own files, unchanged, or write the trials to a CSV file",
        ) from error


def _read_any(source: str) -> Iterator[Study]:
    if "://" in source and not source.startswith("sqlite"):
        yield from _optuna(source)
        return
    # Three slashes and a relative path, or four and an absolute one.
    path = Path(source.split(":///", 1)[1] if ":///" in source else source)
    if path.is_dir():
        found = list(_in_folder(path))
        if not found:
            raise _unknown(source, "the folder holds no history")
        for reader, folder in found:
            yield from reader(folder)
    elif not path.is_file():
        raise InvalidInputError(
            "there is no such file, folder or database", where=source, fix="give one that exists"
        )
    elif path.suffix in _PICKLES:
        raise InvalidInputError(
            "a pickle can run code, so it is not read", where=source, fix="give the folder that it lies in"
        )
    else:
        yield from _read_file(path, source)


def _read_file(path: Path, source: str) -> Iterator[Study]:
    with path.open("rb") as stream:
        is_database = stream.read(len(_SQLITE)) == _SQLITE
    if is_database:
        yield from _read_database(path)
    elif path.name == smac.HISTORY:
        yield from smac.read_smac(path.parent)
    elif path.name == keras_tuner.ORACLE:
        yield from keras_tuner.read_keras_tuner(path.parent)
    elif path.name == syne_tune.RESULTS:
        yield from syne_tune.read_syne_tune(path.parent)
    elif path.suffix == ".json" and ax.is_ax(_json_or_none(path)):
        yield from ax.read_ax(path)
    else:
        raise _unknown(source, "no known tool wrote this file")


def _read_database(path: Path) -> list[Study]:
    with sqlite_database(path) as connection:
        names = tables(connection)
    if {"studies", "trials", "version_info"} <= names:
        return _optuna(f"sqlite:///{path}")
    if {"owners", "studies", "trials"} <= names:
        return vizier.read_vizier(path)
    if {"experiments", "runs", "params", "metrics"} <= names:
        return mlflow.read_mlflow(path)
    listed = ", ".join(sorted(names)[:8]) or "none"
    raise _unknown(str(path), f"the database is of none of the tools that are read: its tables are {listed}")


def _optuna(url: str) -> list[Study]:
    from hyperbo_pipelines.histories.tools.optuna_database import read_optuna

    return read_optuna(url)


def _in_folder(folder: Path) -> Iterator[tuple[_Reader, Path]]:
    """The histories in a folder and in those below it, in the order of their names, without links."""
    for seen, (root, inner, names) in enumerate(os.walk(folder)):
        inner.sort()
        if seen > _MOST_FOLDERS:
            raise _unknown(str(folder), f"it holds more than {_MOST_FOLDERS} folders")
        path = Path(root)
        found = _of_folder(path, set(names))
        if found:
            yield found
        if found or len(path.relative_to(folder).parts) >= _DEEPEST:
            inner.clear()
        for name in sorted(names):
            if name.endswith(".json") and not found and ax.is_ax(_json_or_none(path / name)):
                yield ax.read_ax, path / name


def _of_folder(path: Path, names: set[str]) -> tuple[_Reader, Path] | None:
    if smac.HISTORY in names:
        return smac.read_smac, path
    if keras_tuner.ORACLE in names:
        return keras_tuner.read_keras_tuner, path
    if syne_tune.RESULTS in names:
        return syne_tune.read_syne_tune, path
    if any(path.glob(ray_tune.STATE)):
        return ray_tune.read_ray_tune, path
    if any(path.glob(wandb.LOGS)):
        return wandb.read_wandb, path
    if any(path.glob("*/meta.yaml")):
        return mlflow.read_mlflow, path
    return None


def _json_or_none(path: Path) -> Any:
    try:
        return read_json(path)
    except InvalidInputError:
        return None


def _unknown(source: str, what: str) -> InvalidInputError:
    return InvalidInputError(
        what,
        where=source,
        fix=f"give a history of {TOOLS}, or rows as JSON lines, CSV or Parquet with a space file",
    )
