from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from gp_cases import matched_block, tuning_data, with_blocks
from hyperbo_flows.cli.experiments import ProtocolChoice, StudyName
from hyperbo_flows.experiments.arms import arms_by_name
from hyperbo_flows.experiments.experiment import Arm, Experiment
from hyperbo_flows.experiments.protocols import PROTOCOL_NAMES, TestBed
from hyperbo_flows.experiments.studies import STUDIES, design, under_its_protocol, usable

from hyperbo.data.folds import all_but_test_task, given_split, held_out_related
from hyperbo.data.tuning_data import Provenance
from hyperbo.errors import InvalidInputError
from hyperbo.methods import HNLL, AcquisitionDecision, Rand

SIZES = (30, 60, 120, 40, 50)
DATA = with_blocks(tuning_data(SIZES), matched_block(("t0", "t1", "t2", "t3", "t4"), 20, 0))
NAMES = tuple(task.name for task in DATA.tasks)


def bed(data=DATA, folds=all_but_test_task):
    return TestBed(data, "words", {fold.name: fold for fold in folds(data)})


def designed(study, *methods, test_bed=None):
    """The study's arms: for each label what is varied, and the arm."""
    arms = arms_by_name(methods or STUDIES[study].methods, "pd1/mini:1.0.0")
    return design(STUDIES[study], arms, test_bed or bed())


def places(arms):
    """Where the arms of each series are."""
    found = {}
    for arm in arms.values():
        found.setdefault(arm.study["series"], []).append(arm.study["at"])
    return found


def test_the_commands_know_all_studies_and_protocols():
    assert get_args(StudyName) == tuple(STUDIES)
    assert get_args(ProtocolChoice) == PROTOCOL_NAMES


def test_hpob_has_the_points_of_the_paper():
    large = tuning_data((30, 1200, 400))
    hpob = replace(large, provenance=Provenance("hpob/4796:1.0.0", "", "observed"))
    (fold,) = given_split(hpob, ("t1", "t2"), ("t0",))
    test_bed = TestBed(hpob, "words", {fold.name: fold}, repeats=False)
    assert places(designed("points-per-task", "H-NLL", test_bed=test_bed)) == {"H-NLL": [10, 100, 1000, 1200]}
    with pytest.raises(InvalidInputError, match="no training task shares the dataset of a test task"):
        designed("held-out", "H-NLL", test_bed=test_bed)


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_is_of_the_methods_of_the_paper_and_varies_one_quantity(name):
    data = DATA
    if name == "negative-transfer":
        data = replace(data, tasks=(*data.tasks[:4], replace(data.tasks[4], y=np.zeros(50))))
    if name == "held-out":
        data = replace(data, tasks=(*data.tasks[:4], replace(data.tasks[4], dataset="d0")))
    arms = designed(name, test_bed=bed(data))
    assert len({arm.study["quantity"] for arm in arms.values()}) == 1
    of_series = places(arms)
    references = {series for series, at in of_series.items() if at == [None]}
    assert references <= {"STBOH", "Rand"}
    assert all(len(set(at)) == len(at) > 1 for series, at in of_series.items() if series not in references)
    assert {series.split(" ")[0] for series in of_series} == set(STUDIES[name].methods)


def test_points_range_from_4_to_the_largest_training_task():
    arms = designed("points-per-task")
    found = places(arms)
    # t2, of 120 points, trains in every fold but its own.
    assert found["H-NLL"] == [4, 10, 25, 50, 100, 120]
    # Matched inputs: 20, and no more.
    assert found["H-EKL"] == [4, 10, 20]
    assert found["STBOH"] == [None]
    assert all(arm.points_per_task == arm.study["at"] for arm in arms.values())
    assert arms["H-NLL, 50 points"].method == HNLL()


def test_training_tasks_range_from_3_to_all_but_one():
    arms = designed("training-tasks", "H-NLL", "Rand")
    assert places(arms) == {"H-NLL": [3, 4], "Rand": [None]}
    assert [arm.training_tasks for arm in arms.values()] == [3, 4, None]


def test_acquisition_functions_are_the_three_of_the_paper():
    arms = designed("acquisition", "H-NLL", "STBO", "Rand")
    assert places(arms) == {"H-NLL": ["PI", "EI", "UCB"], "STBO": ["PI", "EI", "UCB"], "Rand": [None]}
    assert arms["H-NLL UCB"].method == HNLL(decision=AcquisitionDecision("upper_confidence_bound", 3.0))
    assert arms["H-NLL PI"].method == HNLL()


def test_structures_are_the_nine_of_the_paper():
    arms = designed("structure", "H-NLL")
    structures = {(arm.method.architecture.mean, arm.method.architecture.hidden) for arm in arms.values()}
    assert structures == {
        (mean, hidden) for mean in ("zero", "constant", "linear") for hidden in ((4,), (8,), (32, 32))
    }
    assert "H-NLL Linear MLP (32,32)" in arms
    hpob = replace(DATA, provenance=Provenance("hpob/4796:1.0.0", "", "observed"))
    larger = designed("structure", "H-NLL", test_bed=bed(hpob))
    assert len(larger) == 12
    assert arms.keys() < larger.keys()


def test_flat_functions_are_left_out_of_one_of_two_arms():
    flat = replace(DATA, tasks=(*DATA.tasks[:4], replace(DATA.tasks[4], y=np.zeros(50))))
    arms = designed("negative-transfer", "H-NLL", "H-NLL-7", "Rand", test_bed=bed(flat))
    assert [(arm.points_per_task, arm.without_flat) for arm in arms.values()] == [
        (100, False),
        (100, True),
        (7, False),
        (7, True),
        (None, False),
    ]
    with pytest.raises(InvalidInputError, match=r"no training function is flat.*; take data with flat"):
        designed("negative-transfer", "H-NLL")


def test_related_tasks_are_held_out_by_one_of_two_arms():
    related = replace(DATA, tasks=(*DATA.tasks[:4], replace(DATA.tasks[4], dataset="d0")))
    test_bed = bed(related)
    arms = designed("held-out", "H-NLL", "STBOH", test_bed=test_bed)
    held_out, all_but = arms["H-NLL, related held out"], arms["H-NLL, all but the test task"]
    # What the first learns from is what the protocol of that name gives it.
    expected = held_out_related(related)[0].training
    assert held_out.training(test_bed.folds["t0"], 0).tasks == expected.tasks
    assert [task.name for task in all_but.training(test_bed.folds["t0"], 0).tasks] == list(NAMES[1:])


def test_hpob_keeps_its_own_protocol():
    experiment = Experiment({"Rand": Arm(Rand())})
    study = STUDIES["points-per-task"]
    assert under_its_protocol(study, experiment).protocol == "all-but-test-task"
    hpob = replace(experiment, dataset="hpob/4796:1.0.0", protocol="hpob")
    assert under_its_protocol(study, hpob).protocol == "hpob"
    assert under_its_protocol(STUDIES["structure"], experiment).protocol == "held-out-related"


def test_without_matched_inputs_methods_that_need_them_are_left_out():
    arms = arms_by_name(("H-NLL", "H-EKL", "Rand"), "pd1/mini:1.0.0")
    assert list(usable(arms, bed())) == ["H-NLL", "H-EKL", "Rand"]
    assert list(usable(arms, bed(replace(DATA, blocks=())))) == ["H-NLL", "Rand"]


def test_a_method_without_what_is_varied_is_refused():
    with pytest.raises(InvalidInputError, match="acquisition function"):
        design(STUDIES["acquisition"], {"own": Arm(_Own())}, bed())


class _Own:
    def fit(self, jobs, progress=None):
        return [None] * len(jobs)

    def policy(self, fitted, task):
        return None


def test_the_page_of_every_study_says_what_it_asks() -> None:
    from hyperbo.evaluation.pages import opening

    assert set(opening.STUDIES) == set(STUDIES)
    assert all(words.question.endswith("?") for words in opening.STUDIES.values())
