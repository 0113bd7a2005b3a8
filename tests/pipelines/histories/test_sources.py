"""Which tool wrote a source; and what is bounded, damaged, foreign or contradictory is one line."""

from __future__ import annotations

import json
import math
import pickle
import shutil
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hyperbo_pipelines.histories import (
    Options,
    make_table,
    read_histories,
    wire,
    write_rows,
    write_space_file,
)
from hyperbo_pipelines.histories.draft import ConditionDraft, ParameterDraft
from hyperbo_pipelines.histories.history import Objective, Run, Study
from hyperbo_pipelines.trials.space_file import read_space_file

from hyperbo.errors import InvalidInputError

RECORDED = Path(__file__).parent / "recorded"


def foreign_database(path: Path) -> str:
    with closing(sqlite3.connect(path / "shop.db")) as connection:
        connection.execute("create table orders (id integer)")
        connection.commit()
    return f"sqlite:///{path / 'shop.db'}"


def written(name: str, content: bytes) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        return str(folder / name)

    return write


def syne_tune_with(results: Callable[[Path], None]) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        source = next((RECORDED / "syne_tune").glob("digits*"))
        (folder / "metadata.json").write_bytes((source / "metadata.json").read_bytes())
        results(folder / "results.csv.zip")
        return str(folder)

    return write


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("results.csv", b"trial_id\n" + b"0\n" * 1000)
    content = bytearray(path.read_bytes())
    # The sizes of the central directory claim two GiB.
    place = content.rindex(b"PK\x01\x02")
    content[place + 24 : place + 28] = struct.pack("<I", 1 << 31)
    path.write_bytes(content)


def wandb_with(change: Callable[[bytearray], None]) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        source = sorted((RECORDED / "wandb").glob("*/*.wandb"))[0]
        content = bytearray(source.read_bytes())
        change(content)
        target = folder / source.parent.name / source.name
        target.parent.mkdir()
        target.write_bytes(content)
        return str(folder)

    return write


ALIASES = b"lifecycle_stage: &a active\nexperiment_id: *a\n"
SOURCES: dict[str, tuple[Callable[[Path], str], str]] = {
    "absent": (lambda folder: str(folder / "none"), "there is no such file, folder or database"),
    "empty folder": (str, "the folder holds no history; give a history of Optuna, Ax"),
    "unknown file": (written("notes.txt", b"x"), "no known tool wrote this file"),
    "unknown JSON": (written("x.json", b'{"trials": []}'), "no known tool wrote this file"),
    "pickle": (written("tuner.pkl", pickle.dumps({})), "a pickle can run code, so it is not read"),
    "foreign database": (foreign_database, "its tables are orders"),
    "no database": (lambda f: "sqlite:///" + written("a.db", b"abc")(f), "no known tool wrote this file"),
    "half an Ax snapshot": (written("a/x.json", b'{"experiment": {"__type": "Experiment"}}'), "search_space"),
    "half a run history": (written("runhistory.json", b'{"data": '), r"scenario\.json: cannot be read"),
    "YAML with aliases": (
        lambda folder: str(Path(written("mlruns/1/meta.yaml", ALIASES)(folder)).parents[1]),
        r"meta\.yaml: is not YAML: an alias is not read",
    ),
    "no ZIP": (syne_tune_with(lambda path: path.write_bytes(b"PK")) , "is not a ZIP archive of one CSV file"),
    "ZIP of two GiB": (syne_tune_with(bomb), "at most 1073741824 are read"),
    "other log": (wandb_with(lambda content: content.__setitem__(0, 0)), "not a log of Weights & Biases"),
    "damaged log": (wandb_with(lambda content: content.__setitem__(20, content[20] ^ 1)), "log is damaged"),
}  # fmt: skip


@pytest.mark.parametrize("case", SOURCES)
def test_a_source_that_cannot_be_read_is_one_line_with_its_place(tmp_path: Path, case: str) -> None:
    make, message = SOURCES[case]
    source = make(tmp_path)
    with pytest.raises(InvalidInputError, match=message) as raised:
        read_histories([source])
    assert "\n" not in str(raised.value)
    assert str(tmp_path) in str(raised.value)


def test_a_log_that_is_still_written_ends_where_it_ends(tmp_path: Path) -> None:
    whole = wandb_with(lambda content: None)
    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    ((done,),) = (study.runs for study in read_histories([whole(tmp_path / "whole")]))
    cut = wandb_with(lambda content: content.__delitem__(slice(len(content) - 8, None)))
    ((run,),) = (study.runs for study in read_histories([cut(tmp_path / "cut")]))
    assert (done.trial_id, done.status) == (run.trial_id, "done")
    assert run.status == "running"
    assert run.values == done.values


@pytest.mark.parametrize("message", [b"\x08", b"\x12\x05ab", b"\x0b", b"\xff" * 11, b"\x09\x01"])
def test_a_damaged_message_is_refused(message: bytes) -> None:
    with pytest.raises(InvalidInputError, match="damaged"):
        wire.fields_of(message)


def test_fields_are_read_as_they_are_stored() -> None:
    packed = struct.pack("<2d", 0.5, -2.0)
    message = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + b"\x12\x10" + packed + b"\x1a\x02hi"
    fields = wire.fields_of(message)
    assert wire.integer_of(fields, 1) == -1
    assert wire.doubles_of(fields, 2) == [0.5, -2.0]
    assert wire.text_of(fields, 3) == "hi"
    assert (wire.text_of(fields, 9), wire.integer_of(fields, 9), wire.message_of(fields, 9)) == ("", 0, {})


LOSS = (Objective("loss", "minimize"),)


def study(name: str, *runs: Run, objectives: tuple[Objective, ...] = LOSS, **changes: Any) -> Study:
    return Study("Tool", "1", name, runs, objectives, source="runs", **changes)


def run(number: int = 0, status: Any = "done", loss: float | None = 0.5, **values: Any) -> Run:
    metrics = {} if loss is None else {"loss": loss}
    return Run(str(number), status, values or {"a": 0.5 + number}, metrics)


UP = (Objective("loss", "maximize"),)
OTHER = (Objective("cost", "minimize"),)
NAN = math.nan
STUDIES: dict[str, tuple[list[Study], str]] = {
    "mixed directions": ([study("x", run()), study("y", run(), objectives=UP)], "minimized in .* 'x'.* 'y'"),
    "other objectives": ([study("x", run()), study("y", run(), objectives=OTHER)], "tunes 'loss', and 'y'"),
    "nothing ended": ([study("x", run(status="running"))], "no study has a trial"),
    "all failed": ([study("x", run(status="failed", loss=None), run(1, loss=NAN))], "no trial has"),
    "one name twice": ([study("x", run()), study("x", run())], "two studies are called 'x'"),
    "lacking": ([study("x", run(a=0.5, b=2.5), run(1, a=0.75))], "1 of 2 trials have no value of b"),
    "mixed types": (
        [study("x", *(run(i, a=0.1 * i) for i in range(20)), run(20, a="auto"))], "a has values of mixed"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STUDIES)
def test_studies_that_do_not_go_together_are_one_line(case: str) -> None:
    studies, message = STUDIES[case]
    with pytest.raises(InvalidInputError, match=message) as raised:
        make_table(studies, Options())
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("status", ["failed", "pruned"])
def test_a_trial_that_ended_before_it_had_all_values_is_left_out_and_counted(status: Any) -> None:
    early = run(2, status=status, loss=None, a=0.25)
    table = make_table([study("x", run(0, a=0.5, b=1.5), run(1, a=0.75, b=2.5), early)], Options())
    assert [row["trial"] for row in table.rows["x"]] == ["0", "1"]
    assert table.skipped == {"ended before it had all values": 1}


def test_what_is_constant_in_each_task_describes_the_task() -> None:
    studies = [study("x", run(a=0.5, data="p"), run(1, a=0.6, data="p")), study("y", run(a=0.7, data="q"))]
    table = make_table(studies, Options())
    assert [each.name for each in table.draft.parameters] == ["a"]
    assert "parameters.data" in table.draft.ignore


def test_a_condition_on_a_range_of_an_integer_is_found() -> None:
    runs = [run(0, layers=1), run(1, layers=2, second=0.5), run(2, layers=3, second=0.75)]
    table = make_table([study("x", *runs)], Options())
    second = next(each for each in table.draft.parameters if each.name == "second")
    assert second.condition
    assert (second.condition.parameter, second.condition.lower, second.condition.upper) == ("layers", 2, None)


def test_a_condition_on_a_real_parent_is_found_if_enough_trials_show_it() -> None:
    runs = [run(place, a=place / 10, **({"b": 1.5 + place} if place > 4 else {})) for place in range(10)]
    table = make_table([study("x", *runs)], Options())
    b = next(each for each in table.draft.parameters if each.name == "b")
    assert b.condition
    assert (b.condition.parameter, b.condition.lower, b.condition.upper) == ("a", 0.45, None)
    # Of four on one side, too many cases are chance.
    with pytest.raises(
        InvalidInputError, match=r"no other parameter says which; .*hyperbo data space.* --space"
    ):
        make_table([study("x", *runs[1:])], Options())


def test_what_depends_on_an_undeclared_parameter_is_left_out_with_it() -> None:
    large = ParameterDraft("large", "integer", 0, 2**60)
    beta = ParameterDraft("beta", "real", 0.0, 1.0, condition=ConditionDraft("large", (1,)))
    runs = [run(0, a=0.5, large=0), run(1, a=0.75, large=1, beta=0.5)]
    table = make_table([study("x", *runs, parameters=(large, beta))], Options())
    assert [each.name for each in table.draft.parameters] == ["a"]
    assert table.undeclared == {
        "large": "range [0, 1152921504606846976] of an integer; give whole numbers of at most 2^53",
        "beta": "it depends on large",
    }


def test_an_ordinal_of_steps_is_a_parent_by_a_bound() -> None:
    width = ParameterDraft("width", "integer", 8, 40, step=8)
    runs = [run(0, width=8), run(1, width=24, beta=0.5), run(2, width=40, beta=0.75)]
    table = make_table([study("x", *runs, parameters=(width,))], Options())
    found = {each.name: each for each in table.draft.parameters}
    assert found["width"].levels == (8, 16, 24, 32, 40)
    assert found["beta"].condition == ConditionDraft("width", lower=24)


def test_keras_tuner_has_steps(tmp_path: Path) -> None:
    shutil.copytree(RECORDED / "keras_tuner" / "digits", tmp_path / "digits")
    oracle = tmp_path / "digits" / "oracle.json"
    content = json.loads(oracle.read_text())
    (width,) = (each for each in content["hyperparameters"]["space"] if each["config"]["name"] == "width")
    width["config"] |= {"step": 8, "sampling": "linear"}
    oracle.write_text(json.dumps(content))
    ((draft,),) = (
        [each for each in study.parameters if each.name == "width"]
        for study in read_histories([str(tmp_path)])
    )
    assert (draft.kind, draft.step) == ("integer", 8)


def test_a_declared_condition_that_the_trials_contradict_is_not_believed() -> None:
    optimizer = ParameterDraft("optimizer", "choice", levels=("sgd", "adam"))
    beta = ParameterDraft("beta", "real", 0.0, 1.0, condition=ConditionDraft("optimizer", ("sgd",)))
    runs = [run(0, optimizer="sgd"), run(1, optimizer="adam", beta=0.5)]
    table = make_table([study("x", *runs, parameters=(optimizer, beta))], Options())
    found = next(each for each in table.draft.parameters if each.name == "beta")
    assert found.condition
    assert found.condition.values == ("adam",)


def test_rows_are_plain_json_and_the_same_each_time(tmp_path: Path) -> None:
    studies = [study("a/b c", run(), run(1, loss=math.inf)), study("z", run())]
    table = make_table(studies, Options())
    description = read_space_file(write_space_file(table, tmp_path))
    first, second = (
        write_rows(each, tmp_path, description) for each in (table, make_table(studies, Options()))
    )
    assert first == second
    assert [path.name.partition(".")[0] for path in first] == ["a_b_c", "z"]
    assert all("tool_1" in path.name for path in first)
    rows = [json.loads(line) for line in first[0].read_text().splitlines()]
    assert [(row["task"], row["status"], row["loss"]) for row in rows] == [
        ("a/b c", "done", 0.5),
        ("a/b c", "diverged", math.inf),
    ]
