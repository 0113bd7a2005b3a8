"""What each section of a report shows: the values that its template names, computed from records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from hyperbo.evaluation import figures
from hyperbo.evaluation.budget import budget_to_target
from hyperbo.evaluation.comparisons import paired_comparison
from hyperbo.evaluation.figure_style import LINEAR_BELOW, Styles
from hyperbo.evaluation.findings import budgets_of_findings, findings, headline
from hyperbo.evaluation.metadata import EvaluationMetadata, minimised, run_unit
from hyperbo.evaluation.profiles import CRITERIA, performance_profile, saturated_tasks
from hyperbo.evaluation.ranks import rank_methods, task_ranks
from hyperbo.evaluation.regret import mean_over_tasks, regret_curves, regrets_of_priors, task_regret_curves
from hyperbo.evaluation.run_array import RunArray, comparable, missing_arms, seed_phrase
from hyperbo.evaluation.speedup import speedups
from hyperbo.evaluation.spread import Band
from hyperbo.evaluation.study import study_points
from hyperbo.evaluation.study_figure import study_figure
from hyperbo.evaluation.tables import (
    best_objective_table,
    best_objectives,
    budgets_within,
    regret_at_budgets,
    rows_by,
)

Values = dict[str, Any]


def missing_section(regrets: RunArray, metadata: EvaluationMetadata) -> Values:
    """What is missing and why, and how much of what was asked for is there of each method."""
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


def coverage_section(regrets: RunArray, metadata: EvaluationMetadata) -> Values:
    """What was compared, which tasks tell nothing apart."""
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
        "findings": [
            (headline(regrets, t, run_unit(metadata)), findings(by_prior, subject, t))
            for t in budgets_of_findings(compared.iterations)
        ],
    }


def study_section(records: pd.DataFrame, metadata: EvaluationMetadata) -> Values:
    """Regret by the quantity that a study varies; nothing where the evaluation is none."""
    points = study_points(records, metadata)
    return {"study": points, "study_figure": study_figure("study", points) if points else ""}


def regret_section(compared: RunArray, styles: Styles) -> Values:
    """Regret curves and slices of them, ranks, regret at budgets."""
    methods = compared.methods
    budgets = budgets_within(compared.iterations)
    table = regret_at_budgets(compared, budgets)
    lowest = table.groupby("iteration")["median"].transform("min") == table["median"]
    ranks = rank_methods(compared)
    per_seed = mean_over_tasks(compared)
    return {
        "budgets": budgets,
        "regret_rows": rows_by(table.assign(lowest=lowest), "method"),
        "final_ranks": [
            (float(ranks.mean[row, -1]), float(ranks.std[row, -1])) for row in range(len(methods))
        ],
        "linear_below": LINEAR_BELOW,
        "regret_figure": figures.regret_figure("regret", regret_curves(compared), methods, styles),
        "rank_figure": figures.rank_figure("ranks", ranks, methods, styles),
        "slice_figures": [
            (t, figures.slice_figure(f"slice-{t}", per_seed[:, :, t - 1], methods, styles, t))
            for t in sorted({1, compared.iterations})
        ],
    }


def comparison_section(regrets: RunArray, subject: str) -> Values:
    """The subject against every other method, at the budgets of the findings."""
    at = budgets_of_findings(regrets.iterations)
    return {
        "comparisons": [
            (other, [paired_comparison(regrets, subject, other, iteration) for iteration in at])
            for other in regrets.methods
            if other != subject
        ]
    }


def solved_section(compared: RunArray, styles: Styles) -> Values:
    """Performance profiles, and the budgets that they take to a target."""
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
    """Speed-up of the first method and the other pre-trained ones, named H-..., against all the rest."""
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
    """The best objectives of all tasks, and each task by itself."""
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


def cost_section(metadata: EvaluationMetadata) -> Values:
    """Seconds by method and step, of all methods together, and those of steps that belong to no method."""
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
