"""What a reader must know to read a report: what regret, y, the methods and the losses are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from hyperbo.evaluation.metadata import EvaluationMetadata, minimised
from hyperbo.warping import WARPINGS

# The methods of the project in one line each, by the names of `hyperbo.methods.METHODS`.
METHOD_LINES: Mapping[str, str] = {
    "H-NLL": "A Gaussian process whose prior was pre-trained on the training tasks by NLL.",
    "H-EKL": "H-NLL's Gaussian process, pre-trained by EKL on matched inputs of the training tasks.",
    "H-Sum": "H-NLL's Gaussian process, pre-trained by the weighted sum EKL + 0.1 NLL.",
    "FSBO": "Few-shot Bayesian optimization (Wistuba and Grabocka, 2021): H-NLL with a zero mean.",
    "ABLR": "Adaptive Bayesian linear regression (Perrone et al., 2018): H-NLL with a zero mean and a linear "
    "kernel on the learned features.",
    "MIMO": "An ensemble of networks within one, trained on all tasks and again on what the run observes.",
    "RFGP": "A Gaussian process of all tasks approximated by random features, trained again on what the run "
    "observes.",
    "MAF": "An acquisition function learned on the training tasks by reinforcement learning (Volpp et al., "
    "2020); its Gaussian process was fitted to the test task beforehand, which no other method may do.",
    "Rand": "Candidates drawn uniformly at random.",
    "STBO": "Single-task Bayesian optimization: H-NLL's structure, fitted to what the run observes alone.",
    "STBOH": "Single-task Bayesian optimization by GP-UCB, with hand-tuned priors on the parameters.",
}


def reading_section(records: pd.DataFrame, metadata: EvaluationMetadata) -> dict[str, Any]:
    """What the page says of y, and of each method.

    Args:
      records: run records.
      metadata: their metadata.

    Returns:
      `warping`: the name of the warping that made y, None where it is none of ours; `normalised`: whether
      regret is; `method_lines`: name, line and labels of each method, the line empty where it is not ours.
    """
    labels: dict[str, list[str]] = {}
    for label, configuration in metadata["methods"].items():
        labels.setdefault(str(configuration.get("method", label)), []).append(label)
    return {
        "warping": warping_of(records, metadata),
        "normalised": metadata.get("regret") == "normalised",
        "method_lines": [(name, METHOD_LINES.get(name, ""), of_name) for name, of_name in labels.items()],
    }


def warping_of(records: pd.DataFrame, metadata: EvaluationMetadata) -> str | None:
    """The warping of `hyperbo.warping` that makes the y of every record from its raw objective.

    Metadata do not name it, but the records hold both sides of it, so that it can be told from them.

    Args:
      records: run records.
      metadata: say whether the raw objective is minimised.

    Returns:
      Its name; None where no warping of the objective's direction does.
    """
    direction = "minimize" if minimised(metadata) else "maximize"
    y, objective = (records[column].to_numpy(np.float64) for column in ("y", "objective"))
    for warping in WARPINGS.values():
        if warping.direction == direction:
            with np.errstate(invalid="ignore", divide="ignore"):
                made = warping.warp(objective)
            if np.allclose(made, y, rtol=1e-9, atol=1e-9):
                return warping.name
    return None
