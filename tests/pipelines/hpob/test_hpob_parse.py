from __future__ import annotations

import gzip
import json
import math
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.util import assert_that
from beam_checks import pipeline
from hyperbo_pipelines.curate.columns import schema
from hyperbo_pipelines.curate.elements import RawFile, Reject
from hyperbo_pipelines.hpob import parse, stream
from hyperbo_pipelines.hpob.layout import SPLIT, mixed_columns, read_descriptors
from hyperbo_pipelines.hpob.parse import ParseHpob, curate_dataset
from hyperbo_pipelines.hpob.raw_files import find_hpob_files, read_initialisations
from hyperbo_pipelines.hpob.stream import read_datasets
from hypothesis import given
from hypothesis import strategies as st
from synthetic_hpob import describe, write_hpob

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.errors import InvalidInputError

REAL = Path("../shared/data/hpob")
real = pytest.mark.skipif(not REAL.is_dir(), reason="the HPO-B rows are not at ../shared/data/hpob")
INITIALISATIONS = "bo-initializations.json"


def parsed(folder: Path, search_space: str | None = None) -> tuple[list[pa.Table], list[Reject]]:
    """What the files of a folder become, without a runner."""
    descriptions = read_descriptors(folder)
    begins = read_initialisations(folder / INITIALISATIONS)
    made = [
        made
        for file in find_hpob_files(folder, search_space).data
        for raw in read_datasets(file.path, search_space)
        for made in curate_dataset(
            raw,
            file,
            descriptions[raw.search_space],
            begins.get(raw.search_space, {}).get(raw.dataset, {}),
            mixed=search_space is None,
        )
    ]
    return [m for m in made if isinstance(m, pa.Table)], [m for m in made if isinstance(m, Reject)]


def expected(folder: Path, search_space: str) -> list[dict[str, Any]]:
    """The records of a search space by plain json.load and one loop."""
    names = json.loads((folder / "meta-dataset-descriptors.json").read_text())[search_space][
        "variables_order"
    ]
    space = SearchSpace(tuple(Parameter(name, 0.0, 1.0) for name in names))
    begins = json.loads((folder / INITIALISATIONS).read_text())
    records = []
    for split in ("train", "validation", "test"):
        name = f"meta-{split}-dataset.json"
        for dataset, fields in json.loads((folder / name).read_text())[search_space].items():
            task = f"{search_space}-{dataset}"
            given = begins.get(search_space, {}).get(dataset, {})
            for row, (x, (y,)) in enumerate(zip(fields["X"], fields["y"], strict=True)):
                records.append(
                    {
                        "split": split,
                        "task": task,
                        "task_dataset": dataset,
                        "trial_id": f"{task}/{row:07d}",
                        "phase": 0,
                        "origin": "hpob",
                        "source": f"{name}#{search_space}/{dataset}:{row}",
                        "status": "done",
                        "diverged": False,
                        "input_id": space.input_id(dict(zip(names, x, strict=True))),
                        "duplicates": [
                            f"{task}/{other:07d}"
                            for other, its in enumerate(fields["X"])
                            if other != row and its == x
                        ],
                        "block": "",
                        "initialisations": [
                            f"{seed}:{given[seed].index(row)}" for seed in sorted(given) if row in given[seed]
                        ],
                        "y": float(y),
                        **{f"hyperparameters.{n}": float(v) for n, v in zip(names, x, strict=True)},
                        **{f"x.{n}": float(v) for n, v in zip(names, x, strict=True)},
                        "metrics.accuracy": float(y),
                    }
                )
    return records


def test_synthetic_rows_are_those_of_json_load_in_tables_of_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_hpob(tmp_path, rows_per_dataset=23, datasets=3)
    monkeypatch.setattr(parse, "TABLE_ROWS", 10)
    tables, _ = parsed(tmp_path, "5636")
    assert [record for table in tables for record in table.to_pylist()] == expected(tmp_path, "5636")
    assert [table.num_rows for table in tables] == [10, 10, 3] * 9


def test_columns_are_those_of_the_layout_after_the_split(tmp_path: Path) -> None:
    write_hpob(tmp_path)
    tables, _ = parsed(tmp_path, "4796")
    assert tables[0].schema == schema((SPLIT, *read_descriptors(tmp_path)["4796"].layout.columns))


def test_search_spaces_of_different_length_share_the_columns_of_lists(tmp_path: Path) -> None:
    write_hpob(tmp_path)
    tables, _ = parsed(tmp_path)
    assert {table.schema for table in tables} == {schema((SPLIT, *mixed_columns()))}
    mixed = {record["trial_id"]: record for table in tables for record in table.to_pylist()}
    for search_space in ("4796", "5636"):
        for one in expected(tmp_path, search_space):
            inputs = [value for name, value in one.items() if name.startswith("hyperparameters.")]
            shared = {name: value for name, value in one.items() if "." not in name}
            assert mixed.pop(one["trial_id"]) == shared | {
                "search_space": search_space,
                "hyperparameters": inputs,
                "x": inputs,
                "metrics.accuracy": one["y"],
            }
    assert not mixed


def document(folder: Path, text: str, dimension: int = 2, starts: Mapping[str, Any] | None = None) -> Path:
    """A folder whose only file of trials holds a text."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta-test-dataset.json").write_text(text)
    (folder / INITIALISATIONS).write_text(json.dumps({"7": {"1": starts or {}}}))
    (folder / "meta-dataset-descriptors.json").write_text(json.dumps({"7": describe(dimension)}))
    return folder


def test_the_transform_on_a_runner(tmp_path: Path) -> None:
    document(tmp_path, '{"7": {"1": {"X": [[0.5, 1], [2, 0]], "y": [[0.25], [1]]}}, "8": {}}')
    descriptions, begins = read_descriptors(tmp_path), read_initialisations(tmp_path / INITIALISATIONS)

    def one_record(tables: list[pa.Table]) -> None:
        [[record]] = [table.to_pylist() for table in tables]
        assert (record["x.p0"], record["x.p1"], record["y"]) == (0.5, 1.0, 0.25)

    def one_reject(rejects: list[Reject]) -> None:
        assert rejects == [Reject("meta-test-dataset.json#7/1", 1, "p0 = 2.0 is outside [0, 1]")]

    with pipeline() as p:
        files = p | beam.Create(find_hpob_files(tmp_path, "7").data)
        tables, rejects = files | ParseHpob(descriptions, begins, "7")
        assert_that(tables, one_record, label="tables")
        assert_that(rejects, one_reject, label="rejects")


def test_a_search_space_without_description_is_refused_before_anything_is_read() -> None:
    with pytest.raises(InvalidInputError, match="search space 7 is not described; use one of"):
        ParseHpob({}, {}, "7")


def bits(values: Any) -> list[bytes]:
    return [struct.pack("<d", value) for value in values]


@given(values=st.lists(st.floats(0, 1), min_size=1), piece=st.integers(1, 60))
def test_every_bit_of_a_float_survives_wherever_pieces_end(
    values: list[float], piece: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    values = [-0.0, 5e-324, 0.1 + 0.2, math.nextafter(1, 0), *values]
    text = json.dumps({"7": {"1": {"X": [[value] for value in values], "y": [[value] for value in values]}}})
    folder = document(tmp_path_factory.mktemp("bits"), text, dimension=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "_PIECE", piece)
        tables, rejects = parsed(folder, "7")
    assert not rejects
    for column in ("hyperparameters.p0", "x.p0", "y", "metrics.accuracy"):
        assert bits(tables[0][column].to_pylist()) == bits(values)


@pytest.mark.parametrize(
    "text", ["0.1000000000000000055511151231257827021181583404541015625", "1E-5", "3e-400", "-0"]
)
def test_numbers_are_read_as_python_reads_them(text: str, tmp_path: Path) -> None:
    folder = document(tmp_path, f'{{"7": {{"1": {{"X": [[{text}]], "y": [[{text}]]}}}}}}', dimension=1)
    tables, _ = parsed(folder, "7")
    assert bits(tables[0]["y"].to_pylist()) == bits([float(json.loads(text))])


def test_y_may_come_first_and_the_file_be_gzipped(tmp_path: Path) -> None:
    document(tmp_path, '{"7": {"1": {"y": [[0.25], [1]], "X": [[0, 1], [1, 0]]}}}')
    plain = tmp_path / "meta-test-dataset.json"
    before = parsed(tmp_path, "7")[0][0]
    (tmp_path / "meta-test-dataset.json.gz").write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    plain.unlink()
    after = parsed(tmp_path, "7")[0][0]
    assert before["y"].to_pylist() == [0.25, 1.0]
    assert after["source"].to_pylist() == [
        "meta-test-dataset.json.gz#7/1:0",
        "meta-test-dataset.json.gz#7/1:1",
    ]
    assert after.drop_columns("source") == before.drop_columns("source")


def test_equal_inputs_of_a_dataset_are_duplicates_of_each_other_and_zeros_have_no_sign(
    tmp_path: Path,
) -> None:
    document(
        tmp_path,
        '{"7": {"1": {"X": [[0.0], [1], [-0.0], [0.5], [1.0], [0], [7]], "y": %s}}}' % ([[0.5]] * 7),
        1,
    )
    tables, rejects = parsed(tmp_path, "7")
    assert [[trial[-1] for trial in trials] for trials in tables[0]["duplicates"].to_pylist()] == [
        ["2", "5"],
        ["4"],
        ["0", "5"],
        [],
        ["1"],
        ["0", "2"],
    ]
    assert [reject.line for reject in rejects] == [6]


def test_a_row_may_begin_several_optimisations(tmp_path: Path) -> None:
    document(
        tmp_path,
        '{"7": {"1": {"X": [[0], [1], [9]], "y": [[0], [1], [1]]}}}',
        1,
        {"test1": [1, 0], "test0": [0, 2]},
    )
    tables, rejects = parsed(tmp_path, "7")
    assert tables[0]["initialisations"].to_pylist() == [["test0:0", "test1:1"], ["test1:0"]]
    assert rejects[0].reason == "p0 = 9.0 is outside [0, 1]; the row is test0:1 of the initialisations"


BAD_ROWS = {
    '"X": [[0.5]], "y": [[1]]': "1 entries, not 2: p0, p1",
    '"X": [[0.5, "high"]], "y": [[1]]': "p1 is 'high', not a number",
    '"X": [[0.5, true]], "y": [[1]]': "p1 is True, not a number",
    '"X": [[NaN, 0.5]], "y": [[1]]': "p0 is 'NaN', not a number",
    '"X": [[0.5, -1E+0999]], "y": [[1]]': "p1 is '-1E+0999', not a number",
    '"X": [[0.5, 1.0000001]], "y": [[1]]': "p1 = 1.0000001 is outside [0, 1]",
    '"X": [[0.5, 0.5]], "y": [[]]': "0 entries, not 1: accuracy",
    '"X": [[0.5, 0.5]], "y": [[ NaN ]]': "accuracy is 'NaN', not a number",
    '"X": [[0.5, 0.5]], "y": [[1.5]]': "accuracy = 1.5 is outside [0, 1]",
}


@pytest.mark.parametrize("rows", BAD_ROWS, ids=range(len(BAD_ROWS)))
def test_a_bad_row_is_rejected_and_the_others_stay(rows: str, tmp_path: Path) -> None:
    good = rows.replace('"X": [', '"X": [[0.25, 1], ').replace('"y": [', '"y": [[0.75], ')
    tables, rejects = parsed(document(tmp_path, f'{{"7": {{"1": {{{good}}}}}}}'), "7")
    assert rejects == [Reject("meta-test-dataset.json#7/1", 1, BAD_ROWS[rows])]
    assert [table["trial_id"].to_pylist() for table in tables] == [["7-1/0000000"]]


BAD_FILES = {
    '{"7": {"1": {"X": [[0, 1]], "y": [[1], [1]]}}}': "#7/1: X has 1 rows, y has 2",
    '{"7": {"1": {"X": [[0, 1, 1], [1, 1, 1]], "y": [[1], [1]]}}}': "#7/1: X has rows of 3 entries",
    '{"7": {"1": {"X": [[0, 1]]}}}': "#7/1: the dataset has no y",
    '{"7": {"1": {"X": [[0, 1]], "z": []}}}': "#7/1: the dataset has the field z besides",
    '{"7": {"1": {"X": [0.5]}}}': "#7/1: X[0] is 0.5, not an array",
    '{"7": {"1": {"X": [[0, 1], {}]}}}': "#7/1: X[1] is an object, not an array",
    '{"7": {"1": {"X": [[0, [1]]]}}}': "#7/1: X[0] has an entry that is an array",
    '{"7": {"1": []}}': "#7/1: the dataset is an array, not an object",
    '{"7": []}': "#7: the search space is an array, not an object",
    "[1]": ": the file is an array, not an object",
    '{"7": {"1": {"X": [], "y": []}, "1": {"X": [], "y": []}}}': "#7/1: dataset 1 comes twice",
    '{"7": {"a/b": {"X": [], "y": []}}}': "#7: the search space has the key 'a/b', not an id",
    '{"7": {"1": {"X": [[0, 1], [0': "#7/1: is not JSON or is cut short: parse error: premature EOF",
    '{"7": {"1": {"X": [[123456789012345678901]]}}}': "#7/1: is not JSON or is cut short: parse error: int",
    "": ": is not JSON or is cut short: parse error: premature EOF",
}


@pytest.mark.parametrize("text", BAD_FILES, ids=range(len(BAD_FILES)))
def test_a_file_of_another_layout_is_refused_with_the_place(text: str, tmp_path: Path) -> None:
    folder = document(tmp_path, text)
    file = RawFile(folder / "meta-test-dataset.json", "test", 0, sha256="", size=0, rows=0)
    description = read_descriptors(folder)["7"]
    with pytest.raises(InvalidInputError) as error:
        [list(curate_dataset(raw, file, description, {}, mixed=False)) for raw in read_datasets(file.path)]
    assert str(error.value).startswith("meta-test-dataset.json" + BAD_FILES[text])


def test_invalid_utf8_and_truncated_gzip_are_refused_with_the_place(tmp_path: Path) -> None:
    path = tmp_path / "meta-test-dataset.json"
    path.write_bytes(b'{"7": {"1": {"X": [["\xff"]]}}}')
    with pytest.raises(InvalidInputError, match=r"json#7/1: is not JSON .* invalid bytes in UTF8"):
        list(read_datasets(path))
    packed = tmp_path / "meta-test-dataset.json.gz"
    rows = json.dumps([[i / 9973] for i in range(9973)])
    packed.write_bytes(
        gzip.compress(f'{{"7": {{"1": {{"X": {rows}, "y": {rows}}}}}}}'.encode(), mtime=0)[:-5000]
    )
    with pytest.raises(InvalidInputError, match=r"json\.gz#7/1: cannot be read: .*ended"):
        list(read_datasets(packed))


def test_other_search_spaces_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "meta-test-dataset.json"
    path.write_text('{"5": {"1": {"X": [[3, {"a": []}]]}}, "7": {"1": {"X": [[0]], "y": [[1]]}}, "9": null}')
    assert [(raw.search_space, raw.x.values.tolist()) for raw in read_datasets(path, "7")] == [("7", [0.0])]


MEASURE = """
import resource, sys
from pathlib import Path
from hyperbo_pipelines.hpob.raw_files import count_rows
from hyperbo_pipelines.hpob.stream import read_datasets
path = Path(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = sum(count_rows(path).values())
assert sum(len(raw.x.ends) for raw in read_datasets(path)) == rows
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    used = {}
    for datasets in (5, 40):
        folder = write_hpob(tmp_path / str(datasets), 2000, datasets, {"5636": 6})
        path = folder / "meta-train-dataset.json"
        command = [sys.executable, "-c", MEASURE, str(path)]
        rows, kilobytes = map(int, subprocess.check_output(command, text=True).split())
        assert rows == 2000 * datasets
        used[datasets] = kilobytes
    # The larger file is 5.8 MB, and 31 MB as the lists of json.load.
    assert used[40] < used[5] + 10_000, used
