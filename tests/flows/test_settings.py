from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flows.settings import Settings, configurations
from hyperbo.errors import InvalidInputError


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": "pd1/mini"}, "names no version"),
        ({"methods": ()}, "methods"),
        ({"seeds": (1, 1)}, "seeds = .* repeats"),
        ({"seeds": (-1,)}, "seeds of at least 0"),
        ({"iterations": 0}, "at least one iteration"),
        ({"methods": ("FSBO",)}, "unknown method 'FSBO'; use H-NLL, H-EKL, STBO, Rand"),
        ({"nll_steps": 0}, "steps = 0 is not positive"),
        ({"nll_steps": 750}, "no multiple of steps_per_call = 500"),
        ({"hidden": (0,)}, "hidden"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        Settings(**changes)


def test_datasets_are_kept_beside_the_runs_unless_told_otherwise():
    settings = Settings(runs=Path("somewhere"))
    assert settings.data_dir == Path("somewhere/data")
    assert replace(settings, data=Path("elsewhere")).data_dir == Path("elsewhere")


def test_every_setting_of_a_method_reaches_its_configuration():
    of = configurations(
        Settings(
            hidden=(8,), nll_steps=7, nll_points=6, nll_learning_rate=0.5, ekl_iterations=4, stbo_iterations=3
        )
    )
    assert list(of) == ["H-NLL", "H-EKL", "STBO", "Rand"]
    nll, ekl, stbo = of["H-NLL"], of["H-EKL"], of["STBO"]
    assert (nll.training.steps, nll.training.points_per_task, nll.training.learning_rate) == (7, 6, 0.5)
    assert (ekl.training.iterations, stbo.iterations) == (4, 3)
    assert {each.architecture.hidden for each in (nll, ekl, stbo)} == {(8,)}
