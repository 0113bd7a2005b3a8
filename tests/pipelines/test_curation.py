from __future__ import annotations

from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that
from beam_checks import expect, pipeline
from synthetic_pd1 import TASKS, rows, write

from hyperbo.errors import InvalidInputError
from pipelines.build import CurateTrials, CurationOptions, check_rejects
from pipelines.raw_files import find_raw_files
from pipelines.records import Reject
from pipelines.summarize import Summary

INPUTS = 6


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Two tasks in both phases, phase 0 repeating inputs of phase 1; some rows are bad, one id repeats."""
    first = rows("matched", 1, tasks=TASKS[:2], inputs=INPUTS)
    again = [row | {"trial_dir": "again/" + row["trial_dir"]} for row in first[:2]]
    bad = [first[0] | {"trial_dir": "bad", "hps.lr_hparams.power": 9.0}, "{"]
    write(tmp_path, "pd1_matched_phase1_results.jsonl", [*first, *bad, first[3]])
    write(tmp_path, "pd1_matched_phase0_results.jsonl.gz", again)
    write(tmp_path, "pd1_unmatched_phase1_results.jsonl", rows("unmatched", 1, tasks=TASKS[:2], inputs=2))
    return tmp_path


def test_from_raw_files_to_records_rejects_and_summary(raw: Path) -> None:
    def check_records(records) -> None:
        assert len({record.trial.trial_id for record in records}) == 2 * INPUTS + 2 + 4
        by_id = {record.trial.trial_id: record for record in records}
        repeated = by_id[f"matched1/{TASKS[0]}/00000"]
        assert repeated.duplicates == (f"again/matched1/{TASKS[0]}/00000",)
        assert repeated.block.startswith("phase1-")
        assert by_id[f"matched1/{TASKS[0]}/00005"].duplicates == ()
        # In phase 0 one task alone ran the inputs.
        assert by_id[f"again/matched1/{TASKS[0]}/00000"].block == ""
        assert by_id[f"unmatched1/{TASKS[0]}/00000"].block == ""
        assert all(len(record.x) == 4 for record in records)

    def check_summary(summaries) -> None:
        (summary,) = summaries
        assert (summary.records(), summary.rejects, summary.duplicates) == (2 * INPUTS + 2 + 4, 3, 4)
        assert (summary.records("matched"), summary.records("unmatched")) == (2 * INPUTS + 2, 4)
        (block,) = summary.blocks
        assert (block["phase"], block["tasks"], block["inputs"]) == (
            1,
            ["digits-mlp-128", "digits-mlp-32"],
            INPUTS,
        )
        diverged = [
            r for r in rows("matched", 1, tasks=TASKS[:2], inputs=INPUTS) if r["status"] == "diverged"
        ]
        again = [
            r for r in rows("matched", 1, tasks=TASKS[:2], inputs=INPUTS)[:2] if r["status"] == "diverged"
        ]
        counted = sum(statuses.get("diverged", 0) for statuses in summary.counts["matched"].values())
        assert counted == len(diverged) + len(again)

    with pipeline() as p:
        curated = p | beam.Create(find_raw_files(raw)) | CurateTrials(CurationOptions("test"))
        assert_that(curated.records, check_records, label="records")
        assert_that(curated.summary, check_summary, label="summary")
        name = "pd1_matched_phase1_results.jsonl"
        expect(
            curated.rejects,
            [
                Reject(name, 13, "power = 9.0 is outside [0.1, 2.0]"),
                Reject(
                    name,
                    14,
                    "is not JSON: Expecting property name enclosed in double quotes: "
                    "line 2 column 1 (char 2)",
                ),
                Reject(name, 15, f"trial_dir 'matched1/{TASKS[0]}/00003' repeats the row {name}:4"),
            ],
            "rejects",
        )


def test_too_many_rejects_name_the_first_rows() -> None:
    summary = Summary({"matched": {"t": {"done": 998}}}, rejects=2, duplicates=0, blocks=[])
    rejects = [Reject("f.jsonl", 3, "is not JSON"), Reject("f.jsonl", 9, "status is missing")]
    check_rejects(summary, rejects, 0.002)
    with pytest.raises(
        InvalidInputError,
        match=r"2 of 1000 rows .* 0\.001; f\.jsonl:3: is not JSON; f\.jsonl:9: status is missing; mend",
    ):
        check_rejects(summary, rejects, 0.001)


def test_a_share_is_between_0_and_1() -> None:
    with pytest.raises(InvalidInputError, match=r"max_reject_share is 1\.5"):
        CurationOptions("test", max_reject_share=1.5)
