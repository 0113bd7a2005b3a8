"""Evaluations on versions written by hand: what is recorded, and what failure and interruption leave."""

from __future__ import annotations

import pickle
import re
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hpob_records import BEGINNINGS, hpob_records
from hyperbo_flows.cli.jobs import tell_outcome
from hyperbo_flows.cli.main import app
from hyperbo_flows.experiments import evaluation_folder, ledger
from hyperbo_flows.experiments import plan as plan_module
from hyperbo_flows.experiments import simulations as simulations_module
from hyperbo_flows.experiments import write_evaluation as report_module
from hyperbo_flows.experiments.evaluate import evaluate
from hyperbo_flows.experiments.evaluation_folder import read
from hyperbo_flows.experiments.experiment import Arm, Experiment
from hyperbo_flows.experiments.experiment_file import read_experiment
from hyperbo_flows.experiments.plan import evaluation_code, make_plan, numeric_code
from hyperbo_flows.experiments.pretrain import LOSSES_OF_PRIOR, pretrain
from jaxtyping import Bool
from typer.testing import CliRunner
from version_folders import record, write_version

from hyperbo.bayesopt import offline as simulate_module
from hyperbo.bayesopt.offline import Simulation
from hyperbo.compute.pytree import pytree
from hyperbo.errors import NumericalError
from hyperbo.evaluation.measures.regret import simple_regrets
from hyperbo.evaluation.records.losses import validate_losses
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import HNLL, AcquisitionDecision, HAdd, HMix, Rand, Scores
from hyperbo.methods.rand import RandPolicy
from hyperbo.pretrain import Job, NLLTraining, all_trained
from hyperbo.priors.file import read_prior

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "examples"
ITERATIONS = 3
H_NLL = HNLL(Architecture((3,)), NLLTraining(2, 4, steps_per_call=2))


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    tasks = ("one-a", "one-b", "two-a")
    trials = [
        record(name, f"{name}/{i}", i / 8, 0.1 + ((i + 3 * offset) % 8) / 10)
        for offset, name in enumerate(tasks)
        for i in range(8)
    ]
    write_version(folder, "pd1/mini:1.0.0", {"matched": trials})
    splits = {"train": hpob_records(("s-1", "s-2")), "test": hpob_records(("s-4", "s-5"), BEGINNINGS)}
    write_version(folder, "hpob/4796:1.0.0", splits, warping="identity")
    return folder


@pytest.fixture
def experiment(data_dir, tmp_path):
    return Experiment({"Rand": Arm(Rand())}, tmp_path / "runs", data_dir, seeds=(0, 1), iterations=ITERATIONS)


@pytest.fixture
def without_report(monkeypatch):
    """Nothing is drawn: the page has tests of its own."""
    monkeypatch.setattr(
        evaluation_folder, "write_report", lambda records, metadata, path, losses: path.write_text("")
    )


def run(experiment):
    """The steps of `hyperbo_flows.experiments.retrain` on a version that is there."""
    plan = make_plan(experiment)
    return evaluate(plan, "the command", pretrain(plan))


@pytest.fixture
def copied_sources(tmp_path, monkeypatch):
    """A copy of the sources that the version of the code is read from, for tests to change."""
    root = tmp_path / "sources"

    def others(folder, names):
        return [
            name for name in names if (Path(folder) / name).is_file() and not name.endswith((".py", ".css"))
        ]

    packages = ("flows/hyperbo_flows", "hyperbo", "pd1_builder", "pipelines/hyperbo_pipelines")
    for package in map(Path, packages):
        shutil.copytree(ROOT / package, root / package.name, ignore=others)
    monkeypatch.setattr(
        "hyperbo.storage.code_version.find_spec",
        lambda package: SimpleNamespace(submodule_search_locations=[str(root / package)]),
    )
    yield root
    for version in (numeric_code, evaluation_code):
        version.cache_clear()


def lines_without_times(capsys):
    return re.sub(r"in \d+ s\b", "in T s", capsys.readouterr().out).splitlines()


@dataclass(frozen=True)
class Failing:
    """Random search that cannot learn with seed 1, or cannot at all, until its class is told that it can."""

    repaired: ClassVar[bool] = False

    always: bool = False

    def fit(self, jobs: Sequence[Job], progress=None) -> list[None]:
        if not self.repaired and (self.always or any(job.seed == 1 for job in jobs)):
            raise NumericalError("no use in seed 1")
        return [None] * len(jobs)

    def policy(self, fitted: None, task) -> RandPolicy:
        return RandPolicy()


@dataclass(frozen=True)
class FailingInPart:
    """Random search that learns nothing of use with seed 1; it notes the seeds that it was asked for."""

    asked: ClassVar[list[list[int]]] = []

    without_policy: tuple[str, ...] = ()

    def fit(self, jobs: Sequence[Job], progress=None) -> list[None]:
        self.asked.append([job.seed for job in jobs])
        return all_trained([NumericalError("diverged") if job.seed == 1 else None for job in jobs])

    def policy(self, fitted: None, task) -> RandPolicy:
        if task.name in self.without_policy:
            raise NumericalError(f"no policy for {task.name}")
        return RandPolicy()


@pytree
class FailingPolicy(RandPolicy):
    """Random search that scores NaN from its second observation on, where it is told to."""

    fails: Bool[np.ndarray, ""]

    def score(self, state, step, key):
        state, scores = super().score(state, step, key)
        bad = jnp.where(self.fails & (step > 0), jnp.nan, 0.0).astype(scores.values.dtype)
        return state, Scores.without_prediction(scores.values + bad)


@dataclass(frozen=True)
class FailingRuns:
    """Random search whose runs on some tasks, of all or of given seeds, score NaN, until repaired."""

    repaired: ClassVar[bool] = False

    tasks: tuple[str, ...]
    seeds: tuple[int, ...]

    def fit(self, jobs: Sequence[Job], progress=None) -> list[int]:
        return [job.seed for job in jobs]

    def policy(self, fitted: int, task) -> FailingPolicy:
        fails = not self.repaired and task.name in self.tasks and fitted in self.seeds
        return FailingPolicy(fails=np.array(fails))


@pytest.mark.usefixtures("without_report")
def test_a_run_that_fails_is_missing_and_the_others_go_on(experiment, capsys, monkeypatch):
    experiment = replace(experiment, arms={"Failing": Arm(Failing()), "Rand": Arm(Rand())})
    folder = run(experiment)
    evaluation = read(folder)
    counted = evaluation.records.groupby(["method", "seed"])["task"].nunique().to_dict()
    assert counted == {("Failing", 0): 3, ("Rand", 0): 3, ("Rand", 1): 3}
    failures = evaluation.metadata.get("failures", [])
    assert {(each["method"], each["seed"], each["reason"]) for each in failures} == {
        ("Failing", 1, "no use in seed 1")
    }
    assert {each["task"] for each in failures} == {"one-a", "one-b", "two-a"}
    lines = capsys.readouterr().out
    said = "evaluate Failing: 2 failed, the first with one held out and seed 1: no use in seed 1"
    assert said in lines.splitlines()
    assert "evaluate Failing: 2 simulations in" in lines
    assert not tell_outcome(folder)
    said = capsys.readouterr()
    assert "Failing: 3 runs failed: no use in seed 1" in said.err
    # What failed is tried again; once it succeeds, the evaluation with holes does not stand in the way.
    assert run(experiment) == folder
    assert "evaluate Failing: 0 simulations in" in capsys.readouterr().out
    monkeypatch.setattr(Failing, "repaired", True)
    repaired = run(experiment)
    assert "evaluate Failing: 2 simulations in" in capsys.readouterr().out
    assert repaired != folder
    evaluation = read(repaired)
    assert evaluation.metadata.get("failures") == []
    assert evaluation.records.groupby(["method", "seed"])["task"].nunique().eq(3).all()
    assert tell_outcome(repaired)


@pytest.mark.usefixtures("without_report")
def test_what_was_learned_beside_a_run_that_failed_is_not_learned_again(experiment, capsys, monkeypatch):
    monkeypatch.setattr(FailingInPart, "asked", [])
    experiment = replace(experiment, arms={"Some": Arm(FailingInPart())})
    folder = run(experiment)
    lines = lines_without_times(capsys)
    assert "evaluate Some: 2 failed, the first with one held out and seed 1: diverged" in lines
    assert "evaluate Some: 2 simulations in T s, 0 were present, 2 failed" in lines
    evaluation = read(folder)
    assert evaluation.records.groupby("seed")["task"].nunique().to_dict() == {0: 3}
    assert {(each["seed"], each["reason"]) for each in evaluation.metadata.get("failures", [])} == {
        (1, "diverged")
    }
    assert run(experiment) == folder
    assert FailingInPart.asked == [[0, 1, 0, 1], [1, 1]]


@pytest.mark.usefixtures("without_report")
@pytest.mark.parametrize("without", [("one-b",), ("two-a",), ("one-a", "one-b", "two-a")])
def test_a_task_without_a_policy_costs_its_own_runs(without, experiment, capsys, monkeypatch):
    monkeypatch.setattr(FailingInPart, "asked", [])
    arms = {"Some": Arm(FailingInPart(without)), "Rand": Arm(Rand())}
    evaluation = read(run(replace(experiment, arms=arms, seeds=(0,))))
    assert FailingInPart.asked == [[0, 0]]
    by_method = evaluation.records.groupby("method")["task"].unique()
    assert set(by_method.get("Some", [])) == {"one-a", "one-b", "two-a"} - set(without)
    assert {(each["task"], each["reason"]) for each in evaluation.metadata.get("failures", [])} == {
        (task, f"no policy for {task}") for task in without
    }


@pytest.mark.usefixtures("without_report")
def test_priors_trained_beside_one_that_diverged_are_kept_and_evaluated(tmp_path, capsys):
    # The squares of the values of one dataset overflow: only the fold without it has a usable prior.
    trials = [
        record(f"{dataset}-a", f"{dataset}/{i}", i / 8, scale * i)
        for dataset, scale in (("one", 1e160), ("two", 1.0))
        for i in range(8)
    ]
    write_version(tmp_path / "data", "pd1/mini:1.0.0", {"matched": trials}, warping="identity")
    experiment = Experiment(
        {"H-NLL": Arm(H_NLL)}, tmp_path / "runs", tmp_path / "data", seeds=(0,), iterations=ITERATIONS
    )
    folder = run(experiment)
    lines = lines_without_times(capsys)
    assert "pretrain H-NLL: 1 prior trained in T s, 0 were present, 1 failed" in lines
    assert not any("one by one" in line for line in lines)
    assert {read_prior(prior).description.held_out for prior in (experiment.runs / "prior").iterdir()} == {
        "one"
    }
    evaluation = read(folder)
    assert set(evaluation.records["task"]) == {"one-a"}
    (failure,) = evaluation.metadata.get("failures", [])
    assert (failure["task"], failure["seed"]) == ("two-a", 0)
    assert "ended with a loss or parameters that are not finite" in failure["reason"]
    # Again, only the prior that failed is tried.
    assert run(experiment) == folder
    lines = lines_without_times(capsys)
    assert "pretrain H-NLL: 0 priors trained in T s, 1 were present, 1 failed" in lines
    assert "evaluate H-NLL: 1 simulation present, nothing to do" in lines


@pytest.mark.usefixtures("without_report")
def test_of_a_simulation_only_the_runs_that_failed_are_missing(experiment, capsys, monkeypatch):
    arms = {"Some": Arm(FailingRuns(("one-b",), (1,))), "Rand": Arm(Rand())}
    experiment = replace(experiment, arms=arms)
    folder = run(experiment)
    reason = "FailingPolicy scored a candidate NaN on task 'one-b' with seed 1, in iteration 2"
    lines = lines_without_times(capsys)
    assert f"evaluate Some: 1 single run failed, the first: {reason}" in lines
    assert "evaluate Some: 3 simulations in T s, 0 were present, 1 failed" in lines
    evaluation = read(folder)
    assert evaluation.metadata.get("failures") == [
        {"method": "Some", "task": "one-b", "seed": 1, "reason": reason}
    ]
    runs = evaluation.records.groupby(["method", "task", "seed"]).size()
    assert ("Some", "one-a", 1) in runs.index
    assert ("Some", "one-b", 0) in runs.index
    assert len(runs) == 2 * 3 * 2 - 1
    # Tried again it fails again; what is there stays.
    assert run(experiment) == folder
    lines = lines_without_times(capsys)
    assert "evaluate Some: 0 simulations in T s, 3 were present, 1 failed" in lines
    assert "report: present, nothing to do" in lines
    monkeypatch.setattr(FailingRuns, "repaired", True)
    repaired = read(run(experiment))
    assert "evaluate Some: 1 simulation in T s, 3 were present" in lines_without_times(capsys)
    assert repaired.metadata.get("failures") == []
    key = ["method", "task", "seed", "iteration"]
    both = repaired.records.merge(evaluation.records, on=[*key, "trial_id", "y"])
    assert len(both) == len(evaluation.records) == len(repaired.records) - ITERATIONS


def test_where_nothing_can_be_compared_the_evaluation_is_written_all_the_same(experiment, capsys):
    study = {"quantity": "points", "series": "Other", "at": 1}
    arms = {
        "Other": Arm(FailingRuns(("two-a",), (0, 1)), study=study),
        "Some": Arm(FailingRuns(("one-a", "one-b"), (1,))),
    }
    folder = run(replace(experiment, arms=arms))
    evaluation = read(folder)
    assert len(evaluation.records) == (4 + 4) * ITERATIONS
    assert len(evaluation.metadata.get("failures", [])) == 4
    page = (folder / "report.html").read_text()
    ElementTree.fromstring(page)
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))
    assert "No task was completed by all methods with every seed, so nothing can be compared." in text
    assert "Other 2 of 3 4 of 6 Some 1 of 3 4 of 6" in text
    assert "Other on two-a: seeds 0, 1 (seed 0 failed: FailingPolicy scored a candidate NaN" in text
    assert "Some on one-b: seed 1 (seed 1 failed" in text
    assert "Performance profiles" not in text
    assert "Run again the command" in text
    capsys.readouterr()
    assert not tell_outcome(folder)
    said = capsys.readouterr()
    assert "nothing can be compared" in said.out
    reason = "FailingPolicy scored a candidate NaN on task 'one-a' with seed 1"
    assert f"Some: 2 runs failed, the first: {reason}" in said.err


@pytest.mark.usefixtures("without_report")
def test_the_first_arm_decides_what_an_evaluation_is_about(experiment):
    arms = {"Rand": Arm(Rand()), "again": Arm(Rand())}
    folder = run(replace(experiment, arms=arms))
    other = run(replace(experiment, arms=dict(reversed(arms.items()))))
    assert list(read(folder).metadata["methods"]) == ["Rand", "again"]
    assert list(read(other).metadata["methods"]) == ["again", "Rand"]


@pytest.mark.slow
@pytest.mark.usefixtures("without_report")
def test_priors_serve_whatever_is_tested(experiment, capsys):
    fewer = replace(experiment, arms={"H-NLL": Arm(H_NLL)}, seeds=(0,), not_tested=("one-b",))
    more = replace(fewer, not_tested=())
    for first, second, runs in ((fewer, more, "a"), (more, fewer, "b")):
        losses = {}
        for each in (first, second):
            capsys.readouterr()
            folder = run(replace(each, runs=experiment.runs / runs))
            losses[each.not_tested] = read(folder).losses
        assert "pretrain H-NLL: 2 priors present, nothing to do" in capsys.readouterr().out
        of_fewer, of_more = losses["one-b",], losses[()]
        assert set(of_fewer["task"]) == {"", "one-a", "two-a"}
        assert set(of_more["task"]) == {"", "one-a", "one-b", "two-a"}
        rest = of_more[of_more["task"] != "one-b"].reset_index(drop=True)
        pd.testing.assert_frame_equal(of_fewer, rest)


@pytest.mark.usefixtures("without_report")
def test_only_code_that_decides_numbers_makes_runs_anew(experiment, copied_sources, capsys):
    experiment = replace(experiment, arms={"H-NLL": Arm(H_NLL)}, seeds=(0,))

    def lines_after_a_change(*changed):
        for name in changed:
            with (copied_sources / name).open("a") as source:
                source.write("\n# changed\n")
        for version in (numeric_code, evaluation_code):
            version.cache_clear()
        run(experiment)
        return lines_without_times(capsys)

    lines_after_a_change()
    present = [
        "pretrain H-NLL: 2 priors present, nothing to do",
        "evaluate H-NLL: 2 simulations present, nothing to do",
    ]
    pages = [f"hyperbo/evaluation/pages/{name}" for name in ("report.css", "report.py")]
    flows = ["hyperbo_flows/experiments/survey.py", "hyperbo_flows/cli/main.py"]
    assert lines_after_a_change(*pages, *flows) == [*present, "report: present, nothing to do"]
    assert lines_after_a_change("hyperbo/evaluation/records/join.py")[:2] == present
    for numeric in ("hyperbo/gp/posterior.py", "hyperbo_flows/experiments/protocols.py"):
        lines = lines_after_a_change(numeric)
        assert "pretrain H-NLL: 2 priors trained in T s, 0 were present" in lines
        assert "evaluate H-NLL: 2 simulations in T s, 0 were present" in lines


def test_when_every_run_fails_there_is_no_evaluation(experiment):
    with pytest.raises(NumericalError, match="every run failed; the first: no use in seed 1"):
        run(replace(experiment, arms={"Failing": Arm(Failing(always=True))}))


@pytest.mark.usefixtures("without_report")
def test_an_interrupted_arm_keeps_the_runs_that_were_finished(experiment, capsys, monkeypatch):
    monkeypatch.setattr(simulate_module, "CPU_RUNS_PER_DEVICE", 1)  # of 6 runs, 2 at a time
    simulate = simulations_module.simulate

    def interrupted(*arguments, finished, **options):
        parts = []

        def stop(part: Simulation) -> None:
            finished(part)
            parts.append(part)
            if len(parts) == 2:
                raise KeyboardInterrupt

        return simulate(*arguments, finished=stop, **options)

    with monkeypatch.context() as patched:
        patched.setattr(simulations_module, "simulate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(experiment)
    capsys.readouterr()
    # Four runs of six are those of both seeds on the two tasks of the first fold.
    folder = run(experiment)
    assert "evaluate Rand: 2 simulations in T s, 2 were present" in lines_without_times(capsys)
    assert len(read(folder).records) == 3 * 2 * ITERATIONS


def test_a_method_that_is_trained_as_another_shares_its_priors(experiment):
    arms = {"H-NLL": Arm(H_NLL), "H-Add": Arm(HAdd(H_NLL.architecture, H_NLL.training))}
    plan = make_plan(replace(experiment, arms=arms))
    assert plan.arms["H-Add"].priors == plan.arms["H-NLL"].priors
    for key, identity in plan.arms["H-Add"].simulations.items():
        assert identity["prior"] == ledger.run_id(plan.arms["H-NLL"].priors[key])
        assert identity != plan.arms["H-NLL"].simulations[key]


@pytest.mark.slow
def test_arms_that_differ_in_their_decision_share_priors_and_runs_are_labelled(experiment, capsys):
    other = replace(H_NLL, decision=AcquisitionDecision("upper_confidence_bound"))
    arms = {"H-NLL PI": Arm(H_NLL), "H-NLL UCB": Arm(other), "H-NLL again": Arm(H_NLL)}
    arms["H-Mix"] = Arm(HMix(H_NLL.architecture, H_NLL.training, uninformed=3))
    folder = run(replace(experiment, arms=arms, seeds=(0,)))
    lines = capsys.readouterr().out.splitlines()
    assert "pretrain H-NLL UCB: 2 priors present, nothing to do" in lines
    assert "pretrain H-Mix: 2 priors present, nothing to do" in lines
    assert "evaluate H-NLL again: 2 simulations present, nothing to do" in lines
    assert len(list((experiment.runs / "prior").glob("*/prior.json"))) == 2
    evaluation = read(folder)
    # Each arm needs the priors, and has their seconds; those of all are the ledger's, each run once.
    seconds = evaluation.metadata["seconds"]
    for step, kind in (("pre-train", "prior"), ("evaluate", "simulation")):
        spent = [ledger.facts(path)["seconds"] for path in (experiment.runs / kind).iterdir()]
        assert evaluation.metadata.get("total_seconds", {})[step] == pytest.approx(sum(spent))
    assert len(set(seconds["pre-train"].values())) == 1
    assert seconds["pre-train"]["H-NLL UCB"] == pytest.approx(
        evaluation.metadata["total_seconds"]["pre-train"]
    )
    assert seconds["evaluate"]["H-NLL PI"] == seconds["evaluate"]["H-NLL again"]
    by_label = dict(list(evaluation.records.groupby("method")))
    assert set(by_label) == set(arms)
    shared = ["task", "seed", "iteration", "trial_id", "prior"]
    first, again = (by_label[label][shared].reset_index(drop=True) for label in ("H-NLL PI", "H-NLL again"))
    assert first.equals(again)
    # What was predicted of each observation, and the losses of the priors, are there for the report.
    assert np.isfinite(evaluation.records[["mean", "deviation"]]).all(axis=None)
    assert evaluation.losses is not None
    kinds = evaluation.losses.groupby("kind").size().to_dict()
    assert kinds == {"training_nll": 4 * 2, "test_nll": 4 * 3}
    assert evaluation.metadata["methods"]["H-NLL UCB"]["configuration"]["decision"]["acquisition"] == (
        "upper_confidence_bound"
    )


@pytest.mark.usefixtures("without_report")
def test_hpob_begins_as_prescribed_repeats_nothing_and_normalises_regret(experiment):
    experiment = replace(experiment, dataset="hpob/4796:1.0.0", protocol="hpob", seeds=(0, 2))
    evaluation = read(run(experiment))
    records = evaluation.records
    # Seed 0 of the method with both initialisations, then seed 2.
    assert evaluation.metadata["seeds"] == [0, 1, 4, 5]
    assert evaluation.metadata.get("runs_per_prior") == 2
    assert evaluation.metadata.get("objective") == {"name": "best_valid/error_rate", "direction": "maximize"}
    regrets = simple_regrets(records, evaluation.metadata)
    for (task, seed), of_run in records.groupby(["task", "seed"]):
        first = int(task[-1]) / 100
        begun = BEGINNINGS[task][f"test{seed % 2}"]
        observed = [int(trial.rpartition("/")[2]) for trial in of_run["trial_id"]]
        assert len({*begun, *observed}) == len(begun) + ITERATIONS
        values = np.array([row / 10 + first for row in observed])
        best = np.maximum.accumulate(np.append(max(row / 10 + first for row in begun), values))[1:]
        expected = (0.7 + first - best) / 0.7
        place = regrets.tasks.index(task), regrets.seeds.index(seed)
        np.testing.assert_allclose(regrets.values[(0, *place)], expected, atol=1e-12)


@pytest.mark.usefixtures("without_report")
def test_a_task_with_fewer_trials_than_iterations_ends_at_no_regret_and_is_named(experiment, capsys):
    # Eight trials, of which two are given: six can be observed once.
    experiment = replace(experiment, dataset="hpob/4796:1.0.0", protocol="hpob", seeds=(0,))
    assert make_plan(replace(experiment, iterations=6)).test_bed.tests
    assert "fewer trials" not in capsys.readouterr().out
    evaluation = read(run(replace(experiment, iterations=8)))
    assert "fewer trials than 8 iterations" in (told := capsys.readouterr().out)
    assert "s-4 (6), s-5 (6)" in told
    regrets = simple_regrets(evaluation.records, evaluation.metadata)
    assert (regrets.values[..., 5:] == 0.0).all()
    for _, of_run in evaluation.records.groupby(["task", "seed"]):
        assert of_run.sort_values("iteration")["trial_id"][:6].is_unique


def test_whether_trials_may_be_observed_again_is_in_the_identity_of_simulations_alone(experiment):
    experiment = replace(experiment, arms={"H-NLL": Arm(H_NLL)})
    once, again = (make_plan(replace(experiment, repeats=way)).arms["H-NLL"] for way in (False, True))
    assert once.priors == again.priors
    assert all(once.simulations[key] != again.simulations[key] for key in once.simulations)


def test_the_losses_of_a_prior_are_those_of_all_its_runs(data_dir, tmp_path):
    hpob = Experiment(
        {"Rand": Arm(Rand())},
        data=data_dir,
        dataset="hpob/4796:1.0.0",
        protocol="hpob",
        iterations=ITERATIONS,
    )
    bed = make_plan(hpob).test_bed
    priors = {}
    for seed in (0, 3):
        priors["test", seed] = tmp_path / f"prior{seed}"
        priors["test", seed].mkdir()
        rows = pd.DataFrame({"held_out": ["s-4"], "task": ["s-4"], "kind": ["test_nll"], "value": [seed / 2]})
        rows.to_parquet(priors["test", seed] / LOSSES_OF_PRIOR)
    losses = report_module._losses({"H-NLL": report_module._Finished({}, priors, trained_here=True)}, bed)
    assert losses is not None
    validate_losses(losses)
    assert dict(zip(losses["seed"], losses["value"], strict=True)) == {0: 0.0, 1: 0.0, 6: 1.5, 7: 1.5}


@pytest.mark.slow
def test_evaluations_of_several_machines_become_one(experiment, tmp_path):
    both = read(run(experiment))
    apart = [
        run(replace(experiment, seeds=(seed,), runs=tmp_path / f"machine{seed}")) for seed in experiment.seeds
    ]
    out = tmp_path / "joined"
    joined = CliRunner().invoke(app, ["report", *map(str, apart), "--out", str(out)])
    assert joined.exit_code == 0, joined.output
    assert f"report: {out / 'report.html'}" in joined.stdout
    key = ["task", "seed", "iteration"]
    found, expected = (
        each.records.sort_values(key).reset_index(drop=True)[[*key, "trial_id", "y"]]
        for each in (read(out), both)
    )
    assert found.equals(expected)
    assert (out / "report.html").read_text().startswith("<!DOCTYPE html>")
    again = CliRunner().invoke(app, ["report", *map(str, apart), "--out", str(out)])
    assert again.exit_code == 1
    assert "exists already; name a new folder with --out" in again.stderr
    assert {path.name for path in tmp_path.iterdir() if "joined" in path.name} == {"joined"}
    assert CliRunner().invoke(app, ["report", *map(str, apart)]).exit_code == 2


@pytest.mark.usefixtures("without_report")
def test_the_example_of_ones_own_method_runs_and_beats_chance(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    # Tasks whose best inputs are close together.
    trials = [
        record(name, f"{name}/{i}", i / 64, 0.1 + abs(i / 64 - 0.6 - offset / 100))
        for offset, name in enumerate(("one-a", "two-a", "three-a", "four-a"))
        for i in range(64)
    ]
    write_version(tmp_path / "data", "pd1/mini:1.0.0", {"matched": trials})
    example = read_experiment(EXAMPLES / "nearest_neighbour.toml", tmp_path / "runs", tmp_path / "data")
    evaluation = read(run(replace(example, iterations=5)))
    regret = simple_regrets(evaluation.records, evaluation.metadata).at(5).mean(axis=(1, 2))
    assert regret[0] < 0.3 * regret[1]
    source = evaluation.metadata["methods"]["nearest neighbour"]["source_sha256"]
    assert len(source) == 64


def test_threads_of_another_process_read_the_data_of_a_plan_once(experiment, monkeypatch):
    reads = []
    monkeypatch.setattr(plan_module, "_made", [])
    lay_out = plan_module.lay_out
    monkeypatch.setattr(
        plan_module, "lay_out", lambda *terms, **named: reads.append(terms) or lay_out(*terms, **named)
    )
    sent = pickle.dumps(make_plan(experiment))
    with ThreadPoolExecutor(4) as threads:
        plans = list(threads.map(pickle.loads, [sent] * 4))
    assert len(reads) == 2  # One here, and one for the threads.
    assert all(plan is plans[0] for plan in plans)
    other = replace(experiment, seeds=(5,))
    assert pickle.loads(pickle.dumps(make_plan(other))).experiment == other
