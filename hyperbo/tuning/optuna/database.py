"""Runs in a database, through Optuna's storages, with readable errors."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

from optuna.exceptions import StorageInternalError
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, InMemoryStorage, RDBStorage
from optuna.study import Study, create_study
from sqlalchemy import event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from hyperbo.compute.checkpoints import differences
from hyperbo.errors import InvalidInputError, VersionConflictError
from hyperbo.storage.staging import lock

_IDENTITY = "hyperbo:identity"
# Another process may hold an SQLite file while it writes; this is far longer than any write takes.
_SQLITE_SECONDS = 30
# What says that a study was made or found, and what brings tables up to date.
_LOGGERS = (
    "optuna.study.study",
    "optuna.storages._rdb.storage",
    "optuna.storages._in_memory",
    "optuna.storages.journal._storage",
    "alembic.runtime.migration",
)
_IS_QUIET = ContextVar("is_quiet", default=False)


def opened_study(
    name: str,
    storage: str | BaseStorage | Any | None,
    sampler: BaseSampler,
    direction: Literal["minimize", "maximize"],
    identity: Mapping[str, Any],
) -> Study:
    """Open a run, or begin a new one.

    Raises:
      InvalidInputError: the database cannot be used, or the run has another direction.
      VersionConflictError: the run was begun with another identity. The message says what differs.
    """
    if not isinstance(storage, str | BaseStorage | None):
        address = (
            f"sqlite:///{os.fspath(storage)}" if isinstance(storage, os.PathLike) else "sqlite:///runs.db"
        )
        raise InvalidInputError(
            f"storage = {storage!r:.60}", fix=f"give an address such as {address!r}, or a storage of Optuna"
        )
    with _said(_shown(storage)), _alone(storage), _quiet():
        study = create_study(
            study_name=name,
            storage=_opened(storage),
            sampler=sampler,
            direction=direction,
            load_if_exists=True,
        )
        if study.direction.name.lower() != direction:
            raise InvalidInputError(
                f"run {name!r} is to {study.direction.name.lower()}, the prior's objective to {direction}",
                fix="use another name",
            )
        found = study.user_attrs.get(_IDENTITY)
        if found is None and not study.get_trials(deepcopy=False):
            study.set_user_attr(_IDENTITY, dict(identity))
            found = identity
    if found is None:
        raise VersionConflictError(
            f"run {name!r} was not begun by a tuner; give another name, such as name={f'{name}-2'!r}"
        )
    different = differences(found, dict(identity))
    if different:
        raise VersionConflictError(
            f"run {name!r} was begun otherwise: {'; '.join(different)}; use another name, and add its trials"
        )
    return study


def place_of(study: Study) -> str:
    """Where a study is kept: the address without its password, or `memory`."""
    storage = getattr(study._storage, "_backend", study._storage)
    return "memory" if isinstance(storage, InMemoryStorage) else _shown(getattr(storage, "url", None))


@contextmanager
def database_errors(study: Study) -> Iterator[None]:
    """Turn errors of a study's database into one readable error.

    Raises:
      InvalidInputError: the database cannot be used.
    """
    storage = getattr(study._storage, "_backend", study._storage)
    with _said(_shown(getattr(storage, "url", None))):
        yield


@contextmanager
def _said(where: str) -> Iterator[None]:
    try:
        yield
    except (StorageInternalError, SQLAlchemyError, ImportError, OSError) as error:
        cause = error.__cause__ if isinstance(error, StorageInternalError) and error.__cause__ else error
        reason = str(getattr(cause, "orig", None) or cause).splitlines()[0]
        fix = "check that it exists, is whole, and may be written"
        if isinstance(error, ImportError):
            fix = "install the driver of this kind of database"
        elif isinstance(error, OSError) and error.filename:
            reason = f"{error.strerror} in {Path(error.filename).parent}"
            fix = "choose another folder, or make this one writable"
        elif "locked" in reason:
            fix = "release it"
        raise InvalidInputError(f"the database cannot be used: {reason}", where=where, fix=fix) from error


def _opened(storage: str | BaseStorage | None) -> BaseStorage:
    if storage is None:
        return InMemoryStorage()
    if isinstance(storage, BaseStorage):
        return storage
    url = address_of(storage)
    if url.get_backend_name() != "sqlite":
        return RDBStorage(storage)
    patience = {} if "timeout" in url.query else {"connect_args": {"timeout": _SQLITE_SECONDS}}
    opened = RDBStorage(storage, engine_kwargs=patience)
    # Optuna checks whether a trial is running, and then writes. With SQLite's default two processes could do
    # so at once, and one result would be lost. So a transaction takes the right to write when it begins.
    event.listen(opened.engine, "connect", _leave_transactions_to_us)
    event.listen(opened.engine, "begin", _begin_writing)
    opened.engine.dispose()
    return opened


def _leave_transactions_to_us(connection: Any, record: Any) -> None:
    connection.isolation_level = None


def _begin_writing(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


@contextmanager
def _alone(storage: str | BaseStorage | None) -> Iterator[None]:
    """Let only one process at a time create the tables of an SQLite file and begin a run in it."""
    url = address_of(storage) if isinstance(storage, str) else None
    is_file = url is not None and url.get_backend_name() == "sqlite" and url.database
    file = Path(str(url.database)) if url is not None and is_file else None
    if file is None or not file.parent.is_dir():
        yield
        return
    with lock(file, lambda: None):
        _require_own(file)
        yield


def address_of(storage: str) -> URL:
    """An address, taken apart.

    Raises:
      InvalidInputError: it is none.
    """
    try:
        return make_url(storage)
    except ArgumentError as error:
        # What may hold a password is not shown.
        is_file = not set(storage) & set("@:")
        raise InvalidInputError(
            f"{storage!r} is no address of a database" if is_file else "this is no address of a database",
            where="storage",
            fix=f"write sqlite:///{storage if is_file else 'runs.db'}",
        ) from error


def _require_own(file: Path) -> None:
    """Refuse a database of SQLite that another tool made: Optuna would write its tables into it.

    Raises:
      InvalidInputError: there are tables, and none of Optuna's.
    """
    if not file.is_file():
        return
    with (
        closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection,
        suppress(
            sqlite3.Error  # what is damaged or locked is said when it is opened
        ),
    ):
        tables = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if tables and not tables & {"studies", "version_info"}:
            raise InvalidInputError(
                f"this is a database of another tool, with the tables {', '.join(sorted(tables)[:3])}",
                where=str(file),
                fix="give the runs a file of their own, such as sqlite:///runs.db",
            )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep to ourselves what Optuna and Alembic log below a warning; other threads log as before."""
    for name in _LOGGERS:
        # A filter that is there already is not added again.
        logging.getLogger(name).addFilter(_is_heard)
    token = _IS_QUIET.set(True)
    try:
        yield
    finally:
        _IS_QUIET.reset(token)


def _is_heard(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or not _IS_QUIET.get()


def _shown(storage: str | BaseStorage | None) -> str:
    """The address without its password."""
    if not isinstance(storage, str):
        return "storage"
    try:
        return make_url(storage).render_as_string(hide_password=True)
    except ArgumentError:
        return "storage"
