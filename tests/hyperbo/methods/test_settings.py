"""Settings that a method cannot have are refused, and the error names the setting."""

from __future__ import annotations

from typing import Any

import pytest

from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import (
    CGP,
    EGP,
    HNLL,
    MIMO,
    RFGP,
    RGPE,
    STBO,
    STBOH,
    AcquisitionDecision,
    HAdd,
    HMix,
    Mix,
    ScaMLGP,
)
from hyperbo.methods.maf.policy_gradient import PolicyGradient
from hyperbo.methods.maf.training import MAFTraining
from hyperbo.methods.multi_task.model import MultiTaskTraining
from hyperbo.methods.transfer.quantiles import QuantileTraining
from hyperbo.pretrain.task_gp import TaskGP

CORRECTED = {"decision": AcquisitionDecision(correct_variance=True)}
NAN = float("nan")


@pytest.mark.parametrize(
    ("kind", "settings", "named"),
    [
        (AcquisitionDecision, {"acquisition": "thompson"}, "'thompson'"),
        (AcquisitionDecision, {"coefficient": -1.0}, "coefficient"),
        (AcquisitionDecision, {"threshold": NAN}, "threshold"),
        (AcquisitionDecision, {"threshold_unit": "sigma"}, "'sigma'.*spread or absolute"),
        # There is no prior from tasks to correct.
        *((kind, CORRECTED, "decision.correct_variance") for kind in (STBO, STBOH, MIMO, RFGP)),
        (HNLL, {"refit_iterations": -1}, "refit_iterations"),
        *((HMix, {"prior_weight": weight}, "prior_weight") for weight in (0.0, 1.0, NAN)),
        (HMix, {"uninformed": 0}, "uninformed"),
        (Mix, {"uninformed": 0}, "uninformed"),
        (Mix, {"spread": 0.0}, "spread"),
        (Mix, {"centre": NAN}, "centre"),
        (STBO, {"log_scale": 0.0}, "no density"),
        (STBOH, {"iterations": 0}, "iterations"),
        (STBOH, {"lengthscale": (0.0, -1.0)}, "no density"),
        *((MultiTaskTraining, {name: 0}, name) for name in ("epochs", "refit_epochs", "batch_size")),
        *((MultiTaskTraining, {name: 0}, name) for name in ("embedding_size", "max_points_per_task")),
        *((MIMO, {name: value}, name) for name, value in (("members", 0), ("shared_units", -1))),
        (MIMO, {"members": 0}, "members"),
        (MIMO, {"shared_units": -1}, "shared_units"),
        (MIMO, {"learning_rate": NAN}, "learning_rate"),
        (MIMO, {"smallest_deviation": 0.0}, "smallest_deviation"),
        (MIMO, {"unshared_units": ()}, "unshared_units"),
        (MIMO, {"unshared_units": (10, 0)}, "unshared_units"),
        (RFGP, {"learning_rate": NAN}, "learning_rate"),
        (RFGP, {"features": 0}, "features"),
        (RFGP, {"lengthscale": -1.0}, "lengthscale"),
        (RFGP, {"ridge_penalty": 0.0}, "ridge_penalty"),
        *((MAFTraining, {name: 0}, name) for name in ("horizon", "validation_tasks")),
        (MAFTraining, {"minimum_regret": 0.0}, "minimum_regret"),
        (MAFTraining, {"weight_scale": float("inf")}, "weight_scale"),
        (MAFTraining, {"hidden": (3, 0)}, "hidden|layer"),
        (MAFTraining, {"iterations": 15}, "iterations_per_call = 10"),
        (MAFTraining, {"optimization": PolicyGradient(minibatch=50), "horizon": 7}, "minibatch = 50"),
        (PolicyGradient, {"discount": 1.1}, "discount"),
        (PolicyGradient, {"clip": 0.0}, "clip"),
        (PolicyGradient, {"learning_rate": NAN}, "learning_rate"),
        (PolicyGradient, {"entropy_weight": -0.1}, "entropy_weight"),
        (PolicyGradient, {"epochs": 0}, "epochs"),
        (RGPE, {"samples": 0}, "samples"),
        *((kind, CORRECTED, "decision.correct_variance") for kind in (RGPE, CGP, ScaMLGP)),
        (CGP, {"lengthscales": (0.1, 0.0)}, "lengthscales"),
        (CGP, {"noise_variances": ()}, "noise_variances"),
        (QuantileTraining, {"hidden": ()}, "hidden"),
        (QuantileTraining, {"learning_rates": (0.1, NAN)}, "learning_rates"),
        (EGP, {"prior_tasks": 0.0}, "prior_tasks"),
        (ScaMLGP, {"iterations": 0}, "iterations"),
        (HAdd, {"amplitudes": ()}, "amplitudes"),
        (HAdd, {"refit_iterations": 3}, "refit_iterations"),
        (TaskGP, {"points": 0}, "points"),
        (TaskGP, {"architecture": Architecture((8,))}, "features"),
    ],
)
def test_a_setting_that_cannot_be_is_named(kind: Any, settings: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        kind(**settings)
