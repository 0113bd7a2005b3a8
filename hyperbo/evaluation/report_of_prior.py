"""The page of a prior: pictures of what it believes, in one HTML file that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hyperbo.errors import NotAvailableError
from hyperbo.evaluation.findings import number
from hyperbo.evaluation.parameter_ticks import raw_text
from hyperbo.files import write_atomically
from hyperbo.gp.kernels import CORRELATIONS
from hyperbo.prior import Prior, PriorDescription
from hyperbo.prior_cuts import FUNCTIONS
from hyperbo.prior_history import Decision
from hyperbo.prior_view import PROMISING_SHARE, RANGE, PriorView, view_prior
from hyperbo.warping import output_warping

try:
    from hyperbo.evaluation import prior_figures as figures
    from hyperbo.evaluation.prior_matrix_figure import matrix_figure
    from hyperbo.evaluation.report import page_environment
except ModuleNotFoundError as error:
    raise NotAvailableError(f"a page needs {error.name}; pip install 'hyperbo[report]'") from error

_WARPINGS = {
    "negative_log": "y = \N{MINUS SIGN}ln(r + 10⁻¹⁰) of the raw objective r, which is to be minimised",
    "negative": "y = \N{MINUS SIGN}r of the raw objective r, which is to be minimised",
    "identity": "the raw objective itself, which is to be maximised",
}


def write_prior_page(prior: Prior, name: str, decisions: Sequence[Decision], path: Path) -> Path:
    """Write the page of a prior, whole or not at all.

    Args:
      prior: the prior.
      name: what `hyperbo.load_prior` finds it by.
      decisions: what was decided on it, oldest first; shown where there is any.
      path: the HTML file; its folder is made where it is missing.

    Returns:
      The path.

    Raises:
      NumericalError: the prior is not finite.
    """
    write_atomically(path, render_prior_page(prior, name, decisions).encode())
    return path


def render_prior_page(prior: Prior, name: str, decisions: Sequence[Decision]) -> str:
    """The page that `write_prior_page` writes; the same input gives the same page."""
    view, description = view_prior(prior), prior.description
    space, best = description.search_space, view.promising.best
    matrix, matrix_width = "", 0
    if view.planes is not None:
        matrix, matrix_width = matrix_figure("planes", view.planes, best, space)
    numbered = list(enumerate(space.parameters))
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
        feature_names=[f"feature {i + 1}" for i in range(len(view.lengthscales))]
        if description.architecture.hidden
        else space.names,
        is_stationary=description.architecture.kernel in CORRELATIONS,
        decisions=[(each, _facts(each.evidence)) for each in decisions],
    )


def _values(description: PriorDescription) -> str:
    """What the values of the prior are, as a sentence."""
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
    """A mean as a raw objective; empty where the scale is each task's own."""
    if description.is_mapped:
        return ""
    # A monotone map takes the median along, which of a normal distribution is the mean.
    return number(float(output_warping(description.output_warping).unwarp(np.array([mean]))[0]))


def _promising_rows(prior: Prior, view: PriorView) -> Iterator[tuple[str, str, str, str, str]]:
    promising = view.promising
    for i, each in enumerate(prior.description.search_space.parameters):
        low, high = (raw_text(each, at) for at in promising.ranges[i])
        whole = f"{raw_text(each, 0.0)} to {raw_text(each, 1.0)}"
        yield each.name, raw_text(each, promising.best[i]), f"{low} to {high}", whole, each.scaling


def _proposal_rows(prior: Prior, view: PriorView) -> Iterator[tuple[list[str], str, str, str]]:
    promising, parameters = view.promising, prior.description.search_space.parameters
    for point, mean, deviation in zip(
        promising.proposals, promising.proposal_means, promising.proposal_deviations, strict=True
    ):
        raw = [raw_text(each, at) for each, at in zip(parameters, point, strict=True)]
        yield raw, number(mean), number(deviation, 2), _objective(prior.description, mean)


def _reach_rows(prior: Prior, view: PriorView) -> Iterator[tuple[str, str, list[str]]]:
    """For each parameter: where the walk begins, and where it ends on either side."""
    for i, each in enumerate(prior.description.search_space.parameters):
        best = view.promising.best[i]
        ends = [
            "further than the range"
            if np.isnan(at)
            else f"{raw_text(each, at)} ({100 * abs(at - best):.0f}\N{NO-BREAK SPACE}% of the range)"
            for at in view.slices.half[i]
        ]
        yield each.name, raw_text(each, best), ends


def _facts(evidence: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Evidence as names and plain texts; what is inside of a value stays JSON."""
    return [
        (name.replace("_", " "), each if isinstance(each, str) else json.dumps(each, ensure_ascii=False))
        for name, each in evidence.items()
    ]
