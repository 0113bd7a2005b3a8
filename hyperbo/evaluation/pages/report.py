"""The report of an evaluation: one self-contained HTML page, made from run records and metadata."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup, escape

from hyperbo.evaluation.figures.style import line_styles
from hyperbo.evaluation.measures.findings import number
from hyperbo.evaluation.measures.regret import regrets_of_priors, simple_regrets
from hyperbo.evaluation.measures.spread import BOOTSTRAP_SAMPLES, LOWER_PERCENTILE, UPPER_PERCENTILE
from hyperbo.evaluation.measures.verdict import speed
from hyperbo.evaluation.pages import context, sections
from hyperbo.evaluation.pages.opening import opening_section
from hyperbo.evaluation.pages.words import GLOSSARY, anchor, defined
from hyperbo.evaluation.records.losses import check_losses_belong, validate_losses
from hyperbo.evaluation.records.metadata import EvaluationMetadata, run_unit, validate_metadata
from hyperbo.evaluation.records.run_array import RunArray, any_comparable, comparable
from hyperbo.storage.atomic import write_atomically
from hyperbo.storage.printable import count

_HYPHENATED = re.compile(r"\S*-\S*")


def write_report(
    records: pd.DataFrame, metadata: Mapping[str, Any], path: Path, *, losses: pd.DataFrame | None = None
) -> Path:
    """Write the report of an evaluation, atomically.

    All numbers, figures and sentences are computed from the records. Aggregates are over the tasks that all
    compared methods completed (`comparable`), and the page names the missing runs. The findings are about the
    first method of the metadata that completed a task. Calibration is shown if the records hold predictions,
    losses and correlations if losses are given. If no task was completed by all compared methods, the page
    only lists the completed runs, and the missing ones with their reasons.

    Args:
      records: run records.
      metadata: their metadata.
      path: the HTML file.
      losses: losses of the priors.

    Raises:
      InvalidInputError: records, metadata or losses are invalid or belong to different evaluations.
    """
    page = render_report(records, validate_metadata(metadata), losses)
    write_atomically(path, page.encode())
    return path


def render_report(
    records: pd.DataFrame, metadata: EvaluationMetadata, losses: pd.DataFrame | None = None
) -> str:
    """The text of the page that `write_report` writes; the same input gives the same text."""
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
        **context.missing_section(regrets, metadata),
        **context.cost_section(metadata),
        **aggregates,
    )


def page_environment() -> jinja2.Environment:
    """The environment of all page templates, with filters for numbers, counts, JSON and names."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=number,
        count=count,
        json=_json,
        unbroken=_unbroken,
        speed=speed,
        defined=defined,
        anchor=anchor,
    )
    environment.tests.update(nan=math.isnan, infinite=math.isinf)
    return environment


def _aggregates(
    records: pd.DataFrame, metadata: EvaluationMetadata, losses: pd.DataFrame | None, regrets: RunArray
) -> sections.Values:
    """The values of all sections with aggregates."""
    compared, by_prior = comparable(regrets), regrets_of_priors(regrets, metadata)
    styles = line_styles(regrets.methods)
    coverage = sections.coverage_section(regrets, metadata)
    return {
        "percentiles": (LOWER_PERCENTILE, UPPER_PERCENTILE),
        "resamples": BOOTSTRAP_SAMPLES,
        "styles": styles,
        **coverage,
        **context.reading_section(records, metadata),
        **opening_section(regrets, by_prior, records, metadata, styles),
        "glossary": GLOSSARY,
        **sections.regret_section(compared, styles),
        **sections.comparison_section(by_prior, coverage["subject"]),
        **sections.solved_section(compared, styles),
        **sections.speedup_section(compared),
        **sections.task_section(records, metadata, regrets, styles),
        **sections.repeats_section(records, metadata),
        **sections.calibration_section(records, metadata, styles),
        **sections.loss_section(losses, records, metadata, by_prior, styles),
    }


def _unbroken(text: str) -> Markup:
    """Text in which browsers do not break words at a hyphen, such as H-NLL."""
    return Markup(_HYPHENATED.sub(r'<span class="word">\g<0></span>', str(escape(text))))


def _json(value: Any) -> str:
    # Jinja's own filter would write < as an escape sequence.
    return json.dumps(value, indent=2, ensure_ascii=False)
