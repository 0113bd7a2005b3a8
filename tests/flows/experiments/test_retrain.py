"""Whole chains: the version comes first, and a study says what is to come before it starts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hyperbo_flows.cli.main import app
from hyperbo_flows.experiments import ledger
from hyperbo_flows.experiments import retrain as retrain_module
from hyperbo_flows.experiments.experiment import Arm, Experiment
from hyperbo_flows.experiments.plan import make_plan
from hyperbo_flows.experiments.retrain import provide, run_study
from typer.testing import CliRunner
from version_folders import record, write_version

from hyperbo.errors import NotAvailableError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import HNLL, Rand
from hyperbo.pretrain import NLLTraining

SPACE = (
    'objective = "loss"\ndirection = "minimize"\n[[parameters]]\nname = "rate"\nlower = 0.1\nupper = 1.0\n'
)


def test_a_version_of_ones_own_trials_is_verified(tmp_path):
    (tmp_path / "trials.csv").write_text("task,rate,loss\na,0.5,1\nb,0.5,2\n")
    (tmp_path / "space.toml").write_text(SPACE)
    arguments = ["data", "add", "mine", tmp_path / "trials.csv", "--space", tmp_path / "space.toml"]
    added = CliRunner().invoke(app, [*map(str, arguments), "--data", str(tmp_path)])
    assert added.exit_code == 0, added.output
    experiment = Experiment({"Rand": Arm(Rand())}, data=tmp_path, dataset="trials/mine:1.0.0")
    assert provide(experiment).reference == "trials/mine:1.0.0"
    with pytest.raises(NotAvailableError, match="hyperbo data add other FILE"):
        provide(replace(experiment, dataset="trials/other:1.0.0"))


def test_a_study_says_what_is_to_come_before_it_trains(tmp_path, capsys, monkeypatch):
    trials = [
        record(name, f"{name}/{i}", i / 8, 0.1 + ((i + 3 * offset) % 8) / 10)
        for offset, name in enumerate(("one-a", "one-b", "two-a"))
        for i in range(8)
    ]
    write_version(tmp_path / "data", "pd1/mini:1.0.0", {"matched": trials})
    arms = {
        "H-NLL": Arm(HNLL(Architecture((3,)), NLLTraining(2, 4, steps_per_call=2))),
        "Rand": Arm(Rand()),
    }
    experiment = Experiment(arms, tmp_path / "runs", tmp_path / "data", seeds=(0, 1), iterations=3)

    def finish(identities):
        for identity in identities.values():
            ledger.finish(experiment.runs, identity, lambda folder: None, {})

    # The steps record that they have finished, and do nothing: the priors of one arm, the runs of another.
    def pretrain(plan):
        print("pretrain")
        finish(plan.arms["H-NLL PI"].priors)

    def evaluate(plan, command, failures):
        finish(plan.arms["Rand"].simulations)

    for step in (pretrain, evaluate):
        monkeypatch.setattr(retrain_module, step.__name__, step)
    monkeypatch.setattr(retrain_module, "provide", lambda experiment: None)
    run_study(experiment, "the command", "acquisition", chosen=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == ["pretrain"]
    # 2 folds by 2 seeds; the three acquisition functions share the priors, and not the simulations.
    assert lines[0] == (
        "study acquisition: 4 arms; 4 priors, of which 0 present; 16 simulations, of which 0 present"
    )
    one_more = make_plan(replace(experiment, seeds=(0, 1, 2)))
    expected = "2 arms; 6 priors, of which 4 present; 12 simulations, of which 4 present"
    assert one_more.outlook() == expected
