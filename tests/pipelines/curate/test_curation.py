from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from beam_checks import pipeline
from hyperbo_pipelines.curate.assemble import Assembly, assemble
from hyperbo_pipelines.curate.build import SUMMARY_NAME, CurateTrials, WarpedMetric
from hyperbo_pipelines.curate.summarize import read_summary
from hyperbo_pipelines.pd1.layout import find_raw_files, pd1_layout
from hyperbo_pipelines.pd1.parse import ParseTrials
from synthetic_pd1 import TASKS, rows, write

from hyperbo.data.search_space import PD1_SEARCH_SPACE

INPUTS = 6
NAME = "pd1_matched_phase1_results.jsonl"
LAYOUT = pd1_layout(curves=True)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Two tasks in both phases, phase 0 repeating inputs of phase 1; some rows are bad, one id repeats."""
    first = rows("matched", 1, tasks=TASKS[:2], inputs=INPUTS)
    again = [row | {"trial_dir": "again/" + row["trial_dir"]} for row in first[:2]]
    bad = [first[0] | {"trial_dir": "bad", "hps.lr_hparams.power": 9.0}, "{"]
    write(tmp_path / "raw", NAME, [*first, *bad, first[3]])
    write(tmp_path / "raw", "pd1_matched_phase0_results.jsonl.gz", again)
    unmatched = rows("unmatched", 1, tasks=TASKS[:2], inputs=2)
    write(tmp_path / "raw", "pd1_unmatched_phase1_results.jsonl", unmatched)
    return tmp_path / "raw"


def curate(raw: Path, work: Path) -> Assembly:
    work.mkdir()
    read = ParseTrials(PD1_SEARCH_SPACE, "test")
    objective = WarpedMetric("best_valid/error_rate", "negative_log")
    with pipeline() as p:
        _ = p | beam.Create(find_raw_files(raw)) | CurateTrials(read, LAYOUT, objective, ("matched",), work)
    return assemble(work, read_summary(work / SUMMARY_NAME), LAYOUT.columns)


def records(assembly: Assembly, split: str) -> list[dict[str, Any]]:
    return pa.concat_tables(assembly.read(split)).to_pylist()


def test_from_raw_files_to_records_rejects_and_summary(raw: Path, tmp_path: Path) -> None:
    assembly = curate(raw, tmp_path / "work")
    matched, unmatched = records(assembly, "matched"), records(assembly, "unmatched")
    assert (len(matched), len(unmatched)) == (2 * INPUTS + 2, 4)
    by_id = {record["trial_id"]: record for record in matched + unmatched}
    assert len(by_id) == 2 * INPUTS + 2 + 4
    repeated = by_id[f"matched1/{TASKS[0]}/00000"]
    assert repeated["duplicates"] == [f"again/matched1/{TASKS[0]}/00000"]
    assert repeated["block"].startswith("phase1-")
    assert by_id[f"matched1/{TASKS[0]}/00005"]["duplicates"] == []
    # In phase 0 one task alone ran the inputs.
    assert by_id[f"again/matched1/{TASKS[0]}/00000"]["block"] == ""
    assert by_id[f"unmatched1/{TASKS[0]}/00000"]["block"] == ""
    for split in (matched, unmatched):
        order = [(record["task"], record["phase"], record["trial_id"]) for record in split]
        assert order == sorted(order)
    (block,) = assembly.summary.blocks
    assert (block.phase, block.tasks, block.inputs) == (1, ("digits-mlp-128", "digits-mlp-32"), INPUTS)
    assert [(each.file, each.line) for each in assembly.summary.rejects] == [(NAME, n) for n in (13, 14, 15)]


def test_the_records_do_not_depend_on_the_order_of_the_rows(raw: Path, tmp_path: Path) -> None:
    shuffled = tmp_path / "shuffled"
    for number, file in enumerate(find_raw_files(raw)):
        # The bad rows are left out: where a reject stands is where it stands.
        lines = [json.loads(line) for line in _lines(file.path)[:12]]
        write(tmp_path / "plain", file.path.name, lines)
        random.Random(number).shuffle(lines)
        write(shuffled, file.path.name, lines)
    plain, other = (
        curate(folder, tmp_path / f"work-{folder.name}") for folder in (tmp_path / "plain", shuffled)
    )
    for split in ("matched", "unmatched"):
        first, second = records(plain, split), records(other, split)
        assert [r.pop("source") for r in first] != [r.pop("source") for r in second]
        assert repr(first) == repr(second)


def test_rows_spread_over_many_tables_are_merged_in_order(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hyperbo_pipelines.curate.assemble
    import hyperbo_pipelines.curate.tables

    whole = curate(raw, tmp_path / "whole")
    monkeypatch.setattr(hyperbo_pipelines.curate.tables, "_TRIALS_AT_ONCE", 3)
    monkeypatch.setattr(hyperbo_pipelines.curate.tables, "ROWS_OF_BATCH", 2)
    monkeypatch.setattr(hyperbo_pipelines.curate.assemble, "ROWS_OF_BATCH", 2)
    monkeypatch.setattr(hyperbo_pipelines.curate.assemble, "_BYTES_AT_ONCE", 1)
    cut = curate(raw, tmp_path / "cut")
    assert len(cut.summary.tables) >= 6
    assert cut.rows_at_once == 2
    for split in ("matched", "unmatched"):
        assert repr(records(cut, split)) == repr(records(whole, split))


def _lines(path: Path) -> list[bytes]:
    import gzip

    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).splitlines()
