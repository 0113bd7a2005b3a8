"""The main job on a shrunken configuration: collect, build, pre-train, evaluate, report."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hyperbo_flows.cli.main import app
from hyperbo_flows.experiments import evaluate as evaluate_module
from hyperbo_flows.experiments import pretrain as pretrain_module
from hyperbo_flows.experiments import simulations as simulations_module
from hyperbo_flows.experiments import write_evaluation as report_module
from hyperbo_flows.experiments.evaluation_folder import (
    METADATA_NAME,
    RECORDS_NAME,
    REPORT_NAME,
    STUDY_FIGURE_NAME,
    STUDY_TABLE_NAME,
)
from hyperbo_flows.experiments.experiment import Arm, Experiment
from hyperbo_flows.experiments.plan import make_plan
from hyperbo_flows.experiments.retrain import retrain, run_study
from typer.testing import CliRunner

from hyperbo.errors import NotAvailableError
from hyperbo.evaluation.records.metadata import read_metadata
from hyperbo.evaluation.records.runs import read_records
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import HEKL, HNLL, STBO, Rand
from hyperbo.pretrain import EKLTraining, NLLTraining
from hyperbo.priors.file import read_prior
from pd1_builder import load, verify

METHODS = ("H-NLL", "H-EKL", "STBO", "Rand")
PRETRAINED = ("H-NLL", "H-EKL")
SEEDS = (0, 1)
ITERATIONS = 4


SMALL = Architecture(hidden=(4,))
H_NLL = HNLL(SMALL, NLLTraining(20, points_per_task=5, steps_per_call=20))


@pytest.fixture(scope="module")
def experiment(tiny_raw, tmp_path_factory):
    arms = {
        "H-NLL": Arm(H_NLL),
        "H-EKL": Arm(HEKL(SMALL, EKLTraining(5))),
        "STBO": Arm(STBO(SMALL, 3)),
        "Rand": Arm(Rand()),
    }
    folder = tmp_path_factory.mktemp("job")
    return Experiment(
        arms,
        runs=folder / "runs",
        data=folder / "data",
        raw=tiny_raw,
        preparation="paper",
        seeds=SEEDS,
        iterations=ITERATIONS,
    )


@pytest.fixture(scope="module")
def evaluation(experiment):
    """The folder that the whole job made from an empty one."""
    assert not experiment.runs.exists()
    return retrain(experiment, "the command")


def some_arms(experiment, *labels, **changes):
    return replace(experiment, arms={label: experiment.arms[label] for label in labels}, **changes)


def test_records_are_complete(experiment, evaluation):
    data = load(experiment.dataset, data_dir=experiment.data_dir)
    records = read_records(evaluation / RECORDS_NAME)
    expected = {
        (method, task.name, seed, iteration)
        for method in METHODS
        for task in data.tasks
        for seed in SEEDS
        for iteration in range(1, ITERATIONS + 1)
    }
    columns = ["method", "task", "seed", "iteration"]
    assert len(records) == len(expected)
    assert set(records[columns].itertuples(index=False, name=None)) == expected
    # Every observation is a trial of its task, with its value.
    for task in data.tasks:
        values = dict(zip(task.trial_ids, task.y, strict=True))
        rows = records[records["task"] == task.name]
        assert [values[trial] for trial in rows["trial_id"]] == rows["y"].tolist()


def test_a_record_names_the_prior_behind_its_run(experiment, evaluation):
    records = read_records(evaluation / RECORDS_NAME)
    runs = records[["method", "task_dataset", "seed", "prior"]].drop_duplicates()
    for method, held_out, seed, prior in runs.itertuples(index=False, name=None):
        if method not in PRETRAINED:
            assert prior == ""
            continue
        identity = json.loads((experiment.runs / "prior" / prior / "identity.json").read_text())
        assert (identity["method"], identity["held_out"], identity["seed"]) == (method, held_out, seed)


def test_the_report_names_what_it_came_from(experiment, evaluation):
    manifest = verify(experiment.dataset, experiment.data_dir)
    metadata = read_metadata(evaluation / METADATA_NAME)
    page = (evaluation / REPORT_NAME).read_text()
    assert metadata["manifest_hash"] == manifest.content_hash
    for named in (manifest.content_hash, manifest.reference, metadata["code_version"], "the command"):
        assert named in page
    assert list(metadata["methods"]) == list(METHODS)
    assert set(metadata["seconds"]) == {"pre-train", "evaluate"}
    finished = {path.name for kind in ("prior", "simulation") for path in (experiment.runs / kind).iterdir()}
    assert set(metadata["run_ids"]) == finished
    # 3 datasets held out by 2 seeds: 2 methods with a prior, 4 methods simulated.
    assert len(metadata["run_ids"]) == 6 * 2 + 6 * 4


def test_no_prior_has_seen_its_test_tasks(experiment, evaluation):
    data = load(experiment.dataset, data_dir=experiment.data_dir)
    dataset_of = {task.name: task.dataset for task in data.tasks}
    seen = []
    for folder in sorted((experiment.runs / "prior").iterdir()):
        description = read_prior(folder).description
        identity = json.loads((folder / "identity.json").read_text())
        assert description.held_out == identity["held_out"]
        assert {dataset_of[task] for task in description.training_tasks} == set(data.task_datasets) - {
            description.held_out
        }
        seen.append((description.method, description.held_out, description.seed))
    assert sorted(seen) == sorted(
        (method, held_out, seed)
        for method in ("H-NLL", "H-EKL")
        for held_out in data.task_datasets
        for seed in SEEDS
    )


def test_a_second_run_does_nothing(experiment, evaluation, capsys):
    before = _times(experiment)
    assert retrain(experiment, "again") == evaluation
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("dataset pd1/mini:1.0.0: present, verified, ")
    assert lines[1:] == [
        "pretrain H-NLL: 6 priors present, nothing to do",
        "pretrain H-EKL: 6 priors present, nothing to do",
        *(f"evaluate {method}: 6 simulations present, nothing to do" for method in METHODS),
        "report: present, nothing to do",
    ]
    after = _times(experiment)
    assert {path: time for path, time in after.items() if path in before} == before


def _times(experiment):
    """When each file was last written; locks are taken in every run."""
    files = (path for path in experiment.runs.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path: path.stat().st_mtime_ns for path in files}


@pytest.mark.slow
def test_a_job_that_was_interrupted_goes_on_where_it_was(experiment, evaluation, capsys, monkeypatch):
    longer = some_arms(experiment, "H-NLL", "STBO", "Rand", iterations=2 * ITERATIONS)
    simulate = simulations_module.simulate

    def interrupted(runs, *arguments, **options):
        if type(runs[0].policy).__name__ == "RefitPolicy":
            raise KeyboardInterrupt
        return simulate(runs, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(simulations_module, "simulate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            retrain(longer, "")
    capsys.readouterr()

    folder = retrain(longer, "")
    lines = capsys.readouterr().out
    assert "pretrain H-NLL: 6 priors present, nothing to do" in lines
    assert "evaluate H-NLL: 6 simulations present, nothing to do" in lines
    assert "evaluate STBO: 6 simulations in" in lines
    assert "evaluate Rand: 6 simulations in" in lines
    assert folder != evaluation
    records = read_records(folder / RECORDS_NAME)
    assert set(records["iteration"]) == set(range(1, 2 * ITERATIONS + 1))


@pytest.mark.slow
def test_one_more_seed_costs_one_more_seed(experiment, evaluation, capsys):
    more = make_plan(some_arms(experiment, "H-EKL", seeds=(*SEEDS, 2)))
    assert pretrain_module.pretrain(more) == {}
    assert "pretrain H-EKL: 3 priors trained in" in capsys.readouterr().out


def test_a_step_without_what_it_needs_says_what(experiment, evaluation):
    unseen = make_plan(some_arms(experiment, "H-EKL", seeds=(7,)))
    with pytest.raises(
        NotAvailableError, match=r"no prior of H-EKL .* seed 7 .* run the pretrain flow first"
    ):
        evaluate_module.simulate(unseen, {})
    with pytest.raises(NotAvailableError, match=r"simulation of H-EKL on .* with seed 7 is not in"):
        report_module.write_evaluation(unseen, "", {})


def test_the_report_is_written_again_from_its_records(evaluation):
    page = (evaluation / REPORT_NAME).read_text()
    (evaluation / REPORT_NAME).unlink()
    result = CliRunner().invoke(app, ["report", str(evaluation)])
    assert result.exit_code == 0, result.output
    assert "Mean simple regret" in result.stdout
    assert (evaluation / REPORT_NAME).read_text() == page


@pytest.mark.slow
def test_a_study_uses_the_priors_that_are_there(experiment, evaluation, capsys):
    methods = some_arms(experiment, "H-NLL", "Rand", iterations=2)
    folder = run_study(methods, "the command", "acquisition", chosen=True)
    lines = capsys.readouterr().out.splitlines()
    labels = ["H-NLL PI", "H-NLL EI", "H-NLL UCB"]
    for label in labels:
        assert f"pretrain {label}: 6 priors present, nothing to do" in lines
    records = read_records(folder / RECORDS_NAME)
    assert set(records["method"]) == {*labels, "Rand"}
    table = pd.read_csv(folder / STUDY_TABLE_NAME)
    assert table["arm"].tolist() == [*labels, "Rand"]
    assert table["at"].tolist()[:3] == ["PI", "EI", "UCB"]
    assert table["median"].notna().all()
    figure = (folder / STUDY_FIGURE_NAME).read_text()
    assert figure.startswith("<svg")
    page = (folder / REPORT_NAME).read_text()
    assert "<h2>Study: acquisition function</h2>" in page
    assert figure in page


@pytest.mark.slow
def test_methods_are_compared_and_studied_from_the_command_line(experiment, evaluation, monkeypatch):
    monkeypatch.setitem(sys.modules, "prefect", None)  # as where it is not installed
    common = ["--method", "Rand", "--seeds", "1", "--iterations", "2", "--runs", str(experiment.runs)]
    common += ["--raw", str(experiment.raw), "--data", str(experiment.data)]
    compared = CliRunner().invoke(app, ["evaluate", *common])
    assert compared.exit_code == 0, compared.output
    assert "Mean simple regret, 3 of 3 tasks, median over 1 seed" in compared.stdout
    folder = Path(compared.stdout.rsplit("report: ", 1)[1].strip()).parent
    command = read_metadata(folder / METADATA_NAME)["command"]
    assert command.startswith("hyperbo evaluate --dataset pd1/mini:1.0.0 --method Rand --raw ")
    # The command that the report names does nothing but what is missing: nothing.
    again = CliRunner().invoke(app, shlex.split(command)[1:])
    assert again.exit_code == 0, again.output
    assert "evaluate Rand: 3 simulations present, nothing to do" in again.stdout
    studied = CliRunner().invoke(app, ["study", "held-out", *common])
    assert studied.exit_code == 0, studied.output
    title = "Mean simple regret after 2 iterations by training tasks"
    assert title in " ".join(studied.stdout.split())  # wrapped to the width of the table
    assert "figure: " in studied.stdout


def test_an_experiment_file_is_run_from_the_command_line(experiment, evaluation, tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(
        f'[experiment]\ndataset = "pd1/mini:1.0.0"\nraw = "{experiment.raw}"\nseeds = 1\niterations = 3\n'
        '[arms."chance"]\nmethod = "Rand"\n'
    )
    folders = ["--runs", str(experiment.runs), "--data", str(experiment.data)]
    result = CliRunner().invoke(app, ["evaluate", str(path), *folders])
    assert result.exit_code == 0, result.output
    assert "chance" in result.stdout
