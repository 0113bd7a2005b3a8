"""Values of the wrong unit or direction are warned of once; values as of the prior's tasks are not."""

from dataclasses import replace

import numpy as np
import pytest
from gp_cases import tuning_data
from optuna import create_study
from tuning_priors import UNIT, prior_over

from hyperbo.gp.gaussian_process import Architecture
from hyperbo.pretrain.convergence import Fall
from hyperbo.pretrain.jobs import Job, Pretrained
from hyperbo.priors.file import Prior, read_prior, save_prior, trained_prior
from hyperbo.tuning.belief import prior_belief, universal_prior
from hyperbo.tuning.doubts import Doubts, direction_of
from hyperbo.tuning.optuna.sampler import HyperBOSampler
from hyperbo.tuning.tuner import Tuner


def of_rates(warping: str = "negative_log", preparation: str = "online", highest: float = 0.9) -> Prior:
    """A prior whose tasks had objectives from 0.1 to `highest`."""
    prior = prior_over(warping=warping, preparation=preparation)
    return Prior(prior.gp, replace(prior.description, objective_range=(0.1, highest)))


def warnings_of(caplog) -> list[str]:
    found = [each.getMessage() for each in caplog.records if each.name == "hyperbo.tuning.doubts"]
    caplog.clear()
    return found


@pytest.mark.parametrize(
    ("prior", "value", "is_said"),
    [
        (of_rates(), 93.0, True),
        (of_rates(), 0.0, False),
        (of_rates(), 1.0, False),
        # A cross-entropy: a prior that sees mapped values does not mind the factor.
        (of_rates(), 2.3, False),
        (of_rates(preparation="paper"), 7.0, True),
        (of_rates(preparation="paper"), 2.3, False),
        (of_rates("identity"), 93.0, True),
        (of_rates("identity"), -50.0, True),
        (of_rates("identity"), -0.5, False),
        (of_rates("negative"), 93.0, True),
        (prior_over(warping="negative_log"), 93.0, False),  # its file does not say what its tasks had
    ],
)
def test_a_value_far_from_those_of_the_priors_tasks_is_said(prior, value, is_said, caplog):
    Doubts(prior_belief(prior)).of_value(value, "trial 3")
    said = warnings_of(caplog)
    assert len(said) == is_said
    if is_said:
        assert said[0].startswith(f"trial 3: the objective {value:.6g} is far from")
        assert "0.1 to 0.9" in said[0]
        assert "divide a percentage by 100" in said[0]


@pytest.mark.parametrize(
    ("belief", "remedy"),
    [
        (prior_belief(of_rates()), "for an accuracy, give direction='maximize'"),
        (prior_belief(of_rates(), "maximize"), "for an error, leave direction='maximize' out"),
        (prior_belief(of_rates(highest=2.5)), "of an accuracy, tell the negative"),  # its tasks had losses
        (prior_belief(of_rates("identity")), "of an error, tell the negative"),
        (universal_prior(UNIT, "minimize"), "for an accuracy, give direction='maximize'"),
        (universal_prior(UNIT, "maximize"), "for an error, give direction='minimize'"),
    ],
)
def test_the_name_of_a_metric_tells_its_direction_and_the_remedy_works(belief, remedy, caplog):
    doubts = Doubts(belief)
    right, wrong = "val_loss", "accuracy"
    if belief.warping.direction == "maximize":
        right, wrong = wrong, right
    for name in (right, "objective", "", wrong, wrong):
        doubts.of_name(name, "optimize")
    (said,) = warnings_of(caplog)
    assert said.startswith(f"optimize: {wrong} is to be ")
    assert said.endswith(remedy)


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("top1", "maximize"),
        ("validF1", "maximize"),
        ("AUC", "maximize"),
        ("R2", "maximize"),
        ("eval/err", "minimize"),
        ("RMSE", "minimize"),
        ("one_minus_accuracy", None),
        ("neg_loss", None),
        ("brier score", None),  # a score that is minimised
        ("train", None),
        ("accrue", None),
    ],
)
def test_names_of_metrics(name, direction):
    assert direction_of(name) == direction


def test_a_tuner_and_a_sampler_say_it_once(caplog):
    tuner = Tuner(of_rates())
    point = {"x": 0.5, "y": 0.5}
    for told in (0.5, 93, 94):
        tuner.add(point, told)
    (said,) = warnings_of(caplog)
    assert "93" in said
    study = create_study(sampler=HyperBOSampler(of_rates(), seed=0))
    for told in (0.5, 93, 94):
        study.enqueue_trial(point)
        study.tell(study.ask(), told)
    (said,) = warnings_of(caplog)
    assert said.startswith("trial 1: the objective 93")


def test_a_trained_prior_knows_the_range_of_its_tasks(tmp_path):
    data = tuning_data()
    prior = prior_over()
    trained = Pretrained(prior.gp, np.array([1.0, 0.5]), 0.0, 0.1, Fall(1.0, 0.5, 0.5, False))
    made = trained_prior(
        trained, Job(data, seed=0), "H-NLL", Architecture(hidden=(4,), kernel="matern32"), trained,
        held_out="", output_warping="negative_log", code_version="0",
    )  # fmt: skip
    values = np.concatenate([task.objective for task in data.tasks])
    assert made.description.objective_range == (values.min(), values.max())
    described = replace(prior, description=replace(prior.description, objective_range=(0.25, 0.5)))
    save_prior(tmp_path, described)
    assert read_prior(tmp_path).description.objective_range == (0.25, 0.5)
