"""Space files drafted from rows: what each column is taken for, and that the draft reads its rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import optuna
import pytest
from hyperbo_pipelines.histories import Options, draft_of_rows, tried
from hyperbo_pipelines.histories.draft import ParameterDraft
from hyperbo_pipelines.histories.guess import guess_parameter
from hyperbo_pipelines.trials.space_file import read_space_file
from optuna.distributions import FloatDistribution, IntDistribution

from hyperbo.errors import InvalidInputError

EXPORT = """task,dataset,run,state,valid_loss,test_loss,seconds,host,config.lr,config.momentum,config.width,\
config.optimizer,config.nesterov,config.epochs
resnet,cifar,r1,finished,0.41,0.43,812,node3,0.1,0.9,128,sgd,true,30
resnet,cifar,r2,nan,,,95,node3,0.9,0.99,64,sgd,false,30
mlp,cifar,r1,finished,1.02,1.05,64,node4,0.0004,,32,adam,,30
mlp,cifar,r2,running,,,,node4,0.02,0.999,256,sgd,true,30
"""


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_an_export_of_a_tracker_is_drafted_and_the_draft_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_text(EXPORT, encoding="utf-8")
    text = tried(draft_of_rows([path], Options()), [path]).to_toml()
    assert "it reads 3 trials and rejects 0 rows" in text
    space = tmp_path / "space.toml"
    space.write_text(text, encoding="utf-8")
    found = read_space_file(space)
    assert (found.objective, found.direction) == ("valid_loss", "minimize")
    assert (found.task.column, found.task_dataset and found.task_dataset.column) == ("task", "dataset")
    assert found.trial_id == "run"
    assert found.status
    assert dict(found.status.meanings) == {"finished": "done", "nan": "diverged"}
    assert found.status.skip == ("running",)
    assert found.metrics == ("test_loss", "seconds")
    assert found.ignore == ("host",)
    by_name = {each.name: each for each in found.space.parameters}
    described = {
        name: fields["type"]
        for fields in found.space.to_json()
        for name in [fields["name"]]
        if "type" in fields
    }
    assert described["width"] == "integer"
    assert described["optimizer"] == "choice"
    assert described["nesterov"] == "boolean"
    assert described["epochs"] == "constant"
    rate: Any = by_name["lr"]
    assert (rate.lower, rate.upper, rate.scaling, rate.role) == (1e-4, 1.0, "log", "learning_rate")
    momentum: Any = by_name["momentum"]
    assert momentum.scaling == "log1m"
    assert (momentum.condition.parameter, momentum.condition.values) == ("optimizer", ("sgd",))


def test_marks_of_failure_in_the_objective_are_named_and_counted(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"accuracy": 0.5 + i / 8, "depth": 1 + i} for i in range(3)]
    path = lines(tmp_path / "net.jsonl", [*rows, {"accuracy": "FAILED", "depth": 9}])
    text = tried(draft_of_rows([path], Options()), [path]).to_toml()
    assert "# 'FAILED' are no numbers" in text.replace("Guess: the name says so.\n# ", "")
    assert "it reads 3 trials and rejects 1 rows" in text
    assert "Rejected: net.jsonl:4: accuracy is 'FAILED'" in text
    assert 'direction = "maximize"' in text
    assert "task = { file_name = true }" in text


def test_a_table_of_optuna_is_drafted_with_the_index_of_pandas(tmp_path: Path) -> None:
    study = optuna.create_study(study_name="net")
    for i in range(4):
        trial = study.ask({"rate": FloatDistribution(1e-5, 1.0, log=True), "layers": IntDistribution(1, 4)})
        study.tell(trial, None if i == 3 else i / 4, optuna.trial.TrialState.FAIL if i == 3 else None)
    study.trials_dataframe().to_csv(tmp_path / "net.csv")
    text = tried(draft_of_rows([tmp_path / "net.csv"], Options()), [tmp_path / "net.csv"]).to_toml()
    assert "it reads 4 trials and rejects 0 rows" in text
    space = tmp_path / "space.toml"
    space.write_text(text, encoding="utf-8")
    found = read_space_file(space)
    assert found.space.names == ("layers", "rate")
    assert (found.objective, found.trial_id) == ("value", "number")
    assert found.status
    assert dict(found.status.meanings) == {"COMPLETE": "done", "FAIL": "infeasible"}
    assert "" in found.ignore


def drafted(*values: Any, name: str = "a") -> ParameterDraft:
    return guess_parameter(name, values)


def test_types_and_scalings_are_guessed_of_values() -> None:
    assert drafted(1, 2.0, 7).kind == "integer"
    assert drafted(0.5, 2.0, 7).kind == "real"
    assert drafted("relu", "tanh").levels == ("relu", "tanh")
    assert drafted(True, False, True).kind == "boolean"
    assert (drafted("x", "x").kind, drafted("x", "x").levels) == ("constant", ("x",))
    assert drafted(1e-5, 1e-2).scaling == "log"
    assert drafted(0.1, 0.9).scaling == "linear"
    assert drafted(0.9, 0.99, 0.9999).scaling == "log1m"
    powers = drafted(16, 32, 64, 32, 16)
    assert any("ordinal" in note and "[16, 32, 64]" in note for note in powers.notes)


@pytest.mark.parametrize("values", [(0.1, "auto"), (True, 2), (0.5, [1]), (float("inf"), 1.0)])
def test_columns_of_mixed_or_strange_values_are_refused(values: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidInputError, match=r"^trials\.csv: a (has values of mixed types|is) ?.*; \w+"):
        guess_parameter("a", values, "trials.csv")


BAD: dict[str, tuple[list[dict[str, Any]], Options, str]] = {
    "no rows": ([], Options(), "there is no trial"),
    "no objective": ([{"a": 1.5, "b": 2}], Options(), "is tuned is not clear among 'a', 'b'.*--obj"),
    "two objectives": ([{"x_loss": 1.0, "y_loss": 2.0}], Options(), "not clear among 'x_loss', 'y_loss'"),
    "no direction": ([{"a": 1.5, "b": 2}], Options(objective="a"), "minimised or maximised; say it by --dir"),
    "no parameter": ([{"loss": 1.5, "seconds": 2}], Options(), "no column looks like a hyperparameter"),
    "mixed": ([{"loss": 1.5, "b": 2}, {"loss": 1, "b": "x"}], Options(), "b has values of mixed types: 2"),
    "no JSON": ([], Options(), r"a\.jsonl:1: .*; no row can be read"),
    "no such task": ([{"loss": 1.5, "b": 2}], Options(task="net"), "--task: there is no column 'net'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_drafted_is_one_line(tmp_path: Path, case: str) -> None:
    rows, options, message = BAD[case]
    path = lines(tmp_path / "a.jsonl", rows)
    if case == "no JSON":
        path.write_text('{"x":1\n', encoding="utf-8")
    with pytest.raises(InvalidInputError, match=message) as raised:
        draft_of_rows([path], options)
    assert "\n" not in str(raised.value)


def test_truths_may_be_written_as_numbers_and_large_integers_are_ignored(tmp_path: Path) -> None:
    rows = [
        {"loss": place, "a": place / 4, "flag": (True, 0, 1, False)[place], "large": 2**60 + place % 2}
        for place in range(4)
    ]
    path = lines(tmp_path / "a.jsonl", rows)
    draft = tried(draft_of_rows([path], Options()), [path])
    assert [(each.name, each.kind) for each in draft.parameters] == [("a", "real"), ("flag", "boolean")]
    assert draft.ignore == ("large",)
    assert "'large' is ignored, because it cannot be declared: range [" in draft.notes["ignore"][-1]
    assert "Tried on the data: it reads 4 trials and rejects 0 rows." in draft.notes[""]


def test_a_name_cannot_break_out_of_the_draft(tmp_path: Path) -> None:
    name = 'a"\n[about]\\ \x07#'
    path = lines(tmp_path / "a.jsonl", [{"loss": 1.0, name: 0.5}, {"loss": 2.0, name: 0.25}])
    space = tmp_path / "space.toml"
    space.write_text(tried(draft_of_rows([path], Options()), [path]).to_toml(), encoding="utf-8")
    assert read_space_file(space).space.names == (name,)
