from __future__ import annotations

import csv
import hashlib
import json
import math
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import hyperbo_pipelines.trials.rows
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from beam_checks import expect, pipeline
from hyperbo_pipelines.curate.build import validate_trials
from hyperbo_pipelines.trials.description import TrialsDescription
from hyperbo_pipelines.trials.parse import ParseTrialFiles, parse_trial
from hyperbo_pipelines.trials.rows import find_trial_files, read_rows
from hypothesis import given
from hypothesis import strategies as st
from trial_files import SPACE, describe, row, write_bytes, write_lines

from hyperbo.data.trial import Trial
from hyperbo.errors import InvalidInputError

HEADER = "task,trial,status,loss,test,curve,hp.rate,layers\n"
REASON_OF_TEXT = "not a number; the space file can declare a choice of texts"


def parse(path: Path, description: TrialsDescription) -> tuple[list[Trial], list[tuple[int, str]]]:
    """Every row of one file by itself: the trials, and the place and reason of each reject."""
    (file,) = find_trial_files([path], description)
    trials, rejects = [], []
    for place, found in read_rows(path, description.columns):
        try:
            if isinstance(found, InvalidInputError):
                raise found
            description.check_columns(found)
            trials.append(parse_trial(found, file, place, description, "test"))
        except InvalidInputError as error:
            rejects.append((place, error.what))
    assert len(trials) + len(rejects) == file.rows
    return trials, rejects


def one(path: Path, description: TrialsDescription) -> Trial:
    (trial,), rejects = parse(path, description)
    assert rejects == []
    return trial


def expected(source: str) -> Trial:
    # The first digits of the hash of the two float64.
    input_id = hashlib.sha256(struct.pack("<2d", 0.1, 3.0)).hexdigest()[:16]
    return Trial(
        task="net",
        task_dataset="net",
        trial_id="net/a",
        split="trials",
        phase=0,
        origin="test",
        source=source,
        status="done",
        hyperparameters={"rate": 0.1, "layers": 3.0},
        input_id=input_id,
        metrics={"loss": 0.25, "test": 0.5},
        curves={"curve": (1.0, 0.25)},
    )


def test_every_format_makes_the_same_trial(tmp_path: Path) -> None:
    description = describe(tmp_path)
    text = HEADER + 'net,a,done,0.25,0.5,"[1.0, 0.25]",0.1,3\n'
    pq.write_table(pa.Table.from_pylist([row()]), tmp_path / "c.parquet")
    assert one(write_lines(tmp_path / "a.jsonl.gz", [row()]), description) == expected("a.jsonl.gz:1")
    assert one(write_bytes(tmp_path / "b.csv", text.encode()), description) == expected("b.csv:2")
    assert one(tmp_path / "c.parquet", description) == expected("c.parquet:1")


def test_names_come_from_columns_the_space_file_or_the_name_of_the_file(tmp_path: Path) -> None:
    text = SPACE.replace('trial_id = { column = "trial" }', "task = { file_name = true }").replace(
        '"note"', '"note", "task", "trial"'
    )
    trial = one(write_lines(tmp_path / "net.v2.jsonl.gz", [row()]), describe(tmp_path, text))
    assert (trial.task, trial.task_dataset) == ("net.v2", "net.v2")
    assert trial.trial_id == "net.v2/net.v2.jsonl.gz:1"
    text = (
        'task = { name = "all" }\ntask_dataset = { column = "task" }\nphase = { column = "round" }\n' + SPACE
    )
    path = write_lines(tmp_path / "a.jsonl", [row(round=2, trial=17, task=3492)])
    trial = one(path, describe(tmp_path, text))
    assert (trial.task, trial.task_dataset, trial.trial_id, trial.phase) == ("all", "3492", "all/17", 2)


@pytest.mark.parametrize(
    ("loss", "status"), [("0.5", "done"), ("null", "diverged"), ("NaN", "diverged"), ("1e999", "diverged")]
)
def test_without_a_status_column_a_finite_objective_is_done(loss: str, status: str, tmp_path: Path) -> None:
    text = SPACE.replace('status = { column = "status" }', "").replace('"note"', '"note", "status"')
    line = json.dumps(row()).replace("0.25,", f"{loss},", 1).encode()
    trial = one(write_lines(tmp_path / "a.jsonl", [line]), describe(tmp_path, text))
    assert (trial.status, repr(trial.metrics["loss"])) == (status, repr(float(loss.replace("null", "nan"))))


def test_a_status_column_is_translated_and_its_metrics_stay(tmp_path: Path) -> None:
    status = '{ column = "status", done = ["COMPLETE", "0"], diverged = ["FAIL"], skip = ["RUNNING"] }'
    description = describe(tmp_path, SPACE.replace('{ column = "status" }', status))
    lines = [
        row("a", status="COMPLETE", loss=None),
        row("b", status="FAIL"),
        row("c", status="infeasible", loss=-3.0),
        row("d", status=0),
    ]
    trials, _ = parse(write_lines(tmp_path / "a.jsonl", lines), description)
    assert [trial.status for trial in trials] == ["done", "diverged", "infeasible", "done"]
    assert repr([trial.metrics["loss"] for trial in trials]) == "[nan, 0.25, -3.0, 0.25]"
    assert [trial.diverged for trial in trials] == [False, True, False, False]


def test_nulls_empty_cells_and_nans_are_nan_in_metrics_and_curves(tmp_path: Path) -> None:
    description = describe(tmp_path)
    line = b'{"task": "net", "trial": "a", "status": "done", "loss": null, "test": NaN, '
    line += b'"curve": [1, null, NaN, 1e999, -Infinity], "hp.rate": 0.1, "layers": 3}'
    text = HEADER + 'net,a,done,,nan,"[1, null, NaN, 1e999, -Infinity]",0.1,3\nnet,b,done,1e999,-inf,,0.1,3\n'
    made = [one(write_lines(tmp_path / "a.jsonl", [line]), description)]
    made += parse(write_bytes(tmp_path / "b.csv", text.encode()), description)[0]
    assert [repr(trial.metrics) for trial in made] == [
        "{'loss': nan, 'test': nan}",
        "{'loss': nan, 'test': nan}",
        "{'loss': inf, 'test': -inf}",
    ]
    assert [repr(trial.curves) for trial in made] == [
        "{'curve': (1.0, nan, nan, inf, -inf)}",
        "{'curve': (1.0, nan, nan, inf, -inf)}",
        "{}",
    ]


def test_numbers_of_every_parquet_type_become_the_float64_that_equals_them(tmp_path: Path) -> None:
    description = describe(tmp_path)
    table = pa.table(
        {
            "task": pa.array(["net"] * 2).dictionary_encode(),
            "trial": pa.array([7, 8], pa.uint16()),
            "status": pa.array(["done"] * 2, pa.large_string()),
            "loss": pa.array([0.1, None], pa.float32()),
            "test": pa.array([np.float16(0.1), np.float16("nan")], pa.float16()),
            "curve": pa.array([[0.1, None], None], pa.list_(pa.float32())),
            "hp.rate": pa.array([0.1, 0.2], pa.float32()),
            "layers": pa.array([3, 4], pa.int8()),
            "note": pa.array([b"\xff", None]),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    (first, second), rejects = parse(tmp_path / "a.parquet", description)
    assert rejects == []
    single, half = float(np.float32(0.1)), float(np.float16(0.1))
    assert first.hyperparameters == {"rate": single, "layers": 3.0}
    assert first.metrics == {"loss": single, "test": half}
    assert repr(first.curves) == f"{{'curve': ({single!r}, nan)}}"
    assert (second.trial_id, second.source) == ("net/8", "a.parquet:2")
    assert all(math.isnan(value) for value in second.metrics.values())


@given(
    losses=st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=5),
    rates=st.lists(st.floats(1e-3, 10.0), min_size=5, max_size=5),
)
def test_floats_survive_every_format_bit_for_bit(
    losses: list[float], rates: list[float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("floats")
    description = describe(folder)
    rows = [
        row(str(place), loss=loss, **{"hp.rate": rate})
        for place, (loss, rate) in enumerate(zip(losses, rates, strict=False))
    ]
    cells = [
        [*map(str, list(each.values())[:5]), '"[1.0, 0.25]"', repr(each["hp.rate"]), "3"] for each in rows
    ]
    text = HEADER + "".join(",".join(line) + "\n" for line in cells)
    pq.write_table(pa.Table.from_pylist(rows), folder / "c.parquet")
    for path in (
        write_lines(folder / "a.jsonl", rows),
        write_bytes(folder / "b.csv.gz", text.encode()),
        folder / "c.parquet",
    ):
        trials, rejects = parse(path, description)
        assert rejects == []
        assert [trial.metrics["loss"].hex() for trial in trials] == [loss.hex() for loss in losses]
        found = [trial.hyperparameters["rate"].hex() for trial in trials]
        assert found == [rate.hex() for rate in rates[: len(losses)]]


def test_a_cell_of_csv_may_hold_a_long_curve(tmp_path: Path) -> None:
    description = describe(tmp_path)
    curve = [1.0 / (step + 3) for step in range(20_000)]  # 400,000 characters
    text = HEADER + "".join(f'net,{name},done,0.25,0.5,"{curve}",0.1,3\n' for name in "ab")
    path = write_bytes(tmp_path / "a.csv", text.encode())
    before = csv.field_size_limit()
    limits = set()
    for _, found in read_rows(path, description.columns):
        assert isinstance(found, dict)
        assert found["curve"] == curve
        limits.add(csv.field_size_limit())
    # It is the whole process's: others never find another one.
    assert limits == {before}
    assert [len(trial.curves["curve"]) for trial in parse(path, description)[0]] == [20_000] * 2


def test_a_cell_without_end_is_refused_and_the_limit_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hyperbo_pipelines.trials.rows, "_LONGEST_CELL", 1000)
    before = csv.field_size_limit()
    text = HEADER + 'net,"' + "a" * 2000
    with pytest.raises(InvalidInputError, match=r"a\.csv:2: is not CSV: field larger than field limit"):
        find_trial_files([write_bytes(tmp_path / "a.csv", text.encode())], describe(tmp_path))
    assert csv.field_size_limit() == before


def test_trial_ids_differ_whatever_tasks_and_trials_are_called(tmp_path: Path) -> None:
    named = [("a/b", "c"), ("a", "b/c"), ("a%2Fb", "c"), ("a%b", "c"), ("resnet-cifar 10", "r/1%")]
    lines = [row(trial, task=task) for task, trial in named]
    trials, _ = parse(write_lines(tmp_path / "a.jsonl", lines), describe(tmp_path))
    assert [(trial.task, trial.trial_id) for trial in trials] == [
        ("a/b", "a%2Fb/c"),
        ("a", "a/b/c"),
        ("a%2Fb", "a%252Fb/c"),
        ("a%b", "a%25b/c"),
        ("resnet-cifar 10", "resnet-cifar 10/r/1%"),
    ]


def without(column: str) -> dict[str, Any]:
    made = row()
    del made[column]
    return made


WHOLE = json.dumps(row()).encode()
BAD_LINES: dict[str, tuple[dict[str, Any] | bytes, str]] = {
    "cut in half": (WHOLE[: len(WHOLE) // 2], "is not JSON: "),
    "invalid UTF-8": (WHOLE.replace(b"net", b"n\xff"), "is not UTF-8: "),
    "lone surrogate": (row(task="a\ud800"), "task is not text: "),
    "missing column": (without("loss"), "missing columns: 'loss'"),
    "unknown column": (row(extra=1), "unknown columns: 'extra' (name them under metrics, curves or ignore)"),
    "text parameter": (row(**{"hp.rate": "high"}), f"hp.rate is 'high', {REASON_OF_TEXT}"),
    "boolean parameter": (row(layers=True), "layers is True, not a number"),
    "null parameter": (row(layers=None), "layers has no value"),
    "huge integer": (row(test=10**400), "test is too large for a float64"),
    "objective as a text": (row(loss="low"), "loss is 'low', not a number"),
    "curve as a number": (row(curve=3.5), "curve is 3.5, not an array"),
    "text in a curve": (row(curve=[1.0, "x"]), "curve has the entry 'x', not a number"),
    "null task": (row(task=None), "task is None, not a text"),
    "task is a fraction": (row(task=1.5), "task is 1.5, not a text"),
    "status of no list": (row(status="RUNNING"), "status is 'RUNNING'"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_of_json_is_rejected_with_the_reason(name: str, tmp_path: Path) -> None:
    content, reason = BAD_LINES[name]
    path = write_lines(tmp_path / "a.jsonl", [row("a"), b"", content, row("b")])
    trials, ((place, what),) = parse(path, describe(tmp_path))
    assert [trial.trial_id for trial in trials] == ["net/a", "net/b"]
    assert place == 3
    assert what.startswith(reason)


BAD_CSV: dict[str, tuple[bytes, str]] = {
    "half row": (b"net,c,done,0.2", "has 4 cells, and the header has 8"),
    "invalid UTF-8": (b"n\xff,c,done,0.25,0.5,,0.1,3", "task is not UTF-8"),
    "text parameter": (b"net,c,done,0.25,0.5,,abc,3", f"hp.rate is 'abc', {REASON_OF_TEXT}"),
    "grouped digits": (b"net,c,done,0.25,0.5,,0.1,1_000", f"layers is '1_000', {REASON_OF_TEXT}"),
    "empty parameter": (b"net,c,done,0.25,0.5,,0.1,", "layers has no value"),
    "decimal comma": (b'net,c,done,"0,25",0.5,,0.1,3', "loss is '0,25', not a number"),
    "boolean": (b"net,c,done,0.25,True,,0.1,3", "test is 'True', not a number"),
    "curve of Python": (b'net,c,done,0.25,0.5,"[1.0, nan]",0.1,3', "curve is '[1.0, nan]', not an array"),
    "empty task": (b",c,done,0.25,0.5,,0.1,3", "task is None, not a text"),
}


@pytest.mark.parametrize("name", BAD_CSV)
def test_a_bad_record_of_csv_is_rejected_with_its_line(name: str, tmp_path: Path) -> None:
    record, reason = BAD_CSV[name]
    good = b'net,%s,done,0.25,0.5,"[1.0,\n0.25]",0.1,3\n'
    content = HEADER.encode() + good % b"a" + b"\r\n" + record + b"\n" + good % b"b"
    trials, rejects = parse(write_bytes(tmp_path / "a.csv", content), describe(tmp_path))
    # The good record takes two lines, and a blank one follows.
    assert [(trial.trial_id, trial.source) for trial in trials] == [
        ("net/a", "a.csv:2"),
        ("net/b", "a.csv:6"),
    ]
    assert rejects == [(5, reason)]


@pytest.mark.parametrize(
    ("warping", "loss", "refused"),
    [
        ("negative_log", -0.5, True),
        ("negative_log", -1e-10, True),
        ("negative_log", 0.0, False),
        ("negative", -0.5, False),
        ("negative", 1.2e18, False),
    ],
)
def test_a_done_trial_whose_objective_has_no_warped_value_is_rejected(
    warping: str, loss: float, refused: bool, tmp_path: Path
) -> None:
    description = describe(tmp_path, f'warping = "{warping}"\n{SPACE}')
    path = write_lines(tmp_path / "a.jsonl", [row(loss=loss), row(loss=loss, status="diverged")])
    trials, rejects = parse(path, description)
    reason = f"loss = {loss!r} has no value under the warping negative_log"
    assert rejects == ([(1, reason)] if refused else [])
    assert [trial.metrics["loss"] for trial in trials] == [loss] * (1 if refused else 2)


@pytest.mark.parametrize("phase", [-1, 1.5, 2**40, 1e300, True, "one", None])
def test_a_phase_is_a_whole_number_from_zero(phase: Any, tmp_path: Path) -> None:
    description = describe(tmp_path, f'phase = {{ column = "phase" }}\n{SPACE}')
    _, rejects = parse(write_lines(tmp_path / "a.jsonl", [row(phase=phase)]), description)
    assert re.match("phase is .*, not a (phase: a whole number from 0|number)", rejects[0][1])
    text = HEADER.replace("\n", ",phase\n") + "net,a,done,0.25,0.5,,0.1,3,1.0\n"
    assert one(write_bytes(tmp_path / "a.csv", text.encode()), description).phase == 1


def test_files_pass_through_beam_with_their_rejects_and_without_what_is_skipped(tmp_path: Path) -> None:
    status = '{ column = "status", skip = ["RUNNING"] }'
    description = describe(tmp_path, SPACE.replace('{ column = "status" }', status))
    lines: Sequence[dict[str, Any] | bytes] = [
        row("a", note="ignored"),
        row("b", **{"hp.rate": 100.0}),
        {"status": "RUNNING"},
        b"{",
        row("c", git_commit="a1"),
        row("d", extra=1, note="ignored"),
    ]
    first = write_lines(tmp_path / "a.jsonl", lines)
    text = HEADER + "net,e,done,0.25,0.5,,0.1,9\nnet,f,RUNNING,,,,,\nnet,g,done,0.25,0.5,,0.1,nan\n"
    second = write_bytes(tmp_path / "b.csv", text.encode())
    files = find_trial_files([first, second], description)
    assert [file.rows for file in files] == [5, 2]
    with pipeline() as p:
        parsed, rejects = p | beam.Create(files) | ParseTrialFiles(description, "test")
        trials, invalid = validate_trials(parsed, description.space)
        expect(trials | beam.Map(lambda trial: trial.source), ["a.jsonl:1", "a.jsonl:5"], "trials")
        for found, places in (
            (rejects, [("a.jsonl", 4), ("a.jsonl", 6)]),
            (invalid, [("a.jsonl", 2), ("b.csv", 2), ("b.csv", 4)]),
        ):
            expect(
                found | str(places) >> beam.Map(lambda each: (each.file, each.line)), places, f"at {places}"
            )
