"""Databases of the installed Optuna: what is read of them, and what is refused."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import optuna
import pytest
from hyperbo_pipelines.histories import Options, make_table, read_histories
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from hyperbo.errors import InvalidInputError

SPACE: dict[str, Any] = {
    "rate": FloatDistribution(1e-4, 1.0, log=True),
    "layers": IntDistribution(1, 4),
    "optimizer": CategoricalDistribution(("sgd", "adam")),
    "depth": CategoricalDistribution((None, 3, "auto")),
}
MOMENTUM = FloatDistribution(0.0, 0.99)
START = datetime(2026, 1, 2, 3, 4, 5)


def values(place: int) -> dict[str, Any]:
    return {
        "rate": 10.0 ** -(place % 4),
        "layers": 1 + place % 4,
        "optimizer": ("adam", "sgd")[place % 2],
        "depth": (None, 3, "auto")[place % 3],
    }


def trial(place: int, **changes: Any) -> optuna.trial.FrozenTrial:
    params = values(place)
    distributions = dict(SPACE)
    if params["optimizer"] == "sgd":
        params["momentum"], distributions["momentum"] = 0.5, MOMENTUM
    made = create_trial(params=params, distributions=distributions, **({"value": place / 8} | changes))
    if made.state.is_finished():
        made.datetime_start, made.datetime_complete = START, START + timedelta(seconds=90)
    return made


def database(folder: Path, *studies: tuple[str, str, list[optuna.trial.FrozenTrial]]) -> str:
    url = f"sqlite:///{folder / 'runs.db'}"
    storage = optuna.storages.RDBStorage(url)
    for name, direction, trials in studies:
        optuna.create_study(storage=storage, study_name=name, direction=direction).add_trials(trials)
    storage.remove_session()
    storage.engine.dispose()
    return url


def execute(url: str, statement: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute(statement)
        connection.commit()


def test_trials_keep_their_meaning(tmp_path: Path) -> None:
    trials = [
        trial(0),
        trial(1, user_attrs={"test": 0.25, "host": "a"}),
        trial(2, value=math.inf),
        trial(3, value=None, state=TrialState.PRUNED, intermediate_values={1: 0.9, 2: 0.7}),
        trial(4, value=None, state=TrialState.FAIL),
        trial(5, value=None, state=TrialState.FAIL, intermediate_values={1: math.nan}),
        trial(6, value=None, state=TrialState.RUNNING),
        trial(7, value=None, state=TrialState.WAITING),
    ]
    url = database(tmp_path, ("net", "maximize", trials))
    (study,) = read_histories([url])
    assert (study.tool, study.version, study.name) == ("Optuna", optuna.__version__, "net")
    table = make_table([study], Options())
    assert (table.draft.objective, table.draft.direction) == ("value", "maximize")
    assert table.skipped == {"running": 2}
    rows = table.rows["net"]
    found = [(row["trial"], row["status"], row["value"]) for row in rows]
    assert found == [
        ("0", "done", 0.0),
        ("1", "done", 0.125),
        ("2", "diverged", math.inf),
        ("3", "pruned", 0.7),
        ("4", "failed", None),
        ("5", "diverged", None),
    ]
    assert [row["test"] for row in rows] == [None, 0.25, None, None, None, None]
    assert {row["seconds"] for row in rows} == {90.0}
    assert {row["started"] for row in rows} == {START.timestamp()}
    assert (rows[3]["curve.value"], rows[3]["curve.step"]) == ([0.9, 0.7], [1.0, 2.0])
    kinds = {each.name: (each.kind, each.levels) for each in table.draft.parameters}
    assert kinds["layers"] == ("integer", ())
    assert kinds["optimizer"] == ("choice", ("sgd", "adam"))
    # Levels of mixed types become texts.
    assert kinds["depth"] == ("choice", ("null", "3", "auto"))
    assert [row["parameters.depth"] for row in rows[:3]] == ["null", "3", "auto"]
    momentum = next(each for each in table.draft.parameters if each.name == "momentum")
    assert momentum.condition
    assert (momentum.condition.parameter, momentum.condition.values) == ("optimizer", ("sgd",))


def test_the_task_is_an_attribute_or_a_part_of_the_name(tmp_path: Path) -> None:
    url = database(
        tmp_path, ("net-seed0", "minimize", [trial(0)]), ("net-seed1", "minimize", [trial(1), trial(2)])
    )
    studies = read_histories([url])
    assert list(make_table(studies, Options()).rows) == ["net-seed0", "net-seed1"]
    table = make_table(studies, Options(task="(.+)-seed.*"))
    assert [row["trial"] for row in table.rows["net"]] == ["net-seed0/0", "net-seed1/0", "net-seed1/1"]
    with pytest.raises(
        InvalidInputError, match="the trial 0 of the study 'net-seed0' has no attribute 'data'"
    ):
        make_table(studies, Options(task="data"))
    with pytest.raises(InvalidInputError, match="'net-seed0' does not match"):
        make_table(studies, Options(task="(.+)-fold.*"))
    with pytest.raises(InvalidInputError, match="the task is '', not a name"):
        make_table(studies, Options(task="net-seed[01](.*)"))


def test_studies_of_other_ranges_are_joined_and_those_of_other_types_refused(tmp_path: Path) -> None:
    def one(distribution: Any, value: Any) -> optuna.trial.FrozenTrial:
        return create_trial(params={"a": value}, distributions={"a": distribution}, value=1.0)

    wide = database(
        tmp_path,
        ("x", "minimize", [one(FloatDistribution(0.1, 0.5), 0.2)]),
        ("y", "minimize", [one(FloatDistribution(0.3, 2.0, log=True), 0.4)]),
    )
    (a,) = make_table(read_histories([wide]), Options()).draft.parameters
    assert (a.lower, a.upper, a.scaling) == (0.1, 2.0, "log")
    (tmp_path / "other").mkdir()
    other = database(tmp_path / "other", ("z", "minimize", [one(CategoricalDistribution(("b", "c")), "b")]))
    with pytest.raises(
        InvalidInputError, match=r"'a' is a real \(0\.1 to 2\) in .* a choice \(\('b', 'c'\)\)"
    ):
        make_table(read_histories([wide, other]), Options())


def test_a_database_is_neither_made_nor_changed(tmp_path: Path) -> None:
    missing = tmp_path / "none.db"
    with pytest.raises(InvalidInputError, match=r"none\.db: there is no such"):
        read_histories([f"sqlite:///{missing}"])
    assert not missing.exists()
    url = database(tmp_path, ("net", "minimize", [trial(0)]))
    before = (tmp_path / "runs.db").read_bytes()
    (tmp_path / "runs.db").chmod(0o444)
    read_histories([url])
    assert (tmp_path / "runs.db").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs.db"]


REFUSED = {
    "newer": (
        "update alembic_version set version_num = 'v9.0.0'",
        r"have the schema v9\.0\.0, which the installed Optuna .* does not know; .* install a newer Optuna",
    ),
    "older": ("update alembic_version set version_num = 'v2.6.0.a'", "optuna storage upgrade --storage"),
    "no version": ("delete from alembic_version", "does not say which Optuna wrote it"),
    "foreign": ("drop table version_info", "none of the tools that are read: its tables are"),
    "no study": ("delete from studies", "the database has no study"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_database_that_cannot_be_read_is_one_line(tmp_path: Path, case: str) -> None:
    statement, message = REFUSED[case]
    url = database(tmp_path, ("net", "minimize", [trial(0)]))
    execute(url, statement)
    before = (tmp_path / "runs.db").read_bytes()
    with pytest.raises(InvalidInputError, match=message) as raised:
        read_histories([url])
    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path / "runs.db"))
    assert (tmp_path / "runs.db").read_bytes() == before


def test_a_password_is_not_shown() -> None:
    with pytest.raises(Exception, match=r"psycopg2|cannot be read|missing") as raised:
        read_histories(["postgresql://me:secret@127.0.0.1:1/runs"])
    assert "secret" not in str(raised.value)


def test_several_objectives_need_a_choice(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    study = optuna.create_study(storage=url, study_name="two", directions=["minimize", "maximize"])
    study.add_trial(trial(0, value=None, values=[0.5, 0.25]))
    studies = read_histories([url])
    with pytest.raises(InvalidInputError, match=r"several objectives: 'value_0', 'value_1'; .* --objective"):
        make_table(studies, Options())
    table = make_table(studies, Options(objective="value_1"))
    assert (table.draft.direction, table.rows["two"][0]["value_1"]) == ("maximize", 0.25)


def stepped(distribution: Any, *values: Any) -> list[optuna.trial.FrozenTrial]:
    return [create_trial(params={"a": each}, distributions={"a": distribution}, value=1.0) for each in values]


def test_a_step_of_more_values_than_an_ordinal_has_is_lost_with_a_comment(tmp_path: Path) -> None:
    url = database(tmp_path, ("x", "minimize", stepped(IntDistribution(0, 99, step=3), 3, 6)))
    (a,) = make_table(read_histories([url]), Options()).draft.parameters
    assert (a.kind, a.lower, a.upper) == ("integer", 0, 99)
    assert a.notes == (
        "It was searched in steps of 3 from 0 to 99. The step is lost, because these are 34 values: numbers "
        "between may be proposed.",
    )


def test_steps_of_several_studies_are_joined_if_they_fit(tmp_path: Path) -> None:
    url = database(
        tmp_path,
        ("x", "minimize", stepped(FloatDistribution(0.1, 0.4, step=0.1), 0.1, 0.1 + 0.2)),
        ("y", "minimize", stepped(FloatDistribution(0.2, 0.5, step=0.1), 0.2, 0.5)),
    )
    table = make_table(read_histories([url]), Options())
    (a,) = table.draft.parameters
    assert (a.kind, a.levels) == ("ordinal", (0.1, 0.2, 0.3, 0.4, 0.5))
    # 0.1 + 0.2 is not 0.3.
    assert [row["parameters.a"] for row in table.rows["x"]] == [0.1, 0.3]
    (tmp_path / "other").mkdir()
    other = database(
        tmp_path / "other", ("z", "minimize", stepped(FloatDistribution(0.0, 0.5, step=0.25), 0.25, 0.5))
    )
    (a,) = make_table(read_histories([url, other]), Options()).draft.parameters
    assert (a.kind, a.lower, a.upper) == ("real", 0.0, 0.5)
    assert "The steps of the studies differ and are lost" in a.notes[0]
