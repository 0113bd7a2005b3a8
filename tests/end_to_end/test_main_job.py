"""The main job on a shrunken configuration: collect, build, pre-train, evaluate, report."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from flows import evaluate as evaluate_module
from flows import pretrain as pretrain_module
from flows import report as report_module
from flows.cli import app
from flows.evaluation_folder import METADATA_NAME, RECORDS_NAME, REPORT_NAME
from flows.retrain import retrain
from flows.settings import Settings
from hyperbo.errors import NotAvailableError
from hyperbo.evaluation.metadata import read_metadata
from hyperbo.evaluation.records import read_records
from hyperbo.methods import PRETRAINED
from hyperbo.prior import load_prior
from pd1_builder import load, verify

pytestmark = pytest.mark.usefixtures("prefect_server")

METHODS = ("H-NLL", "H-EKL", "STBO", "Rand")
SEEDS = (0, 1)
ITERATIONS = 4


@pytest.fixture(scope="module")
def settings(tiny_raw, tmp_path_factory):
    return Settings(
        runs=tmp_path_factory.mktemp("job") / "runs",
        raw=tiny_raw,
        seeds=SEEDS,
        iterations=ITERATIONS,
        hidden=(4,),
        nll_steps=20,
        nll_points=5,
        ekl_iterations=5,
        stbo_iterations=3,
    )


@pytest.fixture(scope="module")
def evaluation(settings):
    """The folder that the whole job made from an empty one."""
    assert not settings.runs.exists()
    return retrain(settings, "the command")


def test_records_are_complete(settings, evaluation):
    data = load(settings.dataset, data_dir=settings.data_dir)
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


def test_a_record_names_the_prior_behind_its_run(settings, evaluation):
    records = read_records(evaluation / RECORDS_NAME)
    runs = records[["method", "task_dataset", "seed", "prior"]].drop_duplicates()
    for method, held_out, seed, prior in runs.itertuples(index=False, name=None):
        if method not in PRETRAINED:
            assert prior == ""
            continue
        identity = json.loads((settings.runs / "prior" / prior / "identity.json").read_text())
        assert (identity["method"], identity["held_out"], identity["seed"]) == (method, held_out, seed)


def test_the_report_names_what_it_came_from(settings, evaluation):
    manifest = verify(settings.dataset, settings.data_dir)
    metadata = read_metadata(evaluation / METADATA_NAME)
    page = (evaluation / REPORT_NAME).read_text()
    assert metadata["manifest_hash"] == manifest.content_hash
    for named in (manifest.content_hash, manifest.reference, metadata["code_version"], "the command"):
        assert named in page
    assert list(metadata["methods"]) == list(METHODS)
    assert set(metadata["seconds"]) == {"pre-train", "evaluate"}
    finished = {path.name for kind in ("prior", "simulation") for path in (settings.runs / kind).iterdir()}
    assert set(metadata["run_ids"]) == finished
    # 3 datasets held out by 2 seeds: 2 methods with a prior, 4 methods simulated.
    assert len(metadata["run_ids"]) == 6 * 2 + 6 * 4


def test_no_prior_has_seen_its_test_tasks(settings, evaluation):
    data = load(settings.dataset, data_dir=settings.data_dir)
    dataset_of = {task.name: task.dataset for task in data.tasks}
    seen = []
    for folder in sorted((settings.runs / "prior").iterdir()):
        description = load_prior(folder).description
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


def test_a_second_run_does_nothing(settings, evaluation, capsys):
    before = _times(settings)
    assert retrain(settings) == evaluation
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("dataset pd1/mini:1.0.0: present, verified, ")
    assert lines[1:] == [
        "pretrain H-NLL: 6 priors present, nothing to do",
        "pretrain H-EKL: 6 priors present, nothing to do",
        *(f"evaluate {method}: 6 runs present, nothing to do" for method in METHODS),
        "report: present, nothing to do",
    ]
    after = _times(settings)
    assert {path: time for path, time in after.items() if path in before} == before


def _times(settings):
    """When each file was last written; locks are taken in every run."""
    files = (path for path in settings.runs.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path: path.stat().st_mtime_ns for path in files}


def test_a_job_that_was_interrupted_goes_on_where_it_was(settings, evaluation, capsys, monkeypatch):
    longer = replace(settings, iterations=2 * ITERATIONS, methods=("H-NLL", "STBO", "Rand"))
    simulate = evaluate_module.simulate

    def interrupted(runs, *arguments, **options):
        if type(runs[0].policy).__name__ == "STBOPolicy":
            raise KeyboardInterrupt
        return simulate(runs, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(evaluate_module, "simulate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            retrain(longer)
    capsys.readouterr()

    folder = retrain(longer)
    lines = capsys.readouterr().out
    assert "pretrain H-NLL: 6 priors present, nothing to do" in lines
    assert "evaluate H-NLL: 6 runs present, nothing to do" in lines
    assert "evaluate STBO: 6 runs in" in lines
    assert "evaluate Rand: 6 runs in" in lines
    assert folder != evaluation
    records = read_records(folder / RECORDS_NAME)
    assert set(records["iteration"]) == set(range(1, 2 * ITERATIONS + 1))


def test_one_more_seed_costs_one_more_seed(settings, evaluation, capsys):
    pretrain_module.pretrain(replace(settings, seeds=(*SEEDS, 2), methods=("H-EKL",)))
    assert "pretrain H-EKL: 3 priors trained in" in capsys.readouterr().out


def test_a_step_without_what_it_needs_says_what(settings, evaluation):
    unseen = replace(settings, seeds=(7,), methods=("H-EKL",))
    with pytest.raises(
        NotAvailableError, match=r"no prior of H-EKL .* seed 7 .* run the pretrain flow first"
    ):
        evaluate_module.simulate_method.fn(unseen, "H-EKL")
    with pytest.raises(NotAvailableError, match=r"simulation of H-EKL on .* with seed 7 is not in"):
        report_module.write_evaluation.fn(unseen, "")


def test_the_report_is_written_again_from_its_records(evaluation):
    page = (evaluation / REPORT_NAME).read_text()
    (evaluation / REPORT_NAME).unlink()
    result = CliRunner().invoke(app, ["report", str(evaluation)])
    assert result.exit_code == 0, result.output
    assert "Mean simple regret" in result.stdout
    assert (evaluation / REPORT_NAME).read_text() == page


def test_a_prior_is_described(settings, evaluation):
    folder = sorted((settings.runs / "prior").iterdir())[0]
    result = CliRunner().invoke(app, ["prior", "info", str(folder)])
    assert result.exit_code == 0, result.output
    for line in ("output_warping: negative_log", "dataset: pd1/mini:1.0.0", "held_out: "):
        assert line in result.stdout
