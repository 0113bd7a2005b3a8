"""What a report says around its results: how to read it, which runs are missing, what the evaluation cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from hyperbo.data.warping import WARPINGS
from hyperbo.evaluation.records.metadata import EvaluationMetadata, method_of, minimised
from hyperbo.evaluation.records.run_array import RunArray, missing_arms, seed_phrase

Values = dict[str, Any]

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
    "H-Mix": "A Bayesian mixture of H-NLL's Gaussian process and many uninformed ones, weighed by what the "
    "run observes.",
    "Mix": "The same mixture without a prior: uninformed Gaussian processes only, none of them refitted.",
    "Best-average": "Candidates in the order of the training tasks' average value there; no model.",
    "Portfolio": "The candidate that lowers the training tasks' sum of regrets most comes next; no model.",
    "Default-Rand": "A default configuration, then candidates drawn at random.",
    "Box-Rand": "Random candidates of the smallest box that holds the training tasks' best inputs (Perrone "
    "et al., 2019).",
    "Table": "Mean and covariance of the candidates over the training tasks as a prior, without a kernel.",
    "RGPE": "An ensemble of the training tasks' Gaussian processes, weighed by how well they rank what the "
    "run observes (Feurer et al., 2022).",
    "CTS": "Copula Thompson sampling (Salinas et al., 2020): draws from the distribution of the training "
    "tasks' ranks at each input.",
    "CGP": "CTS's distribution with a Gaussian process on what it leaves unexplained (Salinas et al., 2020).",
    "EGP": "A Gaussian process whose mean and covariance on the matched inputs are estimated by "
    "expectation-maximisation (Lin et al., 2026).",
    "ScaML-GP": "A weighed sum of the training tasks' posteriors and one process more (Tighineanu et al., "
    "2024); the weights are learned in the run.",
    "H-Add": "H-NLL's Gaussian process and a free one added to it, as far as the run's observations ask for "
    "it.",
}

UNDESCRIBED = "A method of your own, whose class has no docstring."


def reading_section(records: pd.DataFrame, metadata: EvaluationMetadata) -> Values:
    """How y was made (`warping_of`), whether regret is normalised, and name, line and labels of each method.

    A method of one's own is told in its own words, if it has any.
    """
    own = metadata.get("summaries", {})
    labels: dict[str, list[str]] = {}
    for label in metadata["methods"]:
        labels.setdefault(method_of(metadata, label), []).append(label)
    return {
        "warping": warping_of(records, metadata),
        "normalised": metadata.get("regret") == "normalised",
        "method_lines": [
            (name, METHOD_LINES.get(name) or own.get(name) or UNDESCRIBED, of_name)
            for name, of_name in labels.items()
        ],
        "named_otherwise": any(of_name != [name] for name, of_name in labels.items()),
    }


def warping_of(records: pd.DataFrame, metadata: EvaluationMetadata) -> str | None:
    """The name of the output warping that turns the raw objective of all records into y; None if none fits.

    The metadata do not name the warping. The records hold both the raw objective and y, so each warping of
    `hyperbo.data.warping` with the direction of the metadata is tried.
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


def missing_section(regrets: RunArray, metadata: EvaluationMetadata) -> Values:
    """Which runs are missing and why, and how many tasks and runs each method has finished."""
    missing = []
    for arm in missing_arms(regrets):
        reasons = [
            (failure["seed"], failure["reason"])
            for failure in metadata.get("failures", [])
            if (failure["method"], failure["task"]) == (arm.method, arm.task) and failure["seed"] in arm.seeds
        ]
        missing.append((arm, seed_phrase(arm.seeds), reasons))
    finished = np.asarray(np.isfinite(regrets.values).all(axis=3))
    return {
        "missing": missing,
        "coverage": [
            (method, int(of_method.all(axis=1).sum()), int(of_method.sum()))
            for method, of_method in zip(regrets.methods, finished, strict=True)
        ],
    }


def cost_section(metadata: EvaluationMetadata) -> Values:
    """Seconds by method and step, totals over methods, and seconds of steps that belong to no method."""
    by_method = {k: v for k, v in metadata["seconds"].items() if isinstance(v, Mapping)}
    methods = dict.fromkeys(name for seconds in by_method.values() for name in seconds)
    totals = {
        step: seconds for step, seconds in metadata.get("total_seconds", {}).items() if step in by_method
    }
    return {
        "cost_totals": [float(totals.get(step, np.nan)) for step in by_method] if totals else [],
        # Sums of the same numbers in another order differ by rounding.
        "cost_shared": any(
            sum(by_method[step].values()) > seconds * (1 + 1e-9) for step, seconds in totals.items()
        ),
        "cost_steps": list(by_method),
        "cost_rows": [
            (name, [float(seconds.get(name, np.nan)) for seconds in by_method.values()]) for name in methods
        ],
        "other_costs": [
            (step, float(seconds))
            for step, seconds in metadata["seconds"].items()
            if not isinstance(seconds, Mapping)
        ],
    }
