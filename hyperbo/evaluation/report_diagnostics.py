"""What the sections of a report on calibration and losses show: what lies behind regret."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64

from hyperbo.evaluation.calibration import LEVELS, QUANTILES, calibration, standard_normal_quantiles
from hyperbo.evaluation.diagnostic_figures import calibration_figure, correlation_figure
from hyperbo.evaluation.figure_style import Styles
from hyperbo.evaluation.losses import KINDS, correlations, loss_array, losses_of_priors, quantity_name
from hyperbo.evaluation.metadata import EvaluationMetadata
from hyperbo.evaluation.report_sections import Values
from hyperbo.evaluation.run_array import RunArray, comparable
from hyperbo.evaluation.tables import mean_std_table, rows_by


def calibration_section(records: pd.DataFrame, metadata: EvaluationMetadata, styles: Styles) -> Values:
    """Calibration of every method that predicts."""
    recorded = set(records["method"])
    runs = metadata.get("runs_per_prior", 1)
    found = [calibration(records, method, runs) for method in metadata["methods"] if method in recorded]
    calibrations = [each for each in found if each is not None]
    predicting = {each.method for each in calibrations}
    return {
        "calibrations": calibrations,
        "without_predictions": [method for method in metadata["methods"] if method not in predicting],
        "levels": LEVELS,
        "quantiles": list(zip(QUANTILES, standard_normal_quantiles(QUANTILES), strict=True)),
        "calibration_figure": calibration_figure("calibration", calibrations, styles) if calibrations else "",
    }


def loss_section(
    losses: pd.DataFrame | None,
    records: pd.DataFrame,
    metadata: EvaluationMetadata,
    regrets: RunArray,
    styles: Styles,
) -> Values:
    """Losses of the priors by task and method, and their correlations with regret.

    Args:
      losses: of the evaluation; None where it has none.
      records: its run records.
      metadata: its metadata.
      regrets: its regrets with the prior as the unit, missing ones included.
      styles: how to draw each method.
    """
    if losses is None:
        return {"loss_methods": [], "loss_tables": [], "correlations": []}
    losses = losses_of_priors(losses, metadata)
    datasets = dict(zip(records["task"], records["task_dataset"], strict=True))
    compared = comparable(regrets)
    found = correlations(losses, compared, compared.iterations, datasets)
    methods = [method for method in regrets.methods if (losses["method"] == method).any()]
    of_methods = regrets.select(methods, regrets.tasks)
    return {
        "loss_methods": methods,
        "loss_tables": [
            (quantity_name(kind), _loss_rows(loss_array(losses, kind, of_methods, datasets), of_methods))
            for kind in KINDS
            if (losses["kind"] == kind).any()
        ],
        "correlations": [
            (
                quantity_name(each.x),
                quantity_name(each.y),
                each,
                correlation_figure(f"correlation-{i}", each, compared.methods, styles),
            )
            for i, each in enumerate(found)
        ],
    }


def _loss_rows(
    values: Float64[np.ndarray, "methods tasks seeds"], regrets: RunArray
) -> list[tuple[str, list[Any]]]:
    """The row of means over tasks, then one row for each task."""
    overall = mean_std_table(values.mean(axis=1, keepdims=True), regrets.methods, ["mean over tasks"])
    by_task = mean_std_table(values, regrets.methods, regrets.tasks)
    return rows_by(overall, "task") + rows_by(by_task, "task")
