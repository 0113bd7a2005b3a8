"""What each tool's own files say, against the function that stood in for the trainings."""

from __future__ import annotations

import importlib.util
import math
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hyperbo_pipelines.histories import Options, make_table, read_histories
from hyperbo_pipelines.histories.history import Study
from hyperbo_pipelines.histories.objective import ending

RECORDED = Path(__file__).parent / "recorded"
_SPEC = importlib.util.spec_from_file_location("record", RECORDED / "record.py")
assert _SPEC
assert _SPEC.loader
record = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(record)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The source of each tool; the archive of MLflow unpacked."""
    unpacked = tmp_path_factory.mktemp("mlflow")
    shutil.unpack_archive(RECORDED / "mlflow.zip", unpacked)
    tools = ("ax", "keras_tuner", "ray", "smac", "syne_tune", "wandb")
    return {tool: str(RECORDED / tool) for tool in tools} | {
        "vizier": f"sqlite:///{RECORDED / 'vizier/vizier.db'}",
        "mlflow": f"sqlite:///{unpacked / 'mlflow.db'}",
        "mlflow files": str(unpacked / "mlruns"),
    }


def accuracy(task: str, values: dict[str, Any]) -> float:
    return 1.0 / (1.0 + record.loss(task, values))


STOPPED = {"done": 6, "pruned": 6, "running": 2}
MLFLOW = {"done": 6, "diverged": 2, "failed": 2, "running": 2}
# Of each tool: its name and version, objective and direction as it says them, what the objective is, its
# digits, and how the trials of both tasks ended.
CASES: dict[str, tuple[str, str, str | None, Any, int, dict[str, int]]] = {
    "ax": ("Ax", "val_loss", "minimize", record.loss, 9, {"done": 6, "failed": 4, "running": 2}),
    "keras_tuner": ("KerasTuner", "accuracy", "maximize", accuracy, 15, {"done": 10, "failed": 6}),
    "mlflow": ("MLflow", "val_loss", None, record.loss, 15, MLFLOW),
    "mlflow files": ("MLflow", "val_loss", None, record.loss, 15, MLFLOW),
    "ray": ("Ray Tune", "val_loss", None, record.loss, 15, {"done": 9, "failed": 3}),
    "smac": ("SMAC 2.4.1", "cost", "minimize", record.loss, 15, {"done": 14, "failed": 2}),
    "syne_tune": ("Syne Tune", "val_loss", "minimize", record.loss, 15, STOPPED),
    "vizier": ("Vizier", "accuracy", "maximize", accuracy, 15, {"done": 10, "failed": 2, "running": 2}),
    "wandb": ("Weights & Biases 0.31.0", "val_loss", None, record.loss, 15, {"done": 8, "failed": 2}),
}  # fmt: skip


def endings(studies: list[Study], objective: str) -> Counter[str]:
    return Counter(
        run.status if run.status == "running" else ending(run, objective)
        for study in studies
        for run in study.runs
    )


@pytest.mark.parametrize("tool", CASES)
def test_a_recorded_history_says_what_was_tried_and_what_came_out(tool: str, sources: dict[str, str]) -> None:
    name, objective, direction, expected, digits, ends = CASES[tool]
    studies = read_histories([sources[tool]])
    assert sorted(study.name for study in studies) == ["digits", "wine"]
    for study in studies:
        assert f"{study.tool} {study.version}".strip() == name
        if direction:
            assert [(each.name, each.direction) for each in study.objectives] == [(objective, direction)]
        else:
            assert study.objectives == ()
        assert len({run.trial_id for run in study.runs}) == len(study.runs)
        for run in study.runs:
            if run.status == "done" and math.isfinite(run.metrics[objective]):
                value = expected(study.name, run.values)
                assert run.metrics[objective] == pytest.approx(value, rel=10.0**-digits, abs=10.0**-digits)
            if run.status == "pruned":
                # Stopped after its first report, of three times the final loss.
                assert run.metrics[objective] == pytest.approx(
                    3 * expected(study.name, run.values), rel=1e-12
                )
            # All were recorded in one week.
            assert math.isnan(run.started) or 1.795e9 < run.started < 1.796e9
            assert math.isnan(run.seconds) or 0 <= run.seconds < 60
    assert endings(studies, objective) == ends


@pytest.mark.parametrize("tool", CASES)
def test_a_recorded_history_becomes_a_table_with_its_space(tool: str, sources: dict[str, str]) -> None:
    _, objective, direction, _, _, ends = CASES[tool]
    table = make_table(read_histories([sources[tool]]), Options())
    draft = table.draft
    assert (draft.objective, draft.direction) == (objective, direction or "minimize")
    assert sum(map(len, table.rows.values())) == sum(ends.values()) - ends.get("running", 0)
    kinds = {each.name: each.kind for each in draft.parameters}
    assert kinds["learning_rate"] == "real"
    assert kinds["layers"] == "integer"
    assert kinds["optimizer"] == "choice"
    rate = next(each for each in draft.parameters if each.name == "learning_rate")
    assert (rate.lower, rate.upper, rate.scaling) == (1e-5, 1.0, "log")
    levels = next(each for each in draft.parameters if each.name == "optimizer").levels
    assert sorted(levels) == ["adam", "rmsprop", "sgd"]
    # The task is no hyperparameter, though Ray and others record it as one.
    assert "dataset" not in kinds


@pytest.mark.parametrize("tool", ["keras_tuner", "mlflow", "smac", "vizier", "wandb"])
def test_a_conditional_parameter_is_one(tool: str, sources: dict[str, str]) -> None:
    table = make_table(read_histories([sources[tool]]), Options())
    momentum = next(each for each in table.draft.parameters if each.name == "momentum")
    assert momentum.condition
    assert (momentum.condition.parameter, momentum.condition.values) == ("optimizer", ("sgd",))
    for row in (row for rows in table.rows.values() for row in rows):
        has_one = row["parameters.momentum"] is not None
        assert has_one == (row["parameters.optimizer"] == "sgd")


def test_curves_are_kept_by_step(sources: dict[str, str]) -> None:
    (study, _) = read_histories([sources["mlflow"]])
    run = next(run for run in study.runs if run.status == "done" and "train_seconds" in run.metrics)
    value = record.loss(study.name, dict(run.values))
    assert run.curves["val_loss"] == pytest.approx({0.0: 3 * value, 1.0: 2 * value, 2.0: value}, rel=1e-12)


def test_the_task_may_be_an_attribute_or_a_hyperparameter(sources: dict[str, str]) -> None:
    table = make_table(read_histories([sources["ray"]]), Options(task="dataset"))
    assert list(table.rows) == ["digits", "wine"]
    assert all(row["trial"].startswith("digits/") for row in table.rows["digits"])
