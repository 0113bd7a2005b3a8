"""Online tuning from a dataset version to records: priors, real training runs, resumption, refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from online_cases import METHODS
from rich.console import Console
from typer.testing import CliRunner
from version_folders import record, write_version

from flows.cli import app
from flows.online import OnlineComparison, Outcome, compare_online
from flows.tune import Tuning, _table, tune_task
from hyperbo.errors import InvalidInputError, NumericalError, VersionConflictError
from hyperbo.online import OnlineTrial, Retrained, RunName
from hyperbo.pretrain import TrainingError
from hyperbo.prior import Prior, load_prior, save_prior
from hyperbo.search_space import PD1_SEARCH_SPACE
from pipelines.raw_files import find_raw_files

STUDY = "breast_cancer_mlp_10"
TASKS = ("breast_cancer-mlp-10", "digits-mlp-32", "wine-mlp-32", "wine-mlp-64")


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A version of four tasks with a matched block; of each a trial diverged."""
    folder = tmp_path_factory.mktemp("data")
    draw = np.random.default_rng(0)
    points = PD1_SEARCH_SPACE.from_unit(draw.random((6, 4)))
    records = []
    for task in TASKS:
        for number, point in enumerate(points.tolist()):
            fields: dict[str, Any] = {
                f"hyperparameters.{name}": value
                for name, value in zip(PD1_SEARCH_SPACE.names, point, strict=True)
            }
            fields |= {"block": "phase1-b", "status": "diverged" if number == 5 else "done"}
            value = None if number == 5 else float(draw.random())
            records.append(record(task, f"{task}/{number}", number / 8, value, **fields))
    write_version(folder, "pd1/mini:1.0.0", {"matched": records}, space=PD1_SEARCH_SPACE)
    return folder


@pytest.fixture(scope="module", autouse=True)
def small_methods() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("flows.online.ONLINE_METHODS", METHODS)
        patch.setattr("flows.tune.ONLINE_METHODS", METHODS)
        yield


@pytest.fixture(scope="module")
def comparison(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> OnlineComparison:
    return OnlineComparison(
        "tiny",
        (STUDY,),
        tmp_path_factory.mktemp("online"),
        data_dir,
        "pd1/mini:1.0.0",
        ("H-NLL", "Rand"),
        (0, 1),
        3,
    )


@pytest.fixture(scope="module")
def outcome(comparison: OnlineComparison) -> Outcome:
    return compare_online(comparison)


def test_a_comparison_leaves_records_of_all_its_trials(
    comparison: OnlineComparison, outcome: Outcome
) -> None:
    records = pd.read_parquet(comparison.out / "records.parquet")
    pd.testing.assert_frame_equal(records, outcome.records)
    assert outcome.failures == {}
    assert records.columns.tolist() == ["method", "task", "seed", "iteration", "y", "objective", "infeasible"]
    runs = records.groupby(["method", "task", "seed"])["iteration"].agg(list)
    assert dict(runs) == {(label, STUDY, seed): [1, 2, 3] for label in ("H-NLL", "Rand") for seed in (0, 1)}
    done = ~records["infeasible"]
    np.testing.assert_allclose(records["y"][done], -np.log(records["objective"][done] + 1e-10), rtol=1e-14)
    assert records[["y", "objective"]][~done].isna().all(axis=None)


def test_its_trials_are_raw_files_of_a_dataset(comparison: OnlineComparison, outcome: Outcome) -> None:
    (file,) = find_raw_files(comparison.out / "trials")
    assert (file.split, file.phase, file.rows) == ("unmatched", 0, len(outcome.records))


def test_priors_are_pretrained_without_the_dataset_that_is_tuned(
    comparison: OnlineComparison, outcome: Outcome
) -> None:
    for seed in (0, 1):
        prior = load_prior(comparison.out / f"priors/H-NLL/breast_cancer/seed{seed}")
        assert prior.description.training_tasks == TASKS[1:]
        assert (prior.description.held_out, prior.description.seed) == ("breast_cancer", seed)
        assert prior.description.preparation == "online"


def test_what_is_there_is_not_done_again(comparison: OnlineComparison, outcome: Outcome) -> None:
    trials = (comparison.out / "trials.jsonl").read_bytes()
    prior = comparison.out / "priors/H-NLL/breast_cancer/seed0/prior.json"
    made = prior.stat().st_mtime_ns
    again = compare_online(comparison)
    pd.testing.assert_frame_equal(again.records, outcome.records)
    assert (comparison.out / "trials.jsonl").read_bytes() == trials
    assert prior.stat().st_mtime_ns == made


def test_other_settings_need_another_folder(comparison: OnlineComparison, outcome: Outcome) -> None:
    with pytest.raises(VersionConflictError, match="trials_at_once is 4, not 2"):
        compare_online(replace(comparison, seeds=(0,)))


def test_the_command_goes_on_with_a_comparison(comparison: OnlineComparison, outcome: Outcome) -> None:
    options = ["--preset", "tiny", "--task", STUDY, "--out", comparison.out, "--seeds", "2", "--trials", "3"]
    options += ["--method", "H-NLL", "--method", "Rand", "--data", comparison.data_dir]
    options += ["--dataset", comparison.dataset]
    result = CliRunner().invoke(app, ["online", *map(str, options)])
    assert result.exit_code == 0, result.output
    infeasible = outcome.records["infeasible"].sum()
    assert f"{comparison.out}: 12 trials, {infeasible} infeasible" in result.output


def test_a_method_without_a_prior_is_reported_and_the_others_run(
    comparison: OnlineComparison, outcome: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise TrainingError([NumericalError("no use"), NumericalError("no use either")])

    monkeypatch.setattr(Retrained, "pretrain", fail)
    left = compare_online(replace(comparison, out=tmp_path))
    assert dict(left.failures) == {
        RunName("H-NLL", STUDY, 0): "no use",
        RunName("H-NLL", STUDY, 1): "no use either",
    }
    expected = outcome.records[outcome.records["method"] == "Rand"].reset_index(drop=True)
    pd.testing.assert_frame_equal(left.records, expected)


def test_the_figure_of_each_task_is_drawn(comparison: OnlineComparison, outcome: Outcome) -> None:
    (file,) = (comparison.out / "figures").iterdir()
    assert file.name == f"{STUDY}.svg"
    assert file.read_text().startswith("<svg")


@pytest.fixture(scope="module")
def tuning(
    comparison: OnlineComparison, outcome: Outcome, data_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Tuning:
    prior = comparison.out / "priors/H-NLL/breast_cancer/seed0"
    return Tuning(f"pd1-tiny:{STUDY}", prior, 3, 5, tmp_path_factory.mktemp("tune"), data_dir)


def test_one_run_with_a_prior_is_shown_and_goes_on(
    tuning: Tuning, capsys: pytest.CaptureFixture[str]
) -> None:
    first = tune_task(replace(tuning, trials=2))
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["trial 1 of 2", "trial 2 of 2"]
    best = tune_task(tuning)
    *before, line = capsys.readouterr().out.splitlines()
    assert len(before) == 2
    assert line.startswith("trial 3 of 3: ")
    assert " infeasible; learning_rate=" in line
    records = pd.read_parquet(tuning.out / "records.parquet")
    assert records["iteration"].tolist() == [1, 2, 3]
    assert best is not None
    assert first is not None
    assert best.run == RunName("H-NLL", STUDY, 5)
    assert best.objective == records["objective"].min()
    assert f"best {best.objective:.4f} in trial {best.iteration}" in line


def test_a_terminal_shows_a_table_of_the_last_trials() -> None:
    trials = [
        OnlineTrial(RunName("H-NLL", STUDY, 0), number, (0.01, 1.0, 0.9, 0.5), value, {})
        for number, value in enumerate([0.5, None, *[0.25] * 12], start=1)
    ]
    console = Console(width=100)
    with console.capture() as captured:
        console.print(_table(trials, 20), _table(trials[:2], 20), _table([], 20))
    text = captured.get()
    assert "14 of 20: best 0.2500 in trial 3, 1 infeasible" in text
    assert "2 of 20: best 0.5000 in trial 1, 1 infeasible" in text
    assert "0 of 20: none yet" in text
    # Twelve rows of the first table, two of the second.
    assert text.count("0.01") == 14


def test_the_command_tells_the_best_trial(tuning: Tuning) -> None:
    options = ["--objective", tuning.objective, "--prior", tuning.prior, "--out", tuning.out, "--trials", "3"]
    result = CliRunner().invoke(
        app, ["tune", *map(str, options), "--seed", "5", "--data", str(tuning.data_dir)]
    )
    assert result.exit_code == 0, result.output
    assert f"{tuning.out}: best error " in result.output


def test_a_prior_of_unmapped_values_is_refused(tuning: Tuning, tmp_path: Path) -> None:
    prior = load_prior(tuning.prior)
    save_prior(tmp_path, Prior(prior.gp, replace(prior.description, preparation="paper")))
    with pytest.raises(InvalidInputError, match="a prior of H-NLL on the preparation 'paper' does not fit"):
        tune_task(replace(tuning, prior=tmp_path))


def test_a_prior_of_another_content_is_refused(tuning: Tuning, tmp_path: Path) -> None:
    prior = load_prior(tuning.prior)
    save_prior(tmp_path, Prior(prior.gp, replace(prior.description, manifest_hash="other")))
    with pytest.raises(VersionConflictError, match=r"was trained on another pd1/mini:1\.0\.0 than is here"):
        tune_task(replace(tuning, prior=tmp_path))


@pytest.mark.parametrize("objective", ["digits", "pd1-tiny", "tiny:digits", "pd1-tiny:"])
def test_an_objective_is_a_task_of_a_preset(tuning: Tuning, objective: str) -> None:
    with pytest.raises(InvalidInputError, match="write pd1-<preset>:<task>, such as"):
        tune_task(replace(tuning, objective=objective))


def test_unknown_methods_and_empty_comparisons_are_refused(
    comparison: OnlineComparison, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInputError, match="unknown method MAF; use some of H-NLL, H-EKL"):
        compare_online(replace(comparison, methods=("MAF",), out=tmp_path))
    with pytest.raises(InvalidInputError, match="no task or no seed"):
        compare_online(replace(comparison, tasks=(), out=tmp_path))


def test_journal_lines_hold_the_raw_row_and_its_origin(
    comparison: OnlineComparison, outcome: Outcome
) -> None:
    lines = [json.loads(line) for line in (comparison.out / "trials.jsonl").read_text().splitlines()]
    assert len({line["row"]["trial_dir"] for line in lines}) == len(lines)
    for line in lines:
        run = line["run"]
        assert line["row"]["origin"].endswith(f"/{run['method']}/seed{run['seed']}")
        assert line["row"]["origin"].startswith("online-")
