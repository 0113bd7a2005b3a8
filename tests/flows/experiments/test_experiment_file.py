from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hyperbo_flows.experiments.experiment import Arm
from hyperbo_flows.experiments.experiment_file import read_experiment

from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import FSBO, HNLL, METHODS, AcquisitionDecision, Rand
from hyperbo.pretrain import NLLTraining

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
SMALLEST = '[experiment]\ndataset = "pd1/mini:1.0.0"\n[arms.Rand]\nmethod = "Rand"\n'


def read(tmp_path, text):
    path = tmp_path / "experiment.toml"
    path.write_text(text)
    return read_experiment(path, tmp_path / "runs")


def test_what_is_not_said_is_as_in_the_paper(tmp_path):
    experiment = read(tmp_path, SMALLEST)
    assert experiment.arms == {"Rand": Arm(Rand())}
    assert (experiment.seeds, experiment.iterations) == ((0, 1, 2, 3, 4), 100)
    assert (experiment.protocol, experiment.preparation) == ("held-out-related", None)
    assert experiment.runs == tmp_path / "runs"
    hpob = read(tmp_path, SMALLEST.replace("pd1/mini", "hpob/4796").replace('"Rand"', '"FSBO"'))
    assert hpob.protocol == "hpob"
    assert hpob.arms["Rand"] == Arm(FSBO(Architecture((128, 128), mean="zero")))


def test_everything_can_be_said(tmp_path):
    experiment = read(
        tmp_path,
        """
        [experiment]
        dataset = "pd1/release:1.0.0"
        raw = "files"
        preparation = "syne_tune"
        protocol = "all-but-test-task"
        not_tested = ["a", "b"]
        seeds = 2
        iterations = 9
        repeats = true

        [arms."H-NLL of few"]
        method = "H-NLL"
        points_per_task = 100
        training_tasks = 5
        without_related = true
        without_flat = true
        decision = { acquisition = "expected_improvement" }

        [arms."H-NLL of few".training]
        steps = 10
        steps_per_call = 5
        """,
    )
    assert experiment.arms == {
        "H-NLL of few": Arm(
            HNLL(
                training=NLLTraining(10, steps_per_call=5),
                decision=AcquisitionDecision("expected_improvement"),
            ),
            points_per_task=100,
            training_tasks=5,
            without_related=True,
            without_flat=True,
        )
    }
    assert (experiment.raw, experiment.preparation) == (Path("files"), "syne_tune")
    assert (experiment.protocol, experiment.not_tested) == ("all-but-test-task", ("a", "b"))
    assert (experiment.seeds, experiment.iterations, experiment.repeats) == ((0, 1), 9, True)


def test_arms_begin_from_the_papers_settings_where_the_file_or_the_arm_says_so(tmp_path):
    arm = '[arms.{}]\nmethod = "H-NLL"\n'
    text = SMALLEST + arm.format("first") + arm.format("second") + 'settings = "{}"\n'
    said = read(tmp_path, text.format("paper")).arms
    assert said["first"].method == HNLL()
    assert said["second"].method.training == NLLTraining.paper()
    everywhere = text.replace('1.0.0"', '1.0.0"\nsettings = "paper"').format("default")
    said = read(tmp_path, everywhere).arms
    assert said["first"].method.training == NLLTraining.paper()
    assert said["second"].method == HNLL()


def test_tasks_to_train_on_and_to_test_are_lists_of_names_and_patterns(tmp_path):
    said = read(tmp_path, SMALLEST.replace('1.0.0"', '1.0.0"\ntrain = ["a", "b-*"]\ntest = ["c"]'))
    assert (said.train, said.test) == (("a", "b-*"), ("c",))
    example = read_experiment(EXAMPLES / "chosen_tasks.toml", Path("runs"))
    assert example.test == ("digits-simple_cnn-20", "breast_cancer-*")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[experiment]", "[experiment", "the file is not TOML"),
        ("[experiment]", "[experiments]", "unknown key 'experiments' in line 1; did you mean 'experiment'"),
        ('[arms.Rand]\nmethod = "Rand"\n', "", "arms: the field is missing"),
        ('dataset = "pd1/mini:1.0.0"', "seeds = 1", "experiment.dataset: the field is missing"),
        (":1.0.0", "", "dataset 'pd1/mini' names no version"),
        ('1.0.0"', '1.0.0"\nseeds = 1.5', "experiment.seeds: 1.5"),
        ('1.0.0"', '1.0.0"\nprotocol = "none"', "experiment.protocol: 'none'"),
        ('1.0.0"', '1.0.0"\ntest = "a"', "experiment.test: 'a'"),
        ('1.0.0"', '1.0.0"\ntest = ["a"]\nprotocol = "hpob"', "protocol stands beside train or test"),
        ('1.0.0"', '1.0.0"\ntest = ["a"]\nnot_tested = ["b"]', "experiment: train and test stand beside"),
        ('method = "Rand"', "", "arms.Rand.method: the field is missing"),
        ('"Rand"', '"Rando"', "arms.Rand: unknown method 'Rando'"),
        ('"Rand"', '"Rand"\ntraining_tasks = 0', "arms.Rand: training_tasks = 0 is not positive"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path, old, new, message):
    assert old in SMALLEST
    with pytest.raises(InvalidInputError, match=re.escape(f"experiment.toml: {message}")):
        read(tmp_path, SMALLEST.replace(old, new, 1))


def test_the_examples_can_be_read(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    variants = read_experiment(EXAMPLES / "variants.toml", Path("runs"))
    assert variants.arms["H-NLL UCB"].method.decision == AcquisitionDecision("upper_confidence_bound", 3.0)
    assert variants.arms["H-NLL UCB corrected variance"].method.decision.correct_variance
    assert variants.arms["H-NLL refit"].method.refit_iterations == 20
    small = variants.arms["H-NLL-100 constant (8,)"]
    assert (small.points_per_task, small.method.architecture) == (100, Architecture((8,), mean="constant"))
    own = read_experiment(EXAMPLES / "nearest_neighbour.toml", Path("runs"))
    assert own.arms["nearest neighbour"].method.epsilon == 0.05


def test_the_examples_of_all_ten_methods_differ_in_the_data_only():
    first, second = (
        read_experiment(EXAMPLES / name, Path("runs"))
        for name in ("ten_methods.toml", "taskset_ten_methods.toml")
    )
    of_the_paper = "H-NLL", "H-EKL", "FSBO", "ABLR", "MIMO", "RFGP", "MAF", "Rand", "STBO", "STBOH"
    assert set(first.arms) == set(of_the_paper) <= set(METHODS)
    assert first.arms == second.arms
    assert (first.seeds, first.iterations) == (second.seeds, second.iterations)
    assert (first.dataset, second.dataset) == ("pd1/mini:1.0.0", "trials/taskset:1.0.0")
