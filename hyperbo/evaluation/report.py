"""The report of an evaluation: one HTML page that needs nothing else, made from run records and metadata."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from hyperbo.errors import NotAvailableError
from hyperbo.evaluation.findings import count, number
from hyperbo.evaluation.losses import check_losses_belong, validate_losses
from hyperbo.evaluation.metadata import EvaluationMetadata, run_unit, validate_metadata
from hyperbo.evaluation.regret import regrets_of_priors, simple_regrets
from hyperbo.evaluation.run_array import RunArray, any_comparable, comparable
from hyperbo.evaluation.spread import BOOTSTRAP_SAMPLES, LOWER_PERCENTILE, UPPER_PERCENTILE
from hyperbo.files import write_atomically

try:
    import jinja2
    from markupsafe import Markup, escape

    from hyperbo.evaluation import report_diagnostics, report_reading
    from hyperbo.evaluation import report_sections as sections
    from hyperbo.evaluation.figure_style import line_styles
except ModuleNotFoundError as error:
    raise NotAvailableError(f"a report needs {error.name}; pip install 'hyperbo[report]'") from error

_HYPHENATED = re.compile(r"\S*-\S*")


def write_report(
    records: pd.DataFrame, metadata: Mapping[str, Any], path: Path, *, losses: pd.DataFrame | None = None
) -> Path:
    """Write the report of an evaluation, whole or not at all.

    Every number, figure and sentence is computed from the records; every identity is the metadata's.
    Aggregates are over the tasks that all compared methods completed (`comparable`), and the page names the
    arms that are missing. The findings are about the first of the metadata's methods that completed a task.
    Calibration is shown where the records hold predictions, losses and correlations where losses are given.
    Where no task was completed by all compared methods, the page says what is there, what is missing and why,
    and nothing else.

    Args:
      records: run records.
      metadata: metadata of the evaluation that made them.
      path: the HTML file.
      losses: losses of the priors (`hyperbo.evaluation.losses`).

    Returns:
      The path.

    Raises:
      InvalidInputError: records, metadata or losses are invalid or not of one evaluation.
    """
    page = render_report(records, validate_metadata(metadata), losses)
    write_atomically(path, page.encode())
    return path


def render_report(
    records: pd.DataFrame, metadata: EvaluationMetadata, losses: pd.DataFrame | None = None
) -> str:
    """The page that `write_report` writes; the same input gives the same page."""
    environment = page_environment()
    regrets = simple_regrets(records, metadata)
    if losses is not None:
        validate_losses(losses)
        check_losses_belong(losses, metadata)
    aggregates = _aggregates(records, metadata, losses, regrets) if any_comparable(regrets) else {}
    return environment.get_template("report.html" if aggregates else "report_incomplete.html").render(
        metadata=metadata,
        run_unit=run_unit(metadata),
        record_count=len(records),
        **sections.missing_section(regrets, metadata),
        **sections.cost_section(metadata),
        **aggregates,
    )


def page_environment() -> jinja2.Environment:
    """The templates of pages, with what all of them write numbers and names by."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, count=count, json=_json, unbroken=_unbroken)
    environment.tests.update(nan=math.isnan, infinite=math.isinf)
    return environment


def _aggregates(
    records: pd.DataFrame, metadata: EvaluationMetadata, losses: pd.DataFrame | None, regrets: RunArray
) -> sections.Values:
    """What there is to say of methods that can be compared."""
    compared, by_prior = comparable(regrets), regrets_of_priors(regrets, metadata)
    styles = line_styles(regrets.methods)
    coverage = sections.coverage_section(regrets, metadata)
    return {
        "percentiles": (LOWER_PERCENTILE, UPPER_PERCENTILE),
        "resamples": BOOTSTRAP_SAMPLES,
        "styles": styles,
        **coverage,
        **report_reading.reading_section(records, metadata),
        **sections.study_section(records, metadata),
        **sections.regret_section(compared, styles),
        **sections.comparison_section(by_prior, coverage["subject"]),
        **sections.solved_section(compared, styles),
        **sections.speedup_section(compared),
        **sections.task_section(records, metadata, regrets, styles),
        **report_diagnostics.calibration_section(records, metadata, styles),
        **report_diagnostics.loss_section(losses, records, metadata, by_prior, styles),
    }


def _unbroken(text: str) -> Markup:
    """Text of which no word is broken at a hyphen, as a browser would break H-NLL."""
    return Markup(_HYPHENATED.sub(r'<span class="word">\g<0></span>', str(escape(text))))


def _json(value: Any) -> str:
    # Jinja's own filter would write < as an escape sequence, which a reader of text sees.
    return json.dumps(value, indent=2, ensure_ascii=False)
