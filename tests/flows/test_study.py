"""The flow of a study: what it says before it starts, and that it starts with it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from version_folders import record, write_version

from flows import ledger
from flows import study as study_module
from flows.experiment import Arm, Experiment
from flows.identities import prior_identities, simulation_identities
from flows.study import outlook, run_study
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import HNLL, Rand
from hyperbo.pretrain import NLLTraining


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    trials = [
        record(name, f"{name}/{i}", i / 8, 0.1 + ((i + 3 * offset) % 8) / 10)
        for offset, name in enumerate(("one-a", "one-b", "two-a"))
        for i in range(8)
    ]
    write_version(folder / "data", "pd1/mini:1.0.0", {"matched": trials})
    arms = {
        "H-NLL": Arm(HNLL(Architecture((3,)), NLLTraining(2, 4, steps_per_call=2))),
        "Rand": Arm(Rand()),
    }
    return Experiment(arms, folder / "runs", folder / "data", seeds=(0, 1), iterations=3)


def test_a_study_says_what_is_to_come_before_it_trains(experiment, capsys, monkeypatch):
    bed = experiment.test_bed()

    def finish(identities):
        for identity in identities.values():
            ledger.finish(experiment.runs, identity, lambda folder: None, {})

    # The steps record that they have finished, and do nothing: the priors of one arm, the runs of another.
    def pretrain(experiment):
        print("pretrain")
        finish(prior_identities(experiment, bed, experiment.arms["H-NLL PI"]))

    def evaluate(experiment, command, failures):
        finish(simulation_identities(experiment, bed, experiment.arms["Rand"]))

    for step in (pretrain, evaluate):
        monkeypatch.setattr(study_module, step.__name__, step)
    monkeypatch.setattr(study_module, "provide", lambda experiment: None)
    run_study.fn("acquisition", experiment, "the command", chosen=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == ["pretrain"]
    # 2 folds by 2 seeds; the three acquisition functions share the priors, and not the simulations.
    assert lines[0] == (
        "study acquisition: 4 arms; 4 priors, of which 0 present; 16 simulations, of which 0 present"
    )

    one_more = replace(experiment, seeds=(0, 1, 2))
    expected = "2 arms; 6 priors, of which 4 present; 12 simulations, of which 4 present"
    assert outlook(one_more, one_more.test_bed()) == expected
