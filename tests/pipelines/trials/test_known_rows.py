"""Which rows of a file are known, and files of the new rows: laws of growing exports, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hyperbo_pipelines.curate.elements import RawFile
from hyperbo_pipelines.trials.description import TrialsDescription
from hyperbo_pipelines.trials.known import sort_rows
from hyperbo_pipelines.trials.parse import parse_file
from hyperbo_pipelines.trials.row_bytes import bytes_of_rows, copy_rows
from hyperbo_pipelines.trials.rows import read_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from trial_files import SPACE, describe, row, write_bytes, write_lines

from hyperbo.data.trial import Trial
from hyperbo.errors import InvalidInputError
from pd1_builder.release.cumulative import new_rows

RUNNING = SPACE.replace('column = "status" }', 'column = "status", skip = ["running"] }')
Rows = Sequence[dict[str, Any]]


def write(path: Path, rows: Rows) -> Path:
    """Write rows in the format of the suffix; a curve in CSV is JSON."""
    if ".jsonl" in path.name:
        return write_lines(path, list(rows))
    if ".csv" in path.name:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(row()), lineterminator="\r\n")
        writer.writeheader()
        writer.writerows([each | {"curve": json.dumps(each["curve"])} for each in rows])
        return write_bytes(path, text.getvalue().encode())
    pq.write_table(pa.Table.from_pylist([each | {"layers": float(each["layers"])} for each in rows]), path)
    return path


def content(paths: Sequence[Path], description: TrialsDescription) -> tuple[Counter[str], int]:
    """The trials of files without the place that they were read from, and the number of rejects."""
    read = [each for path in paths for each in parse_file(RawFile(path, "", 0, "", 0, 0), description, "")]
    trials = [each for each in read if isinstance(each, Trial)]
    return Counter(repr({**vars(each), "source": ""}) for each in trials), len(read) - len(trials)


def add(kept: Path, files: Sequence[Path], description: TrialsDescription) -> None:
    """Keep what files bring, as a version does."""
    with tempfile.TemporaryDirectory() as scratch:
        for path in new_rows(sorted(kept.iterdir()), files, description, Path(scratch)).files:
            assert not (kept / path.name).exists()
            shutil.copy(path, kept)


@st.composite
def histories(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """A sequence of exports of one study: each has all rows of the one before, some of which were running."""
    size = draw(st.integers(1, 8))
    layers = draw(st.lists(st.sampled_from([1, 2, 3, 99]), min_size=size, max_size=size))  # 99: a reject.
    # Trials without a name are rejects, equal ones among them.
    names = [draw(st.sampled_from(["", f"t{number}", f"t{number}"])) for number in range(size)]
    tasks = draw(st.lists(st.sampled_from(["net", "a/b"]), min_size=size, max_size=size))
    ends = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    starts = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    rows = [row(name, task=task, layers=each) for name, task, each in zip(names, tasks, layers, strict=True)]
    times = range(max((*ends, *starts)) + 1)
    exports = []
    for time in times:
        states = [
            each if time >= end else each | {"status": "running", "loss": None}
            for each, start, end in zip(rows, starts, ends, strict=True)
            if time >= start
        ]
        exports.append(draw(st.permutations(states)))
    return exports


@settings(max_examples=60, deadline=None)
@given(
    history=histories(),
    suffix=st.sampled_from([".jsonl", ".csv", ".csv.gz", ".parquet"]),
    names=st.lists(st.sampled_from("abc"), min_size=4, max_size=4),
    together=st.lists(st.booleans(), min_size=4, max_size=4),
    backwards=st.booleans(),
)
def test_growing_exports_bring_the_same_as_the_last_one(
    history: list[list[dict[str, Any]]],
    suffix: str,
    names: list[str],
    together: list[bool],
    backwards: bool,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        description = describe(Path(folder), RUNNING)
        kept = Path(folder) / "kept"
        kept.mkdir()
        waiting: list[Path] = []
        files = []
        for number, rows in enumerate(history):
            path = Path(folder) / str(number) / f"{names[number]}{suffix}"
            path.parent.mkdir()
            files.append(write(path, rows) if rows or suffix != ".parquet" else None)
        for path, waits in zip(files, together, strict=False):
            waiting += [path] if path else []
            if not waits:
                add(kept, waiting[::-1] if backwards else waiting, description)
                waiting = []
        add(kept, waiting, description)
        last = files[-1]
        assert last is not None
        trials, rejects = content([last], description)
        assert content(sorted(kept.iterdir()), description) == (trials, rejects)
        # Once more, it brings nothing.
        assert new_rows(sorted(kept.iterdir()), [last], description, Path(folder)).files == ()


def test_the_rows_that_are_kept_are_those_of_the_export_byte_for_byte(tmp_path: Path) -> None:
    description = describe(tmp_path, SPACE)
    text = (
        '\ufeffstatus,"hp.rate",layers,loss,test,curve,trial,task,note\r\n'
        'done,0.10,3,2.5e-1,,[],a,net,"two\r\nlines, ""quoted"""\r\n'
        "\r\n"
        "done,1e-1,3,0.50,,,b,net,ok\r\n"
        'done,0.3,4,0.5,,,c,net,"three\n\nlines"'
    )
    first = write_bytes(tmp_path / "first.csv", text.encode())
    kept = write_lines(tmp_path / "kept.jsonl", [row("b", test=None, curve=[], loss=0.5)])
    (rows,) = sort_rows([kept], [first], description)
    assert (rows.known, rows.trials, rows.rejects, rows.new) == (1, 2, 0, {2, 6})
    copy_rows(first, rows.new or (), tmp_path / "new.csv")
    without_b = text.removeprefix("\ufeff").replace("\r\ndone,1e-1,3,0.50,,,b,net,ok\r\n", "") + "\n"
    assert (tmp_path / "new.csv").read_bytes() == without_b.encode()
    assert dict(bytes_of_rows(first, {6})) == {6: text[text.index("done,0.3") :].encode()}
    read = [each for _, each in read_rows(tmp_path / "new.csv", description.columns)]
    assert read == [each for place, each in read_rows(first, description.columns) if place != 5]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".parquet"])
def test_every_kind_of_file_can_be_divided_and_equal_rows_make_equal_files(
    tmp_path: Path, suffix: str
) -> None:
    description = describe(tmp_path)
    rows = [row(str(number), loss=number / 7) for number in range(2000)]
    path = write(tmp_path / f"all{suffix}", rows)
    places = [place for place, _ in read_rows(path, description.columns)]
    copy_rows(path, set(places[1500:]), tmp_path / f"b{suffix}")
    assert content([tmp_path / f"b{suffix}"], description) == content(
        [write(tmp_path / f"c{suffix}", rows[1500:])], description
    )
    other = write(tmp_path / f"other{suffix}", rows[1000:])
    copy_rows(other, set(places[500:1000]), tmp_path / f"d{suffix}")
    assert (tmp_path / f"b{suffix}").read_bytes() == (tmp_path / f"d{suffix}").read_bytes()


def test_a_row_that_changed_is_refused_with_both_values_and_both_places(tmp_path: Path) -> None:
    description = describe(tmp_path)
    old = write_lines(tmp_path / "old.jsonl", [row("a"), row("b")])
    changes: dict[str, tuple[Any, str]] = {
        "loss": (0.5, "metrics.loss of the trial 'net/b' is 0.5, and 0.25"),
        "hp.rate": (0.2, "hyperparameters.rate of the trial 'net/b' is 0.2, and 0.1"),
        "layers": (99, "hyperparameters.layers of the trial 'net/b' is 99.0, and 3.0"),
        "status": ("diverged", "status of the trial 'net/b' is 'diverged', and 'done'"),
        "curve": ([1.0], r"curves.curve of the trial 'net/b' is \(1.0,\), and \(1.0, 0.25\)"),
        "test": (None, "metrics.test of the trial 'net/b' is nan, and 0.5"),
    }
    for column, (value, message) in changes.items():
        new = write_lines(tmp_path / "new.jsonl", [row("c"), row("b", **{column: value}), row("a", loss=9)])
        match = (
            rf"^new\.jsonl:2: {message} at \S+/old\.jsonl:2; 1 more row of the file changed, too; nothing was"
        )
        with pytest.raises(InvalidInputError, match=match) as raised:
            sort_rows([old], [new], description)
        assert "\n" not in str(raised.value)


def test_the_same_id_of_another_task_and_columns_that_are_ignored_do_not_count(tmp_path: Path) -> None:
    description = describe(tmp_path)
    old = write_lines(tmp_path / "old.jsonl", [row("a"), row("b", note="x")])
    new = write_lines(tmp_path / "new.jsonl", [row("b", note="y"), row("a", task="other"), row("a")])
    (rows,) = sort_rows([old], [new], description)
    assert (rows.known, rows.trials, rows.new) == (2, 1, {2})


TYPED = """
objective = "loss"
direction = "minimize"
trial_id = { column = "trial" }

[[parameters]]
name = "depth"
type = "integer"
lower = 1
upper = 8

[[parameters]]
name = "optimizer"
type = "choice"
levels = ["sgd", "adam"]

[[parameters]]
name = "nesterov"
type = "boolean"
condition = { parameter = "optimizer", values = ["sgd"] }
"""


def test_a_value_is_the_same_however_a_format_writes_it(tmp_path: Path) -> None:
    description = describe(tmp_path, TYPED)
    old = write_bytes(
        tmp_path / "old.csv",
        b"task,trial,loss,depth,optimizer,nesterov\nnet,a,0.5,3,sgd,True\nnet,b,1,3.0,adam,\n",
    )
    a = {"task": "net", "trial": "a", "loss": 0.50, "depth": 3.0, "optimizer": "sgd", "nesterov": True}
    b = {"task": "net", "trial": "b", "loss": 1, "depth": 3, "optimizer": "adam"}
    new = write_lines(tmp_path / "new.jsonl", [a, b, b | {"nesterov": None}])
    assert sort_rows([old], [new], description)[0].known == 3
    for change, message in (
        ({"optimizer": "adam"}, "hyperparameters.optimizer of the trial 'net/a' is 'adam', and 'sgd'"),
        ({"depth": 4}, "hyperparameters.depth of the trial 'net/a' is 4, and 3"),
        ({"nesterov": False}, "hyperparameters.nesterov of the trial 'net/a' is False, and True"),
        # A value that no record can have is a change, too.
        ({"optimizer": "lion"}, "hyperparameters.optimizer of the trial 'net/a' is 'lion', and 'sgd'"),
        ({"depth": 2.5}, "hyperparameters.depth of the trial 'net/a' is 2.5, and 3"),
    ):
        write_lines(new, [a | change])
        with pytest.raises(InvalidInputError, match=message):
            sort_rows([old], [new], description)


def test_a_reject_is_known_by_its_bytes_and_a_corrected_one_is_new(tmp_path: Path) -> None:
    description = describe(tmp_path)
    broken = b'{"task": "net", "tri'
    old = write_lines(tmp_path / "old.jsonl", [row("a"), broken, row("b", layers=99), broken])
    new = write_lines(tmp_path / "new.jsonl", [broken, broken, row("b", layers=99), broken, row("a")])
    (rows,) = sort_rows([old], [new], description)
    # The third of equal rejects is new, where two were recorded.
    assert (rows.known, rows.trials, rows.rejects, rows.new) == (4, 0, 1, {4})
    new = write_lines(tmp_path / "new.jsonl", [row("b", layers=8), row("a")])
    (rows,) = sort_rows([old], [new], description)
    assert (rows.known, rows.trials, rows.rejects, rows.new) == (1, 1, 0, {1})


def test_rows_of_old_files_that_contradict_each_other_are_known_both(tmp_path: Path) -> None:
    description = describe(tmp_path)
    old = write_lines(tmp_path / "old.jsonl", [row("a", loss=1), row("a", loss=2), row("b")])
    for known in (1, 2):
        new = write_lines(tmp_path / "new.jsonl", [row("a", loss=known), row("c")])
        assert sort_rows([old], [new], description)[0].new == {2}
    write_lines(tmp_path / "new.jsonl", [row("a", loss=3)])
    with pytest.raises(InvalidInputError, match=r"is 3\.0, and 1\.0 at \S+/old\.jsonl:1"):
        sort_rows([old], [tmp_path / "new.jsonl"], description)


NO_IDS = SPACE.replace('trial_id = { column = "trial" }\n', "").replace('["note"', '["trial", "note"')


def test_without_ids_an_overlap_is_refused_and_few_equal_rows_are_not(tmp_path: Path) -> None:
    description = describe(tmp_path, NO_IDS)
    rows = [row(str(number), loss=number / 7) for number in range(10)]
    old = write_lines(tmp_path / "old.jsonl", rows[:6])
    fix = r"new\.jsonl: {} of {} trials are trials of old\.jsonl again.*; name the column of ids as trial_id"
    for first, last, match in (
        (0, 10, fix.format(6, 10)),
        (3, 8, fix.format(3, 5)),
        (0, 2, fix.format(2, 2)),
    ):
        new = write_lines(tmp_path / "new.jsonl", rows[first:last])
        with pytest.raises(InvalidInputError, match=match):
            sort_rows([old], [new], description)
        # Two new files are judged in the same way.
        with pytest.raises(InvalidInputError, match=match):
            sort_rows([], [old, new], description)
    (few,) = sort_rows([old], [write_lines(tmp_path / "new.jsonl", rows[4:])], description)
    assert (few.known, few.trials, few.new) == (0, 6, None)
    # Within a file, equal rows are repeats that its owner made.
    assert sort_rows([], [write_lines(tmp_path / "new.jsonl", [row(), row()])], description)[0].trials == 2


def test_pairs_of_exports_do_not_depend_on_the_order_in_which_they_are_given(tmp_path: Path) -> None:
    description = describe(tmp_path)
    rows = [row(str(number), loss=number / 7) for number in range(9)]
    files = []
    for number, (first, last) in enumerate(pairwise([0, 4, 9])):
        path = tmp_path / str(number) / "export.jsonl"
        path.parent.mkdir()
        files.append(write_lines(path, rows[max(first - 2, 0) : last]))
    outcomes = []
    for order in (files, files[::-1]):
        scratch = Path(tempfile.mkdtemp(dir=tmp_path))
        found = new_rows((), order, description, scratch)
        outcomes.append(
            ([(path.name, path.read_bytes()) for path in found.files], found.exports, found.trials)
        )
    assert outcomes[0] == outcomes[1]
    (first, second), (export,), trials = outcomes[0]
    assert (first[0], second[0], trials) == ("export.jsonl", "export~2.jsonl", 9)
    assert (export.name, export.raw_file, export.known) == ("export.jsonl", "export~2.jsonl", 2)
