"""The page of benchmarks is what the records give, and a record is what a benchmark showed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.table import Table

from benchmarks.page import RECORDS, page
from benchmarks.recording import recorded

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_records_give() -> None:
    assert (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8") == page(), "make benchmark-page"


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda path: path.stem)
def test_the_command_of_a_record_is_there(path: Path) -> None:
    words = json.loads(path.read_text(encoding="utf-8"))["command"].split()
    module = ROOT.joinpath(*words[words.index("-m") + 1].split("."))
    assert module.with_suffix(".py").is_file() or (module / "__main__.py").is_file()


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda path: path.stem)
def test_a_table_that_is_copied_is_that_of_its_page(path: Path) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    if "copied_from" in record:
        source = (ROOT / "docs" / record["copied_from"]).read_text(encoding="utf-8")
        rows = [row for table in record["tables"] for row in (table["columns"], *table["rows"])]
        assert [row for row in rows if f"| {' | '.join(row)} |" not in source] == []


def test_a_record_is_what_was_shown_and_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("what", "s", title="Times")
    table.add_row("a | b", "0.1")
    with recorded("A benchmark", tmp_path / "one.json") as show:
        show("two tasks")
        show(table)
    record = json.loads((tmp_path / "one.json").read_text(encoding="utf-8"))
    assert record["tables"] == [{"title": "Times", "columns": ["what", "s"], "rows": [["a | b", "0.1"]]}]
    assert record["versions"].keys() >= {"python", "jax", "numpy"}
    written = page(tmp_path)
    assert "\n## A benchmark\n" in written
    assert "\n### Times\n\n| what | s |\n| --- | --- |\n| a / b | 0.1 |\n" in written
    assert "two tasks" in written
    assert "two tasks" in capsys.readouterr().out


def test_a_benchmark_that_fails_leaves_no_record(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), recorded("A benchmark", tmp_path / "one.json"):
        1 / 0  # noqa: B018
    assert not list(tmp_path.iterdir())
