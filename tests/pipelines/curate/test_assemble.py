"""Tables put aside in any pieces, against a plain sort of their rows."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import hyperbo_pipelines.curate.assemble
import pyarrow as pa
import pytest
from hyperbo_pipelines.curate.assemble import assemble
from hyperbo_pipelines.curate.columns import RELATIONS, Column, schema
from hyperbo_pipelines.curate.elements import Block
from hyperbo_pipelines.curate.summarize import Summary
from hypothesis import given
from hypothesis import strategies as st

KEYS = (
    Column("task", "text", ""),
    Column("phase", "integer", ""),
    Column("trial_id", "text", ""),
    Column("source", "text", ""),
)
VALUES = (Column("y", "real", ""), Column("curves.c", "reals", ""))
COLUMNS = (*KEYS, *RELATIONS, *VALUES)
# Arrow sorts texts by bytes, Python by code points: one order, also beyond 16 bits.
TEXT = st.text(st.sampled_from("ab\x00é￿\U0001f600"), max_size=3)
_NUMBER = count()


@st.composite
def pieces(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Rows with ids of their own, in files of record batches."""
    ids = draw(st.lists(TEXT, unique=True, max_size=12))
    rows = [
        {
            "split": draw(st.sampled_from(["test", "train"])),
            "task": draw(TEXT),
            "phase": draw(st.integers(0, 2)),
            "trial_id": trial_id,
            "source": f"f:{number}",
            "y": draw(st.floats()),
            "curves.c": draw(st.lists(st.floats(), max_size=2)),
        }
        for number, trial_id in enumerate(ids)
    ]
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    return [rows[start:end] for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


def spill(folder: Path, files: list[list[dict[str, Any]]], rows_of_batch: int) -> tuple[str, ...]:
    """What workers put aside, written without them: a file need not even be sorted."""
    names = []
    stored = schema([Column("split", "text", ""), *KEYS, *VALUES])
    for rows in files:
        names.append(f"{next(_NUMBER)}.arrow")
        table = pa.Table.from_pylist(rows, schema=stored)
        with pa.OSFile(str(folder / names[-1]), "wb") as sink, pa.ipc.new_file(sink, stored) as writer:
            writer.write_table(table, max_chunksize=rows_of_batch)
    return tuple(names)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spilled")


@given(files=pieces(), rows_of_batch=st.integers(1, 4), rows_at_once=st.integers(1, 5), draw=st.data())
def test_the_records_are_those_of_a_plain_sort(
    folder: Path,
    files: list[list[dict[str, Any]]],
    rows_of_batch: int,
    rows_at_once: int,
    draw: st.DataObject,
) -> None:
    rows = [row for file in files for row in file]
    some = st.lists(st.sampled_from(rows), unique_by=lambda row: row["trial_id"]) if rows else st.just([])
    repeated = {row["source"] for row in draw.draw(some)}
    duplicates = {row["trial_id"]: ("other", row["task"]) for row in draw.draw(some)}
    in_block = tuple(row["trial_id"] for row in draw.draw(some))
    summary = Summary(
        tables=spill(folder, files, rows_of_batch),
        rejects=(),
        repeated=tuple(sorted(repeated)),
        duplicates=duplicates,
        blocks=(Block("phase1-0", 1, ("a", "b"), 1, in_block),),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hyperbo_pipelines.curate.assemble, "ROWS_OF_BATCH", rows_at_once)
        patch.setattr(hyperbo_pipelines.curate.assemble, "_BYTES_AT_ONCE", 1)
        patch.setattr(hyperbo_pipelines.curate.assemble, "_OPEN_FILES", 1)
        assembly = assemble(folder, summary, COLUMNS)
        found = {split: list(assembly.read(split)) for split in assembly.splits}

    kept = [row for row in rows if row["source"] not in repeated]
    assert set(found) == {row["split"] for row in kept}
    for split, tables in found.items():
        assert all(table.schema.equals(schema(COLUMNS), check_metadata=True) for table in tables)
        assert [len(table) for table in tables[:-1]] == [rows_at_once] * (len(tables) - 1)
        expected = [
            {name: row[name] for name in ("task", "phase", "trial_id", "source")}
            | {
                "duplicates": list(duplicates.get(row["trial_id"], ())),
                "block": "phase1-0" if row["trial_id"] in in_block else "",
                "y": row["y"],
                "curves.c": row["curves.c"],
            }
            for row in sorted(kept, key=lambda row: (row["task"], row["phase"], row["trial_id"]))
            if row["split"] == split
        ]
        # In repr NaN equals NaN, and no two floats are spelled alike.
        assert repr(pa.concat_tables(tables).to_pylist()) == repr(expected)


def test_nothing_put_aside_gives_no_splits(tmp_path: Path) -> None:
    assert assemble(tmp_path, Summary((), (), (), {}, ()), COLUMNS).splits == {}


def test_relations_that_the_tables_hold_are_left_as_they_are(tmp_path: Path) -> None:
    row = {"split": "s", "task": "t", "phase": 0, "trial_id": "i", "source": "f:1", "y": 0.5, "curves.c": []}
    (name,) = spill(tmp_path, [[row]], 1)
    with pa.OSFile(str(tmp_path / name)) as source:
        table = pa.ipc.open_file(source).read_all()
    table = table.append_column("block", pa.array(["kept"]))
    with pa.OSFile(str(tmp_path / name), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    summary = Summary((name,), (), (), {"i": ("j",)}, ())
    (record,) = pa.concat_tables(assemble(tmp_path, summary, COLUMNS).read("s")).to_pylist()
    assert (record["block"], record["duplicates"]) == ("kept", ["j"])
