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
from hyperbo_flows.cli.main import app
from hyperbo_flows.experiments.online import ComparisonResults, OnlineComparison, compare_online
from hyperbo_pipelines.pd1.layout import find_raw_files
from online_cases import METHODS
from typer.testing import CliRunner
from version_folders import record, write_version

from hyperbo.bayesopt.journal import RunName
from hyperbo.bayesopt.online_methods import Retrained
from hyperbo.data.search_space import PD1_SEARCH_SPACE
from hyperbo.errors import InvalidInputError, NumericalError, VersionConflictError
from hyperbo.pretrain import TrainingError
from hyperbo.priors.file import Prior, read_prior, save_prior

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
        patch.setattr("hyperbo_flows.experiments.online.ONLINE_METHODS", METHODS)
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
def results(comparison: OnlineComparison) -> ComparisonResults:
    return compare_online(comparison)


@pytest.mark.slow
def test_a_comparison_leaves_records_of_all_its_trials(
    comparison: OnlineComparison, results: ComparisonResults
) -> None:
    records = pd.read_parquet(comparison.out / "records.parquet")
    pd.testing.assert_frame_equal(records, results.records)
    assert results.failures == {}
    assert records.columns.tolist() == ["method", "task", "seed", "iteration", "y", "objective", "infeasible"]
    runs = records.groupby(["method", "task", "seed"])["iteration"].agg(list)
    assert dict(runs) == {(label, STUDY, seed): [1, 2, 3] for label in ("H-NLL", "Rand") for seed in (0, 1)}
    done = ~records["infeasible"]
    np.testing.assert_allclose(records["y"][done], -np.log(records["objective"][done] + 1e-10), rtol=1e-14)
    assert records[["y", "objective"]][~done].isna().all(axis=None)


def test_its_trials_are_raw_files_of_a_dataset(
    comparison: OnlineComparison, results: ComparisonResults
) -> None:
    (file,) = find_raw_files(comparison.out / "trials")
    assert (file.split, file.phase, file.rows) == ("unmatched", 0, len(results.records))


def test_priors_are_pretrained_without_the_dataset_that_is_tuned(
    comparison: OnlineComparison, results: ComparisonResults
) -> None:
    for seed in (0, 1):
        prior = read_prior(comparison.out / f"priors/H-NLL/breast_cancer/seed{seed}")
        assert prior.description.training_tasks == TASKS[1:]
        assert (prior.description.held_out, prior.description.seed) == ("breast_cancer", seed)
        assert prior.description.preparation == "online"


def test_what_is_there_is_not_done_again(comparison: OnlineComparison, results: ComparisonResults) -> None:
    trials = (comparison.out / "trials.jsonl").read_bytes()
    prior = comparison.out / "priors/H-NLL/breast_cancer/seed0/prior.json"
    made = prior.stat().st_mtime_ns
    again = compare_online(comparison)
    pd.testing.assert_frame_equal(again.records, results.records)
    assert (comparison.out / "trials.jsonl").read_bytes() == trials
    assert prior.stat().st_mtime_ns == made


def test_other_settings_need_another_folder(comparison: OnlineComparison, results: ComparisonResults) -> None:
    with pytest.raises(VersionConflictError, match="trials_at_once is 4, not 2"):
        compare_online(replace(comparison, seeds=(0,)))


def test_the_command_goes_on_with_a_comparison(
    comparison: OnlineComparison, results: ComparisonResults
) -> None:
    options = ["--preset", "tiny", "--task", STUDY, "--out", comparison.out, "--seeds", "2", "--trials", "3"]
    options += ["--method", "H-NLL", "--method", "Rand", "--data", comparison.data_dir]
    options += ["--dataset", comparison.dataset]
    result = CliRunner().invoke(app, ["online", *map(str, options)])
    assert result.exit_code == 0, result.output
    infeasible = results.records["infeasible"].sum()
    assert f"{comparison.out}: 12 trials, {infeasible} infeasible" in result.output


def test_a_method_without_a_prior_is_reported_and_the_others_run(
    comparison: OnlineComparison, results: ComparisonResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise TrainingError([NumericalError("no use"), NumericalError("no use either")])

    monkeypatch.setattr(Retrained, "pretrain", fail)
    left = compare_online(replace(comparison, out=tmp_path))
    assert dict(left.failures) == {
        RunName("H-NLL", STUDY, 0): "no use",
        RunName("H-NLL", STUDY, 1): "no use either",
    }
    expected = results.records[results.records["method"] == "Rand"].reset_index(drop=True)
    pd.testing.assert_frame_equal(left.records, expected)


def test_the_figure_of_each_task_is_drawn(comparison: OnlineComparison, results: ComparisonResults) -> None:
    (file,) = (comparison.out / "figures").iterdir()
    assert file.name == f"{STUDY}.svg"
    assert file.read_text().startswith("<svg")


@pytest.fixture(scope="module")
def with_prior(
    comparison: OnlineComparison, results: ComparisonResults, tmp_path_factory: pytest.TempPathFactory
) -> OnlineComparison:
    """One run with the prior of another comparison."""
    prior = str(comparison.out / "priors/H-NLL/breast_cancer/seed0")
    return replace(comparison, out=tmp_path_factory.mktemp("prior"), seeds=(0,), prior=prior)


@pytest.mark.slow
def test_a_run_with_a_given_prior_is_the_one_whose_prior_was_pretrained_here(
    comparison: OnlineComparison, with_prior: OnlineComparison, tmp_path: Path
) -> None:
    given = compare_online(with_prior)
    assert not (with_prior.out / "priors").exists()
    own = compare_online(replace(comparison, out=tmp_path, methods=("H-NLL",), seeds=(0,)))
    pd.testing.assert_frame_equal(given.records, own.records)


@pytest.mark.slow
def test_the_command_shows_the_trials_of_one_run_and_continues_it(with_prior: OnlineComparison) -> None:
    compare_online(with_prior)
    options = ["--preset", "tiny", "--task", STUDY, "--out", with_prior.out, "--data", with_prior.data_dir]
    options += ["--prior", with_prior.prior, "--seeds", 1, "--trials", 4]
    result = CliRunner().invoke(app, ["online", *map(str, options)])
    assert result.exit_code == 0, result.output
    shown = [line for line in result.output.splitlines() if line.startswith("trial ")]
    assert [line.partition(":")[0] for line in shown] == ["trial 4"]
    assert " 4 of 4, best " in shown[0]
    best = pd.read_parquet(with_prior.out / "records.parquet")["objective"].min()
    assert f"best objective {best:.5g} in trial " in result.output


@pytest.mark.parametrize("option", ["--method", "--dataset", "--steps", "--settings"])
def test_what_a_given_prior_decides_is_no_option_beside_it(option: str, tmp_path: Path) -> None:
    options = ["--task", STUDY, "--out", str(tmp_path), "--prior", "pd1-mini/h-ekl"]
    options += [option, "paper" if option == "--settings" else "1"]
    result = CliRunner().invoke(app, ["online", *options])
    assert result.exit_code == 2
    assert option in result.output


@pytest.mark.parametrize(
    ("changes", "error"),
    [({"preparation": "paper"}, InvalidInputError), ({"manifest_hash": "other"}, VersionConflictError)],
)
def test_a_prior_of_other_values_or_records_is_refused(
    changes: dict[str, str], error: type[Exception], with_prior: OnlineComparison, tmp_path: Path
) -> None:
    prior = read_prior(Path(with_prior.prior or ""))
    save_prior(tmp_path, Prior(prior.gp, replace(prior.description, **changes)))  # pyright: ignore[reportArgumentType]
    with pytest.raises(error, match="prior"):
        compare_online(replace(with_prior, prior=str(tmp_path)))


def test_unknown_methods_and_empty_comparisons_are_refused(
    comparison: OnlineComparison, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInputError, match="unknown method MAF; use H-NLL, H-EKL"):
        compare_online(replace(comparison, methods=("MAF",), out=tmp_path))
    with pytest.raises(InvalidInputError, match="no task or no seed"):
        compare_online(replace(comparison, tasks=(), out=tmp_path))


def test_the_papers_settings_replace_the_networks_and_a_limit_on_steps_still_holds(tmp_path: Path) -> None:
    paper = OnlineComparison("tiny", (STUDY,), tmp_path, None, steps=500, settings="paper").configured()
    default = OnlineComparison("tiny", (STUDY,), tmp_path, None).configured()
    for label in ("H-NLL", "H-EKL", "STBO"):
        assert paper[label].method.architecture != default[label].method.architecture  # type: ignore[attr-defined]
    training = paper["H-NLL"].method.training  # type: ignore[attr-defined]
    assert (training.steps, training.learning_rate, training.patience) == (500, 1e-3, None)


def test_journal_lines_hold_the_raw_row_and_its_origin(
    comparison: OnlineComparison, results: ComparisonResults
) -> None:
    lines = [json.loads(line) for line in (comparison.out / "trials.jsonl").read_text().splitlines()]
    assert len({line["row"]["trial_dir"] for line in lines}) == len(lines)
    for line in lines:
        run = line["run"]
        assert line["row"]["origin"].endswith(f"/{run['method']}/seed{run['seed']}")
        assert line["row"]["origin"].startswith("online-")
