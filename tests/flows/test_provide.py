from __future__ import annotations

import pytest
from typer.testing import CliRunner

from flows.cli import app
from flows.experiment import Arm, Experiment
from flows.provide import build_version
from hyperbo.errors import NotAvailableError
from hyperbo.methods import Rand

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
    manifest = build_version.fn(experiment, "trials/mine", "1.0.0")
    assert manifest.reference == "trials/mine:1.0.0"
    with pytest.raises(NotAvailableError, match="make it with hyperbo data add other"):
        build_version.fn(
            Experiment({"Rand": Arm(Rand())}, data=tmp_path, dataset="trials/other:1.0.0"),
            "trials/other",
            "1.0.0",
        )
