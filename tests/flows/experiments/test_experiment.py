from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gp_cases import matched_block, tuning_data, with_blocks
from hyperbo_flows.experiments.arms import arms_by_name, configured, demonstration
from hyperbo_flows.experiments.experiment import Arm, Experiment
from hyperbo_flows.experiments.plan import limits

from hyperbo.data.folds import all_but_test_task
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import FSBO, HEKL, HNLL, METHODS, STBO, STBOH, Rand
from hyperbo.pretrain import EKLTraining, NLLTraining
from hyperbo.pretrain.ekl import training_blocks
from pd1_builder.version.catalog import default_data_dir

ARMS = {"Rand": Arm(Rand())}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": "pd1/mini"}, "names no version"),
        ({"arms": {}}, "no method to compare"),
        ({"arms": {"": Arm(Rand())}}, "has no label"),
        ({"seeds": ()}, "seeds: none; give at least one, and none twice"),
        ({"seeds": (1, 1)}, "seeds: .*; give at least one, and none twice"),
        ({"seeds": (-1,)}, "seeds of at least 0"),
        ({"iterations": 0}, "at least one iteration"),
        ({"protocol": "leave-one-out"}, "unknown protocol 'leave-one-out'; use held-out-related, "),
    ],
)
def test_experiments_that_cannot_be_are_refused(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        Experiment(**{"arms": ARMS} | changes)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"points_per_task": 0}, "points_per_task = 0 is not positive"),
        ({"training_tasks": -1}, "training_tasks = -1 is not positive"),
        ({"method": "Rand"}, "'Rand' is no method"),
    ],
)
def test_arms_that_cannot_be_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        Arm(**{"method": Rand()} | settings)


def test_datasets_are_in_the_folder_that_all_commands_use_unless_told_otherwise():
    experiment = Experiment(ARMS, runs=Path("somewhere"))
    assert experiment.data_dir == default_data_dir()
    assert replace(experiment, data=Path("elsewhere")).data_dir == Path("elsewhere")


def test_an_arm_limits_what_is_learned_from():
    tasks = tuning_data((6, 7, 8, 9, 10))
    flat = replace(tasks.tasks[3], y=tasks.tasks[3].y * 0)
    related = replace(tasks.tasks[4], dataset="d0")
    data = with_blocks(
        replace(tasks, tasks=(*tasks.tasks[:3], flat, related)), matched_block(("t1", "t2", "t4"), 6, 0)
    )
    fold = all_but_test_task(data)[0]  # t0 is tested, t4 is related to it

    def names(**limits):
        return [task.name for task in Arm(Rand(), **limits).training(fold, 0).tasks]

    assert names() == ["t1", "t2", "t3", "t4"]
    assert names(without_related=True) == ["t1", "t2", "t3"]
    assert names(without_flat=True) == ["t1", "t2", "t4"]
    assert "t4" not in names(training_tasks=3)
    assert names(without_related=True, without_flat=True, training_tasks=1) in (["t1"], ["t2"])
    few = Arm(Rand(), points_per_task=4).training(fold, 0)
    assert {len(task.y) for task in few.tasks} == {4}
    assert sum(len(block.x) for block in few.blocks) == 4


def test_matched_inputs_are_those_that_diverged_on_none_of_the_tasks_that_an_arm_trains_on():
    tasks = tuning_data((6, 3, 4, 5))
    related = replace(tasks.tasks[3], dataset="d0")
    block = matched_block(("t0", "t1", "t2", "t3"), 7, 0)
    y = block.y.copy()
    y[0, 0] = y[1, 1] = y[2, 3] = np.nan  # t0 diverged at the first input, t1 at the second, t3 at the third
    data = with_blocks(replace(tasks, tasks=(*tasks.tasks[:3], related)), replace(block, y=y))
    fold = all_but_test_task(data)[0]  # t0 is tested, t3 is related to it

    def matched(**limits):
        (kept,) = training_blocks(Arm(HEKL(), **limits).training(fold, 0))
        return [block.x.tolist().index(x) for x in kept.x.tolist()]

    assert matched() == [0, 3, 4, 5, 6]
    assert matched(without_related=True) == matched(training_tasks=2) == [0, 2, 3, 4, 5, 6]
    assert matched(without_related=True, points_per_task=6) == [0, 2, 3, 4, 5, 6]
    # In the identity of a prior, a number of points counts only where it is less than what is there.
    for arm, fewer in (
        (Arm(HEKL(), points_per_task=5), False),
        (Arm(HEKL(), points_per_task=5, without_related=True), True),
    ):
        assert limits(arm, arm.training(fold, 0), fold.training) is fewer


def test_methods_are_at_their_defaults_or_at_the_papers_settings():
    arms = arms_by_name(("H-NLL", "STBO", "H-NLL-100", "H-EKL-25"), "pd1/mini:1.0.0")
    assert arms == {
        "H-NLL": Arm(HNLL()),
        "STBO": Arm(STBO()),
        "H-NLL-100": Arm(HNLL(), points_per_task=100),
        "H-EKL-25": Arm(HEKL(), points_per_task=25),
    }
    paper = configured("H-NLL", "pd1/mini:1.0.0", settings="paper")
    assert paper.training == NLLTraining(
        50_000, points_per_task=50, learning_rate=1e-3, steps_per_call=500, patience=None
    )
    assert (paper.decision.threshold, paper.decision.threshold_unit) == (0.1, "absolute")
    assert paper.architecture == HNLL().architecture
    assert configured("STBO", "pd1/mini:1.0.0", settings="paper").decision == paper.decision
    assert configured("Rand", "pd1/mini:1.0.0", settings="paper") == Rand()
    assert configured("H-NLL", "hpob/4796:1.0.0").architecture.hidden == (128, 128)
    assert configured("FSBO", "hpob/4796:1.0.0") == FSBO(Architecture((128, 128), mean="zero"))
    assert configured("STBOH", "hpob/4796:1.0.0") == STBOH()


@pytest.mark.parametrize("name", METHODS)
def test_every_method_of_the_project_can_be_configured_by_its_name(name):
    assert type(configured(name, "hpob/4796:1.0.0", steps=7)) is METHODS[name]


def test_fewer_steps_are_those_of_adam():
    arms = arms_by_name(("H-NLL", "FSBO", "H-EKL"), "pd1/mini:1.0.0", steps=7)
    assert arms["H-NLL"].method.training == NLLTraining(7, steps_per_call=7)
    assert arms["FSBO"].method.training.steps == 7
    assert arms["H-EKL"].method.training == EKLTraining()
    with pytest.raises(InvalidInputError, match="steps = 7 limits nothing: RFGP, Rand"):
        arms_by_name(("RFGP", "Rand"), "pd1/mini:1.0.0", steps=7)
    assert arms_by_name(("H-NLL",), "pd1/mini:1.0.0", 700)["H-NLL"].method.training.steps_per_call == 100
    with pytest.raises(InvalidInputError, match="steps = 750; give a multiple of 100"):
        arms_by_name(("H-NLL",), "pd1/mini:1.0.0", steps=750)
    paper = arms_by_name(("H-NLL",), "pd1/mini:1.0.0", 1000, "paper")["H-NLL"].method.training
    assert (paper.steps, paper.steps_per_call, paper.patience) == (1000, 500, None)
    for names in ((), ("Rand", "Rand")):
        with pytest.raises(InvalidInputError, match=r"methods: .*; name at least one, and none twice"):
            arms_by_name(names, "pd1/mini:1.0.0")


def test_the_demonstration_has_a_model_and_a_simple_rule_of_each_kind():
    experiment = demonstration(Path("r"), seeds=(0, 1), iterations=7, steps=1500)
    assert (experiment.dataset, experiment.preparation) == ("pd1/mini:1.0.0", "paper")
    assert (experiment.protocol, experiment.seeds, experiment.iterations) == ("held-out-related", (0, 1), 7)
    assert list(experiment.arms) == ["H-NLL", "H-EKL", "STBO", "Best-average", "Rand"]
    training = experiment.arms["H-NLL"].method.training
    assert (training.steps, training.points_per_task, training.learning_rate) == (1500, 50, 1e-2)
    assert experiment.arms["H-EKL"].method.training.iterations == 100
    assert experiment.arms["STBO"].method.iterations == 100
    models = [experiment.arms[label].method for label in ("H-NLL", "H-EKL", "STBO")]
    hidden = {method.architecture.hidden for method in models}
    assert hidden == {(32, 32)}
