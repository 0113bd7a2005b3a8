"""Pre-training in the flow: killed, it goes on from its last checkpoint."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from compiled_programs import compiled_once
from hyperbo_flows.experiments import pretrain as pretrain_module
from hyperbo_flows.experiments.experiment import Arm, Experiment
from hyperbo_flows.experiments.plan import make_plan
from hyperbo_flows.experiments.pretrain import checkpoints_of
from hyperbo_flows.experiments.work import IN_ORDER, Runner
from version_folders import record, write_version

from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import HEKL
from hyperbo.pretrain import EKLTraining
from hyperbo.priors.file import read_prior

# Kills itself when two of three calls are done.
PROGRAM = """
import os, signal
from contextlib import contextmanager
from pathlib import Path
from hyperbo_flows.experiments.experiment import Arm, Experiment
from hyperbo_flows.experiments.plan import make_plan
from hyperbo_flows.experiments.pretrain import pretrain
from hyperbo_flows.experiments.work import Runner
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import HEKL
from hyperbo.pretrain import EKLTraining

@contextmanager
def deadly(label, unit):
    yield lambda done, total: os.kill(os.getpid(), signal.SIGKILL) if done >= 20 else None

arms = {{"H-EKL": Arm(HEKL(Architecture((3,)), EKLTraining(30)))}}
experiment = Experiment(arms, Path({runs!r}), Path({data!r}), preparation="observed", seeds=(0,))
pretrain(make_plan(experiment), Runner(progress=deadly))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Of a process that finds the programs compiled here."""
    with compiled_once(tmp_path_factory.mktemp("programs")) as variables:
        yield os.environ | variables | {"PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.fixture(scope="module")
def uninterrupted(environment, tmp_path_factory):
    """An experiment of three priors, all of them trained."""
    data = tmp_path_factory.mktemp("data")
    trials = [
        record(f"{dataset}-1", f"{dataset}/{i}", i / 8, (i + offset) / 16, block="b0")
        for offset, dataset in enumerate(("one", "two", "three"), start=1)
        for i in range(5)
    ]
    write_version(data, "pd1/mini:1.0.0", {"matched": trials})
    arms = {"H-EKL": Arm(HEKL(Architecture((3,)), EKLTraining(30)))}
    runs = tmp_path_factory.mktemp("uninterrupted")
    experiment = Experiment(arms, runs, data, preparation="observed", seeds=(0,))
    assert pretrain(experiment) == {}
    return experiment


@pytest.fixture
def experiment(uninterrupted, tmp_path):
    return replace(uninterrupted, runs=tmp_path / "runs")


def pretrain(experiment, runner=IN_ORDER):
    return pretrain_module.pretrain(make_plan(experiment), runner)


def interrupt(experiment):
    """Leave checkpoints, without a process for it."""

    @contextmanager
    def interrupted(label, unit):
        def progress(done, total):
            if done >= 20:
                raise KeyboardInterrupt

        yield progress

    with pytest.raises(KeyboardInterrupt):
        pretrain(experiment, Runner(progress=interrupted))
    (folder,) = (experiment.runs / "checkpoints").glob("*/calls")
    return folder


def said_of_pretraining(capsys):
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("pretrain ")]


def outcome(experiment):
    """The priors in the ledger: their arrays and losses."""
    return {
        folder.name: ((folder / "prior.safetensors").read_bytes(), read_prior(folder).description.losses)
        for folder in (experiment.runs / "prior").iterdir()
    }


@pytest.mark.slow
def test_a_flow_that_was_killed_goes_on_from_the_last_checkpoint(
    environment, uninterrupted, experiment, capsys
):
    program = PROGRAM.format(runs=str(experiment.runs), data=str(experiment.data))
    killed = subprocess.run([sys.executable, "-c", program], env=environment, check=False, timeout=240)
    assert killed.returncode == -signal.SIGKILL
    assert not (experiment.runs / "prior").exists()
    pretrain(experiment)
    first, *_, last = said_of_pretraining(capsys)
    assert first.startswith("pretrain H-EKL: 20 of 30 steps, ")
    assert last.startswith("pretrain H-EKL: 3 priors trained in ")
    assert outcome(experiment) == outcome(uninterrupted)
    assert list((experiment.runs / "checkpoints").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["of other code", "unreadable"])
def test_a_checkpoint_that_cannot_be_used_is_no_obstacle(
    fault, uninterrupted, experiment, capsys, monkeypatch
):
    folder = interrupt(experiment)
    if fault == "unreadable":
        for path in folder.rglob("*"):
            if path.is_file():
                path.write_bytes(b"")
        message = "the checkpoint cannot be read"
    else:
        monkeypatch.setattr("hyperbo.pretrain.jobs.code_version", lambda *packages: "9.9.9+0")
        message = "code_version is '"
    pretrain(experiment)
    start, first, *_ = said_of_pretraining(capsys)
    assert start.startswith("pretrain H-EKL: from the start, as the checkpoint cannot be used: ")
    assert message in start
    assert first.startswith("pretrain H-EKL: 0 of 30 steps, ")
    assert outcome(experiment) == outcome(uninterrupted)


def test_without_the_package_for_checkpoints_there_are_none(uninterrupted, experiment, capsys, monkeypatch):
    monkeypatch.setattr(pretrain_module, "checkpoints_available", lambda: False)
    pretrain(experiment)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "checkpoint" in line] == [
        "pretrain H-EKL: without checkpoints, since orbax-checkpoint is not installed"
    ]
    assert outcome(experiment) == outcome(uninterrupted)


def test_what_is_wrong_with_the_data_is_said_once(experiment, capsys):
    data = experiment.runs / "data"
    trials = [record(f"{name}-1", f"{name}/0") for name in ("one", "two")]
    write_version(data, "pd1/mini:1.0.0", {"matched": trials})
    failures = pretrain(replace(experiment, data=data))
    assert set(failures) == {("H-EKL", ("one", 0)), ("H-EKL", ("two", 0))}
    assert failures["H-EKL", ("one", 0)].keys() == {("one-1", 0)}
    assert all("no matched input" in reason for runs in failures.values() for reason in runs.values())
    lines = said_of_pretraining(capsys)
    assert "trying 2 one by one" in lines[0]
    assert lines[1].startswith("pretrain H-EKL: 2 failed, the first with one held out and seed 0: ")
    assert lines[2].endswith(", 0 were present, 2 failed")
    assert len(lines) == 3


def test_of_two_processes_at_the_same_batch_one_waits(tmp_path, capsys):
    batch = [{"kind": "prior", "seed": seed} for seed in range(2)]
    entered, order = threading.Event(), []

    def second():
        entered.set()
        with checkpoints_of(tmp_path, batch, "train"):
            order.append("second")

    other = threading.Thread(target=second)
    with checkpoints_of(tmp_path, batch, "train") as folder:
        with checkpoints_of(tmp_path, batch[:1], "train") as another:  # no need to wait
            assert another != folder
        other.start()
        entered.wait()
        while not (lines := capsys.readouterr().out):
            other.join(0.01)
        folder.mkdir()
        order.append("first")
    other.join()
    assert order == ["first", "second"]
    assert lines == "train: waiting for a process at the same batch\n"
    assert list((tmp_path / "checkpoints").iterdir()) == []
