"""Studies in a database of Optuna, read with Optuna's own storage and without writing to it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hyperbo.data.warping import Direction
from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.storage.installation import require_extras
from hyperbo_pipelines.histories.draft import ParameterDraft
from hyperbo_pipelines.histories.files import MOST_RUNS, name_text, number
from hyperbo_pipelines.histories.guess import guess_role
from hyperbo_pipelines.histories.history import Objective, Run, RunStatus, Study
from hyperbo_pipelines.histories.merge import merge

# Optuna's name of the system attribute that `Study.set_metric_names` writes.
_METRIC_NAMES = "study:metric_names"
_STATUSES: Mapping[str, RunStatus] = {
    "COMPLETE": "done",
    "PRUNED": "pruned",
    "FAIL": "failed",
    "RUNNING": "running",
    "WAITING": "running",
}


def read_optuna(url: str) -> list[Study]:
    """Read all studies of an Optuna database.

    Args:
      url: of the database, as Optuna's storages take it, such as `sqlite:///runs.db`.

    Returns:
      The studies, by name.

    Raises:
      InvalidInputError: there is no such database, it is not Optuna's, it has another schema than the
        installed Optuna, or it has no study.
      MissingExtraError: Optuna is not installed.
      NotAvailableError: the driver of the database is not installed.
    """
    require_extras("optuna", purpose="a database of Optuna")
    from optuna.storages import RDBStorage
    from sqlalchemy.exc import SQLAlchemyError

    address, where = _read_only(url)
    try:
        version = _written_by(address, where)
        storage = RDBStorage(address, skip_compatibility_check=True, skip_table_creation=True)
        try:
            _check_schema(storage, version, url if "@" not in url else where, where)
            studies = sorted(storage.get_all_studies(), key=lambda each: each.study_name)
            if not studies:
                raise InvalidInputError("the database has no study", where=where, fix="give another one")
            return [
                _study(each, storage.get_all_trials(each._study_id, deepcopy=False), version, where)
                for each in studies
            ]
        finally:
            storage.remove_session()
            storage.engine.dispose()
    except SQLAlchemyError as error:
        reason = str(error).splitlines()[0]
        raise InvalidInputError(
            f"cannot be read: {reason}", where=where, fix="give an Optuna database that can be opened"
        ) from error
    except ImportError as error:
        raise NotAvailableError(f"{where}: the driver of the database is missing: {error}") from error


def _read_only(url: str) -> tuple[str, str]:
    """The address by which a database is opened to be read only, and its name for messages."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise InvalidInputError(
            "not the address of a database", where=url, fix="write one such as sqlite:///runs.db"
        ) from error
    if parsed.get_backend_name() != "sqlite":
        return url, parsed.render_as_string(hide_password=True)
    path = Path(parsed.database or ":memory:")
    if not path.is_file():
        # SQLite would make a new, empty one.
        raise InvalidInputError("there is no such database", where=str(path), fix="give one that exists")
    return f"sqlite:///file:{quote(str(path.absolute()))}?mode=ro&uri=true", str(path)


def _written_by(address: str, where: str) -> str:
    """The version of Optuna that made a database. Without its tables, Optuna's storage would write some."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(address)
    try:
        names = set(sqlalchemy.inspect(engine).get_table_names())
        if not {"studies", "trials", "version_info", "alembic_version"} <= names:
            raise InvalidInputError("not a database of Optuna", where=where, fix="give one that Optuna wrote")
        with engine.connect() as connection:
            found = connection.execute(sqlalchemy.text("select library_version from version_info")).scalar()
            revision = connection.execute(sqlalchemy.text("select version_num from alembic_version")).scalar()
            # Before any is read: Optuna's storage counts trials by reading all of them.
            count = connection.execute(sqlalchemy.text("select count(*) from trials")).scalar() or 0
        _check_size(count, where)
        if not found or not revision:
            raise InvalidInputError(
                "the database does not say which Optuna wrote it",
                where=where,
                fix="open it with Optuna once, and try again",
            )
        return str(found)
    finally:
        engine.dispose()


def _check_schema(storage: Any, version: str, url: str, where: str) -> None:
    import optuna

    current, head = storage.get_current_version(), storage.get_head_version()
    if current == head:
        return
    installed = f"the installed Optuna {optuna.__version__}"
    if current not in storage.get_all_versions():
        raise InvalidInputError(
            f"the tables of the database have the schema {current}, which {installed} does not know; its "
            f"newest is {head}",
            where=where,
            fix="install a newer Optuna",
        )
    raise InvalidInputError(
        f"the tables of the database, made by Optuna {version}, have the schema {current}, and {installed} "
        f"reads {head}",
        where=where,
        fix=f"copy it, and run: optuna storage upgrade --storage {url}",
    )


def _check_size(count: int, where: str) -> None:
    if count > MOST_RUNS:
        raise InvalidInputError(
            f"the database has {count} trials, and at most {MOST_RUNS} are read",
            where=where,
            fix="copy some of its studies to another database",
        )


def _study(study: Any, trials: Iterable[Any], version: str, where: str) -> Study:
    directions: list[Direction | None] = [
        {1: "minimize", 2: "maximize"}.get(each.value)
        for each in study.directions  # type: ignore[misc]
    ]
    names = study.system_attrs.get(_METRIC_NAMES)
    if not names:
        names = ["value"] if len(directions) == 1 else [f"value_{place}" for place in range(len(directions))]
    drafts: dict[str, ParameterDraft] = {}
    seen: dict[str, list[Any]] = {}
    runs = []
    place = f"{where}: study {study.study_name}"
    for trial in trials:
        for name, distribution in trial.distributions.items():
            known = seen.setdefault(name, [])
            if distribution not in known:
                known.append(distribution)
                draft = _draft(name_text(name, "a parameter", place), distribution)
                drafts[name] = merge(drafts[name], draft, place) if name in drafts else draft
        runs.append(_run(trial, names))
    return Study(
        "Optuna",
        version,
        study.study_name,
        tuple(runs),
        tuple(Objective(name, direction) for name, direction in zip(names, directions, strict=True)),
        tuple(drafts.values()),
        dict(study.user_attrs),
        where,
    )


def _draft(name: str, distribution: Any) -> ParameterDraft:
    role = guess_role(name)
    kind = type(distribution).__name__
    if kind == "CategoricalDistribution":
        levels = tuple(distribution.choices)
        if len(levels) == 1:
            return ParameterDraft(name, "constant", levels=levels, role=role)
        if len(levels) == 2 and set(map(type, levels)) == {bool}:
            return ParameterDraft(name, "boolean", role=role)
        return ParameterDraft(name, "choice", levels=levels, role=role)
    if distribution.low == distribution.high:
        return ParameterDraft(name, "constant", levels=(distribution.low,), role=role)
    is_integer = kind == "IntDistribution"
    step = 0.0 if is_integer and distribution.step == 1 else distribution.step or 0.0
    return ParameterDraft(
        name,
        "integer" if is_integer else "real",
        distribution.low,
        distribution.high,
        "log" if distribution.log else "linear",
        role=role,
        step=step,
    )


def _run(trial: Any, names: list[str]) -> Run:
    status = _STATUSES[trial.state.name]
    steps = sorted(trial.intermediate_values.items())
    # Of a trial that was pruned or failed, Optuna has the values that it reported on its way.
    values = trial.values or ([steps[-1][1]] if steps and len(names) == 1 else [])
    metrics = {name: number(value) for name, value in trial.user_attrs.items()}
    metrics = {name: value for name, value in metrics.items() if not math.isnan(value)}
    times = (trial.datetime_start, trial.datetime_complete)
    return Run(
        str(trial.number),
        status,
        trial.params,
        metrics | dict(zip(names, map(float, values), strict=False)),
        {names[0]: {float(step): float(value) for step, value in steps}} if steps else {},
        times[0].timestamp() if times[0] else math.nan,
        (times[1] - times[0]).total_seconds() if all(times) else math.nan,
        trial.user_attrs,
    )
