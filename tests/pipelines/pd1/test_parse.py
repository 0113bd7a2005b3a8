from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from beam_checks import expect, pipeline, raw_file
from hyperbo_pipelines.pd1.parse import ParseTrials, parse_trial
from synthetic_pd1 import rows, write

from hyperbo.data.search_space import PD1_SEARCH_SPACE
from hyperbo.data.trial import Trial
from hyperbo.errors import InvalidInputError

FILE = raw_file(Path("/somewhere/pd1_matched_phase1_results.jsonl"))
LEARNING_RATE = "hps.lr_hparams.initial_value"


def parse(row: dict[str, Any] | bytes) -> Trial:
    content = row if isinstance(row, bytes) else json.dumps(row).encode()
    return parse_trial(content, FILE, 7, PD1_SEARCH_SPACE, "test")


def row(**changes: Any) -> dict[str, Any]:
    return rows("matched", 1, inputs=1)[0] | changes


def test_every_field_of_a_row() -> None:
    made = row(study_group="shortname,imagenet,resnet,resnet50,512", status="done")
    trial = parse(made)
    assert (trial.task, trial.task_dataset, trial.model, trial.batch_size) == (
        "imagenet-resnet50-512",
        "imagenet",
        "resnet50",
        512,
    )
    assert (trial.trial_id, trial.split, trial.phase, trial.status) == (
        made["trial_dir"],
        "matched",
        1,
        "done",
    )
    assert (trial.origin, trial.source) == ("test", "pd1_matched_phase1_results.jsonl:7")
    assert trial.hyperparameters == {
        "learning_rate": made[LEARNING_RATE],
        "power": made["hps.lr_hparams.power"],
        "momentum": made["hps.opt_hparams.momentum"],
        "decay_steps_factor": made["hps.lr_hparams.decay_steps_factor"],
    }
    assert trial.input_id == PD1_SEARCH_SPACE.input_id(trial.hyperparameters)
    assert trial.metrics["best_valid/error_rate"] == made["best_valid/error_rate"]
    assert math.isnan(trial.metrics["best_train_cost"])
    assert trial.curves["valid/error_rate"] == tuple(made["valid/error_rate"])
    assert "test/error_rate" not in trial.curves


def test_floats_keep_every_bit() -> None:
    value = 0.1 + 0.2
    trial = parse(row(**{LEARNING_RATE: value, "best_valid/error_rate": math.nextafter(0.5, 1)}))
    assert trial.hyperparameters["learning_rate"].hex() == value.hex()
    assert trial.metrics["best_valid/error_rate"].hex() == math.nextafter(0.5, 1).hex()


def test_null_nan_and_absent_are_nan_and_infinity_stays() -> None:
    made = row(**{"best_train/ce_loss": None, "train/ce_loss": [1, None, 2.5]})
    content = (
        json.dumps(made)[:-1]
        + ', "best_valid/ce_loss": NaN, "best_train_cost": Infinity, "epoch": [NaN, 1e999, 1]}'
    )
    trial = parse(content.encode())
    for name in ("best_train/ce_loss", "best_valid/ce_loss", "best_train/error_rate"):
        assert math.isnan(trial.metrics[name])
    assert trial.metrics["best_train_cost"] == math.inf
    assert repr(trial.curves["train/ce_loss"]) == "(1.0, nan, 2.5)"
    assert repr(trial.curves["epoch"]) == "(nan, inf, 1.0)"


def test_a_diverged_trial_keeps_its_best_value() -> None:
    trial = parse(row(status="diverged", **{"best_valid/error_rate": 0.25}))
    assert trial.diverged
    assert trial.metrics["best_valid/error_rate"] == 0.25


def without(column: str) -> dict[str, Any]:
    made = row()
    del made[column]
    return made


WHOLE = json.dumps(row()).encode()
BAD_ROWS: dict[str, tuple[dict[str, Any] | bytes, str]] = {
    "string for a learning rate": (row(**{LEARNING_RATE: "high"}), f"{LEARNING_RATE} is 'high'"),
    "boolean": (row(**{LEARNING_RATE: True}), f"{LEARNING_RATE} is True, not a number"),
    "null hyperparameter": (row(**{LEARNING_RATE: None}), f"{LEARNING_RATE} is null"),
    "missing hyperparameter": (without(LEARNING_RATE), f"{LEARNING_RATE} is missing"),
    "missing id": (without("trial_dir"), "trial_dir is missing"),
    "empty id": (row(trial_dir=""), "trial_dir is '', not a text"),
    "lone surrogate": (row(trial_dir="a\ud800"), "trial_dir is not text"),
    "missing study": (without("study_group"), "study_group is missing"),
    "short study": (row(study_group="a,b,c,32"), "study_group is 'a,b,c,32', not shortname,dataset"),
    "empty part": (row(study_group="a,,c,d,32"), "study_group is 'a,,c,d,32', not shortname,dataset"),
    "batch size not a number": (row(study_group="a,b,c,d,many"), "batch size in study_group is 'many'"),
    "batch size zero": (row(study_group="a,b,c,d,0"), "batch size in study_group is '0'"),
    "unknown status": (row(status="lost"), "status is 'lost', not one of done, diverged, infeasible"),
    "missing status": (without("status"), "status is missing"),
    "huge integer": (row(best_train_cost=10**400), "best_train_cost is too large"),
    "metric as text": (row(**{"best_valid/error_rate": "low"}), "best_valid/error_rate is 'low'"),
    "curve as number": (row(epoch=3.5), "epoch is 3.5, not an array"),
    "text in a curve": (row(epoch=[1.0, "x"]), "epoch has the entry 'x'"),
    "cut in half": (WHOLE[: len(WHOLE) // 2], "is not JSON"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_bad_rows_are_refused_with_the_reason(name: str) -> None:
    content, message = BAD_ROWS[name]
    with pytest.raises(InvalidInputError, match=message):
        parse(content)


def test_the_transform_sorts_rows_into_trials_and_rejects(tmp_path: Path) -> None:
    good = rows("matched", 1, inputs=1, tasks=("s,d,m,v,8",))[0]
    path = write(tmp_path, "x.jsonl.gz", [good, "", good | {LEARNING_RATE: "high"}, b"\xff"])
    trial = parse_trial(json.dumps(good).encode(), raw_file(path), 1, PD1_SEARCH_SPACE, "test")
    with pipeline() as p:
        trials, rejects = p | beam.Create([raw_file(path)]) | ParseTrials(PD1_SEARCH_SPACE, "test")
        expect(trials, [trial], "trials")
        expect(
            rejects | beam.Map(lambda each: (each.file, each.line)),
            [("x.jsonl.gz", n) for n in (3, 4)],
            "rejects",
        )


def test_a_file_that_cannot_be_read_to_its_end_stops_the_pipeline(tmp_path: Path) -> None:
    path = write(tmp_path, "x.jsonl.gz", rows("matched", 1, inputs=50))
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(Exception, match=r"x\.jsonl\.gz:\d+: cannot be read"), pipeline() as p:
        _ = p | beam.Create([raw_file(path)]) | ParseTrials(PD1_SEARCH_SPACE, "test")
