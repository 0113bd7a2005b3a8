"""The results of a report, section by section: the values that the templates name, computed from records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64

from hyperbo.evaluation.figures import curves as figures
from hyperbo.evaluation.figures.diagnostics import calibration_figure, correlation_figure
from hyperbo.evaluation.figures.style import LINEAR_BELOW, Styles
from hyperbo.evaluation.measures.aggregates import (
    CRITERIA,
    budget_to_target,
    performance_profile,
    rank_methods,
    saturated_tasks,
    speedups,
    task_ranks,
)
from hyperbo.evaluation.measures.calibration import (
    LEVELS,
    QUANTILES,
    measure_calibration,
    standard_normal_quantiles,
)
from hyperbo.evaluation.measures.comparisons import paired_comparison
from hyperbo.evaluation.measures.correlations import (
    correlate_losses,
    loss_array,
    losses_of_priors,
    quantity_name,
)
from hyperbo.evaluation.measures.findings import (
    budgets_of_findings,
    findings_about,
    headline,
    simplest_ahead,
)
from hyperbo.evaluation.measures.regret import (
    mean_over_tasks,
    regret_curves,
    regrets_of_priors,
    task_regret_curves,
)
from hyperbo.evaluation.measures.repeats import STILL_PICKS, STILL_SHARE, measure_repeats
from hyperbo.evaluation.measures.spread import Band
from hyperbo.evaluation.measures.tables import (
    best_objective_table,
    best_objectives,
    budgets_within,
    mean_std_table,
    regret_at_budgets,
    rows_by,
)
from hyperbo.evaluation.pages.context import Values
from hyperbo.evaluation.records.losses import KINDS
from hyperbo.evaluation.records.metadata import EvaluationMetadata, minimised, run_unit
from hyperbo.evaluation.records.run_array import RunArray, comparable


def coverage_section(regrets: RunArray, metadata: EvaluationMetadata) -> Values:
    """Which methods and tasks are compared, and the findings about the first of these methods."""
    compared = comparable(regrets)
    subject = compared.methods[0]
    by_prior = regrets_of_priors(regrets, metadata)
    return {
        "compared": compared,
        "priors": len(by_prior.seeds),
        "left_out_methods": [name for name in regrets.methods if name not in compared.methods],
        "left_out_tasks": [name for name in regrets.tasks if name not in compared.tasks],
        "saturated": saturated_tasks(compared, compared.iterations),
        "flat": metadata.get("flat_tasks", []),
        "subject": subject,
        "simplest": simplest_ahead(regrets, metadata),
        "findings": [
            (headline(regrets, t, run_unit(metadata)), findings_about(by_prior, subject, t))
            for t in budgets_of_findings(compared.iterations)
        ],
    }


def regret_section(compared: RunArray, styles: Styles) -> Values:
    """Regret curves and slices of them, ranks, regret at budgets."""
    methods = compared.methods
    budgets = budgets_within(compared.iterations)
    table = regret_at_budgets(compared, budgets)
    lowest = table.groupby("iteration")["median"].transform("min") == table["median"]
    lowest_mean = table.groupby("iteration")["mean"].transform("min") == table["mean"]
    ranks = rank_methods(compared)
    per_seed = mean_over_tasks(compared)
    # One seed has no spread to show.
    sliced = sorted({1, compared.iterations}) if len(compared.seeds) > 1 else []
    return {
        "budgets": budgets,
        "regret_rows": rows_by(table.assign(lowest=lowest, lowest_mean=lowest_mean), "method"),
        "final_ranks": [
            (float(ranks.mean[row, -1]), float(ranks.std[row, -1])) for row in range(len(methods))
        ],
        "linear_below": LINEAR_BELOW,
        "regret_figure": figures.regret_figure("regret", regret_curves(compared), methods, styles),
        "rank_figure": figures.rank_figure("ranks", ranks, methods, styles),
        "slice_figures": [
            (t, figures.slice_figure(f"slice-{t}", per_seed[:, :, t - 1], methods, styles, t)) for t in sliced
        ],
    }


def comparison_section(regrets: RunArray, subject: str) -> Values:
    """Paired comparisons of one method with every other, at the budgets of the findings."""
    at = budgets_of_findings(regrets.iterations)
    return {
        "comparisons": [
            (other, [paired_comparison(regrets, subject, other, iteration) for iteration in at])
            for other in regrets.methods
            if other != subject
        ]
    }


def solved_section(compared: RunArray, styles: Styles) -> Values:
    """Performance profiles, and the iterations that each method needs to reach a criterion."""
    profiles = [(criterion, performance_profile(compared, criterion)) for criterion in CRITERIA]
    return {
        "profile_figures": [
            (criterion, figures.profile_figure(f"profile-{i}", profile, compared.methods, styles, criterion))
            for i, (criterion, profile) in enumerate(profiles)
        ],
        "criteria": CRITERIA,
        "target_rows": rows_by(budget_to_target(compared, CRITERIA), "method"),
    }


def speedup_section(compared: RunArray) -> Values:
    """Speed-ups of the first method and of the methods named H-... over all other methods."""
    subjects = [name for name in compared.methods if name == compared.methods[0] or name.startswith("H-")]
    alternatives = [name for name in compared.methods if name not in subjects]
    rows = []
    for method in subjects if alternatives else ():
        by_task = speedups(compared, method, alternatives)
        ratio = float(np.median([task.ratio for task in by_task]))
        rows.append((method, ratio, sum(task.ratio > 0 for task in by_task), by_task))
    return {"speedups": rows, "alternatives": alternatives}


def task_section(
    records: pd.DataFrame, metadata: EvaluationMetadata, regrets: RunArray, styles: Styles
) -> Values:
    """The best objective on every task, and regret, rank and figure of each task."""
    curves, complete = task_regret_curves(regrets), regrets.complete
    ranks = task_ranks(regrets, regrets.iterations)
    limit = float(np.nanmax(curves.upper))
    budgets = sorted({1, *budgets_of_findings(regrets.iterations)})
    datasets = records.groupby("task")["task_dataset"].first()
    best = best_objective_table(best_objectives(records, metadata), minimise=minimised(metadata))
    best_rows = rows_by(best, "task")
    tasks = []
    for column, (task, cells) in enumerate(best_rows):
        band = Band(curves.median[:, column], curves.lower[:, column], curves.upper[:, column])
        name = f"task-{column}"
        tasks.append(
            {
                "name": task,
                "anchor": f"of-{name}",
                "dataset": datasets.get(task, "no record"),
                "missing": [m for row, m in enumerate(regrets.methods) if not complete[row, column]],
                "rows": [
                    (cell, [float(band.median[row, t - 1]) for t in budgets], float(ranks[row, column]))
                    for row, cell in enumerate(cells)
                ],
                "figure": figures.regret_figure(name, band, regrets.methods, styles, limit=limit, small=True)
                if complete[:, column].any()
                else "",
            }
        )
    objective = metadata.get("objective", {"name": "the raw objective"})["name"]
    return {
        "tasks": tasks,
        "best_rows": best_rows,
        "objective": objective,
        "minimised": minimised(metadata),
        "task_budgets": budgets,
    }


def repeats_section(records: pd.DataFrame, metadata: EvaluationMetadata) -> Values:
    """Repeated picks of every method; no method where no run repeats any."""
    found = [measure_repeats(records, method) for method in metadata["methods"]]
    return {
        "repeats": found if any(each.share > 0 for each in found) else [],
        "still_share": STILL_SHARE,
        "still_picks": STILL_PICKS,
    }


def calibration_section(records: pd.DataFrame, metadata: EvaluationMetadata, styles: Styles) -> Values:
    """Calibration of every method that has predictions."""
    recorded = set(records["method"])
    runs = metadata.get("runs_per_prior", 1)
    found = [
        measure_calibration(records, method, runs) for method in metadata["methods"] if method in recorded
    ]
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
    """Losses of the priors by task and method, and their correlations with the regrets by prior."""
    if losses is None:
        return {"loss_methods": [], "loss_tables": [], "correlations": []}
    losses = losses_of_priors(losses, metadata)
    datasets = dict(zip(records["task"], records["task_dataset"], strict=True))
    compared = comparable(regrets)
    found = correlate_losses(losses, compared, compared.iterations, datasets)
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
    """First the means over tasks, then each task."""
    overall = mean_std_table(values.mean(axis=1, keepdims=True), regrets.methods, ["mean over tasks"])
    by_task = mean_std_table(values, regrets.methods, regrets.tasks)
    return rows_by(overall, "task") + rows_by(by_task, "task")
