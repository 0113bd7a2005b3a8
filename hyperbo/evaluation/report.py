"""The report of an evaluation: one HTML page that needs nothing else, made from run records and metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hyperbo.errors import NotAvailableError
from hyperbo.evaluation.findings import count, findings, headline, number
from hyperbo.evaluation.metadata import EvaluationMetadata, validate_metadata
from hyperbo.evaluation.profiles import CRITERIA, performance_profile, saturated_tasks
from hyperbo.evaluation.ranks import rank_methods
from hyperbo.evaluation.regret import regret_curves, simple_regrets, task_regret_curves
from hyperbo.evaluation.run_array import RunArray, comparable, missing_arms, seed_phrase
from hyperbo.evaluation.speedup import speedups
from hyperbo.evaluation.spread import LOWER_PERCENTILE, UPPER_PERCENTILE
from hyperbo.evaluation.tables import (
    best_error_table,
    best_objectives,
    budgets_within,
    regret_at_budgets,
)
from hyperbo.files import write_atomically

try:
    import jinja2

    from hyperbo.evaluation import figures
except ModuleNotFoundError as error:
    raise NotAvailableError(f"a report needs {error.name}; pip install 'hyperbo[report]'") from error


def write_report(records: pd.DataFrame, metadata: Mapping[str, Any], path: Path) -> Path:
    """Write the report of an evaluation, whole or not at all.

    Every number, figure and sentence is computed from the records; every identity is the metadata's.
    Aggregates are over the tasks that all compared methods completed (`comparable`), and the page names the
    arms that are missing. The findings are about the first of the metadata's methods that completed a task.

    Args:
      records: run records.
      metadata: metadata of the evaluation that made them.
      path: the HTML file.

    Returns:
      The path.

    Raises:
      InvalidInputError: records or metadata are invalid or not of one evaluation, or no task was completed by
        all methods.
    """
    page = render_report(records, validate_metadata(metadata))
    write_atomically(path, page.encode())
    return path


def render_report(records: pd.DataFrame, metadata: EvaluationMetadata) -> str:
    """The page that `write_report` writes; the same records and metadata give the same page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, count=count, json=_json)
    regrets = simple_regrets(records, metadata)
    return environment.get_template("report.html").render(
        metadata=metadata,
        record_count=len(records),
        percentiles=(LOWER_PERCENTILE, UPPER_PERCENTILE),
        cost=list(_cost(metadata)),
        **_coverage(regrets),
        **_aggregates(regrets),
        **_per_task(records, metadata, regrets),
    )


def _coverage(regrets: RunArray) -> dict[str, Any]:
    compared = comparable(regrets)
    return {
        "compared": compared,
        "missing": [(arm, seed_phrase(arm.seeds)) for arm in missing_arms(regrets)],
        "left_out_methods": [name for name in regrets.methods if name not in compared.methods],
        "left_out_tasks": [name for name in regrets.tasks if name not in compared.tasks],
        "saturated": saturated_tasks(compared, compared.iterations),
    }


def _aggregates(regrets: RunArray) -> dict[str, Any]:
    compared = comparable(regrets)
    styles = figures.line_styles(regrets.methods)
    methods = compared.methods
    subject = methods[0]
    budgets = budgets_within(compared.iterations)
    table = regret_at_budgets(compared, budgets)
    lowest = table.groupby("iteration")["median"].transform("min") == table["median"]
    ranks = rank_methods(compared)
    return _speedups(compared) | {
        "headline": headline(compared),
        "subject": subject,
        "findings": findings(compared, subject),
        "budgets": budgets,
        "regret_rows": _rows_by(table.assign(lowest=lowest), "method"),
        "final_ranks": [
            (method, float(ranks.mean[row, -1]), float(ranks.std[row, -1]))
            for row, method in enumerate(methods)
        ],
        "linear_below": figures.LINEAR_BELOW,
        "regret_figure": figures.regret_figure("regret", regret_curves(compared), methods, styles),
        "rank_figure": figures.rank_figure("ranks", ranks, methods, styles),
        "profile_figures": [
            (
                criterion,
                figures.profile_figure(
                    f"profile-{i}", performance_profile(compared, criterion), methods, styles, criterion
                ),
            )
            for i, criterion in enumerate(CRITERIA)
        ],
    }


def _per_task(records: pd.DataFrame, metadata: EvaluationMetadata, regrets: RunArray) -> dict[str, Any]:
    styles = figures.line_styles(regrets.methods)
    curves = task_regret_curves(regrets)
    complete = regrets.complete
    limit = float(np.nanmax(curves.upper))
    datasets = records.groupby("task")["task_dataset"].first()
    tasks = []
    for column, task in enumerate(regrets.tasks):
        band = type(curves)(curves.median[:, column], curves.lower[:, column], curves.upper[:, column])
        drawn = complete[:, column].any()
        tasks.append(
            {
                "name": task,
                "dataset": datasets.get(task, "no record"),
                "missing": [m for row, m in enumerate(regrets.methods) if not complete[row, column]],
                "figure": figures.regret_figure(
                    f"task-{column}", band, regrets.methods, styles, limit=limit, small=True
                )
                if drawn
                else "",
            }
        )
    errors = best_error_table(best_objectives(records, metadata))
    return {"styles": styles, "tasks": tasks, "error_rows": _rows_by(errors, "task")}


def _rows_by(table: pd.DataFrame, key: str) -> list[tuple[str, list[Any]]]:
    return [(str(label), list(rows.itertuples())) for label, rows in table.groupby(key, sort=False)]


def _speedups(compared: RunArray) -> dict[str, Any]:
    """For the first method and the other pre-trained ones, named H-..., against all the rest."""
    subjects = [name for name in compared.methods if name == compared.methods[0] or name.startswith("H-")]
    alternatives = [name for name in compared.methods if name not in subjects]
    rows = []
    for method in subjects if alternatives else ():
        by_task = speedups(compared, method, alternatives)
        ratio = float(np.median([task.ratio for task in by_task]))
        rows.append((method, ratio, sum(task.ratio > 0 for task in by_task), by_task))
    return {"speedups": rows, "alternatives": alternatives}


def _json(value: Any) -> str:
    # Jinja's own filter would write < as an escape sequence, which a reader of text sees.
    return json.dumps(value, indent=2, ensure_ascii=False)


def _cost(metadata: EvaluationMetadata) -> Iterator[tuple[str, str, float]]:
    for step, seconds in metadata["seconds"].items():
        if isinstance(seconds, Mapping):
            yield from ((step, method, float(value)) for method, value in seconds.items())
        else:
            yield step, "", float(seconds)
