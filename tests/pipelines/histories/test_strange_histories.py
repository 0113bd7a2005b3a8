"""Histories of strangers: whatever stands in their fields, reading them ends in one line or in a table."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hyperbo_pipelines.histories import Options, make_table, read_histories

from hyperbo.errors import InvalidInputError

RECORDED = Path(__file__).parent / "recorded"
STRANGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    0.5,
    1e999,
    "",
    "x",
    "\ud800",
    [],
    [None],
    {},
    {"a": None},
    10**30,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values within a JSON document."""
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [path] + [found for key, each in children for found in places(each, (*path, key))]


def changed(document: Any, draw: random.Random) -> Any:
    """A JSON document with one value that is another, or is missing."""
    path = draw.choice(places(document)[1:])
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    if draw.random() < 0.3:
        del inner[path[-1]]
    else:
        inner[path[-1]] = draw.choice(STRANGE)
    return document


def reads(source: str) -> None:
    """Read a source and make a table of it; an error must be one line."""
    message = ""
    try:
        make_table(read_histories([source]), Options())
    except InvalidInputError as error:
        message = str(error)
    assert "\n" not in message


CASES = {
    "ax": ("ax", "digits.json"),
    "keras_tuner": ("keras_tuner/digits", "oracle.json"),
    "keras_tuner trial": ("keras_tuner/digits", "trial_0/trial.json"),
    "smac history": ("smac/digits/3", "runhistory.json"),
    "smac space": ("smac/digits/3", "configspace.json"),
    "smac scenario": ("smac/digits/3", "scenario.json"),
    "syne_tune": ("syne_tune", "metadata.json"),
    "ray": ("ray/digits", "experiment_state-2026-11-23_01-32-10.json"),
    "ray params": ("ray/digits", "params.json"),
}


@pytest.mark.parametrize("case", CASES)
def test_any_changed_value_of_a_document_is_read_or_refused(case: str, tmp_path: Path) -> None:
    folder, name = CASES[case]
    source = RECORDED / folder
    if case == "syne_tune":
        source = next(source.glob("digits*"))
    shutil.copytree(source, tmp_path / "history")
    path = sorted((tmp_path / "history").rglob(name))[0]
    original = path.read_bytes()
    draw = random.Random(case)
    for _ in range(40):
        path.write_text(json.dumps(changed(json.loads(original), draw)), encoding="utf-8")
        reads(str(tmp_path / "history"))


def test_any_changed_bytes_of_a_log_are_read_or_refused(tmp_path: Path) -> None:
    source = sorted((RECORDED / "wandb").glob("*run-*"))[0]
    shutil.copytree(source, tmp_path / "wandb" / source.name)
    (path,) = tmp_path.rglob("*.wandb")
    original = path.read_bytes()
    draw = random.Random(0)
    for _ in range(60):
        content = bytearray(original)
        for _ in range(draw.randint(1, 4)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        path.write_bytes(content[: draw.randrange(len(content))] if draw.random() < 0.2 else content)
        reads(str(tmp_path / "wandb"))


def test_any_changed_message_of_a_database_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "vizier.db"
    shutil.copy(RECORDED / "vizier/vizier.db", path)
    draw = random.Random(0)
    with closing(sqlite3.connect(path)) as connection:
        for table, column in (("studies", "serialized_study"), ("trials", "serialized_trial")):
            (original,) = connection.execute(f"select {column} from {table} limit 1").fetchone()
            for _ in range(40):
                content: bytearray | None = bytearray(original)
                content[draw.randrange(len(content))] = draw.randrange(256)
                connection.execute(f"update {table} set {column} = ?", (bytes(content),))
                connection.commit()
                reads(f"sqlite:///{path}")
            connection.execute(f"update {table} set {column} = ?", (original,))
