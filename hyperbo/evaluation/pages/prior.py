"""The page of a prior: figures of its mean, functions and correlations, in one self-contained HTML file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hyperbo.data.warping import output_warping
from hyperbo.evaluation.figures import prior as figures
from hyperbo.evaluation.figures.prior import raw_text
from hyperbo.evaluation.figures.prior_matrix import matrix_figure
from hyperbo.evaluation.figures.training import training_figure
from hyperbo.evaluation.measures.findings import number
from hyperbo.evaluation.pages.report import page_environment
from hyperbo.evaluation.prior.cuts import FUNCTIONS
from hyperbo.evaluation.prior.view import PROMISING_SHARE, RANGE, PriorView, parameters_of_columns, view_prior
from hyperbo.gp.kernels import CORRELATIONS
from hyperbo.priors.file import Prior, PriorDescription
from hyperbo.priors.history import PriorDecision
from hyperbo.storage.atomic import write_atomically

_WARPINGS = {
    "negative_log": "y = \N{MINUS SIGN}ln(r + 10⁻¹⁰) of the raw objective r, which is to be minimised",
    "negative": "y = \N{MINUS SIGN}r of the raw objective r, which is to be minimised",
    "identity": "the raw objective itself, which is to be maximised",
}


def write_prior_page(prior: Prior, name: str, decisions: Sequence[PriorDecision], path: Path) -> Path:
    """Write the page of a prior, atomically.

    Args:
      prior: the prior.
      name: its name for `hyperbo.load_prior`.
      decisions: the decisions on it, oldest first.
      path: the HTML file; a missing folder is created.

    Raises:
      NumericalError: the mean or the variance of the prior is not finite.
    """
    write_atomically(path, render_prior_page(prior, name, decisions).encode())
    return path


def render_prior_page(prior: Prior, name: str, decisions: Sequence[PriorDecision]) -> str:
    """The text of the page that `write_prior_page` writes; the same input gives the same text."""
    view, description = view_prior(prior), prior.description
    columns, best = parameters_of_columns(description.search_space), view.promising.best
    matrix, matrix_width = "", 0
    if view.planes is not None:
        matrix, matrix_width = matrix_figure("planes", view.planes, best, columns)
    numbered = list(enumerate(columns))
    page = page_environment().get_template("prior_page.html")
    return page.render(
        name=name,
        prior=prior,
        description=description,
        view=view,
        values=_values(description),
        objective=_objective(description, view.promising.best_mean),
        direction=output_warping(description.output_warping).direction,
        share=PROMISING_SHARE,
        range=RANGE,
        functions=FUNCTIONS,
        promising_figures=[
            figures.promising_figure(f"promising-{i}", view.promising, each, i) for i, each in numbered
        ],
        promising_rows=list(_promising_rows(prior, view)),
        proposal_rows=list(_proposal_rows(prior, view)),
        matrix=matrix,
        matrix_width=matrix_width,
        slice_figures=[
            figures.slice_figure(f"slice-{i}", view.slices, best, each, i) for i, each in numbered
        ],
        reach_figures=[
            figures.reach_figure(f"reach-{i}", view.slices, best, each, i) for i, each in numbered
        ],
        reach_rows=_reach_rows(prior, view),
        training_figure=training_figure("training", description) if len(description.losses) > 1 else "",
        feature_names=[f"feature {i + 1}" for i in range(len(view.lengthscales))]
        if description.architecture.hidden
        else description.search_space.columns,
        is_stationary=description.architecture.kernel in CORRELATIONS,
        decisions=[(each, _facts(each.evidence)) for each in decisions],
    )


def _values(description: PriorDescription) -> str:
    """A sentence about the scale of the prior's values."""
    warped = _WARPINGS[description.output_warping]
    if description.is_mapped:
        return (
            "Values are those it was trained on, mapped for each task to \N{MINUS SIGN}2 to 2: 2 is the "
            "best that a task has, \N{MINUS SIGN}2 an infeasible trial, such as one that diverged. "
            f"Before, each task's values were {warped}. What the scale means in raw units differs from "
            "task to task, so raw units are not shown."
        )
    return f"Values are {warped}; larger is better."


def _objective(description: PriorDescription, mean: float) -> str:
    """A mean as a raw objective; empty if every task has its own scale."""
    if description.is_mapped:
        return ""
    # A monotone map maps medians to medians; the median of a normal distribution is its mean.
    return number(float(output_warping(description.output_warping).unwarp(np.array([mean]))[0]))


def _promising_rows(prior: Prior, view: PriorView) -> Iterator[tuple[str, str, str, str, str]]:
    promising = view.promising
    for i, each in enumerate(parameters_of_columns(prior.description.search_space)):
        low, high = (raw_text(each, at) for at in promising.ranges[i])
        whole = f"{raw_text(each, 0.0)} to {raw_text(each, 1.0)}"
        yield each.name, raw_text(each, promising.best[i]), f"{low} to {high}", whole, each.scaling


def _proposal_rows(prior: Prior, view: PriorView) -> Iterator[tuple[list[str], str, str, str]]:
    promising, columns = view.promising, parameters_of_columns(prior.description.search_space)
    for point, mean, deviation in zip(
        promising.proposals, promising.proposal_means, promising.proposal_deviations, strict=True
    ):
        raw = [raw_text(each, at) for each, at in zip(columns, point, strict=True)]
        yield raw, number(mean), number(deviation, 2), _objective(prior.description, mean)


def _reach_rows(prior: Prior, view: PriorView) -> Iterator[tuple[str, str, list[str]]]:
    """For each parameter: its name, the best value, and the values on both sides with correlation 1/2."""
    for i, each in enumerate(parameters_of_columns(prior.description.search_space)):
        best = view.promising.best[i]
        ends = [
            "further than the range"
            if np.isnan(at)
            else f"{raw_text(each, at)} ({100 * abs(at - best):.0f}\N{NO-BREAK SPACE}% of the range)"
            for at in view.slices.half[i]
        ]
        yield each.name, raw_text(each, best), ends


def _facts(evidence: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Evidence as pairs of name and text; nested values are written as JSON."""
    return [
        (name.replace("_", " "), each if isinstance(each, str) else json.dumps(each, ensure_ascii=False))
        for name, each in evidence.items()
    ]
