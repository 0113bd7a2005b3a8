"""How a report opens: one sentence and one figure, of a verdict or of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from hyperbo.evaluation.figures.curves import verdict_figure
from hyperbo.evaluation.figures.diagnostics import study_figure
from hyperbo.evaluation.figures.style import Styles
from hyperbo.evaluation.measures.comparisons import TIE_TOLERANCE, paired_comparison
from hyperbo.evaluation.measures.regret import regret_curves
from hyperbo.evaluation.measures.study import study_points, study_sentence
from hyperbo.evaluation.measures.verdict import BASELINES, verdict_of
from hyperbo.evaluation.records.metadata import EvaluationMetadata, method_of
from hyperbo.evaluation.records.run_array import RunArray, comparable

Values = dict[str, Any]


class StudyWords(NamedTuple):
    """What a study of the paper is about, for its page."""

    title: str
    question: str
    section: str


# By the names of `hyperbo_flows.experiments.studies.STUDIES`; sections are those of the paper.
STUDIES: Mapping[str, StudyWords] = {
    "points-per-task": StudyWords(
        "Points per training task",
        "How many trials of each training task does a prior need?",
        "Section 7.4.3 (exp-pd1-datapoints)",
    ),
    "training-tasks": StudyWords(
        "Number of training tasks",
        "How many training tasks does a prior need?",
        "Section 7.4.4 (num_training_tasks)",
    ),
    "acquisition": StudyWords(
        "Acquisition functions",
        "How much does it matter by which rule the next trial is chosen?",
        "Section D.2 (exp-acfun)",
    ),
    "structure": StudyWords(
        "Structure of the Gaussian process",
        "How much do the mean function and the learned features matter?",
        "Section D.3 (exp-structure)",
    ),
    "negative-transfer": StudyWords(
        "Negative transfer",
        "Do training tasks whose function is flat make a prior worse?",
        "Section 7.6.3 (negative_transfer)",
    ),
    "held-out": StudyWords(
        "Related tasks held out",
        "How much of a prior's gain comes from training tasks on the same dataset as the test task?",
        "Section 7.4.1 (hold-out-related)",
    ),
}


def opening_section(
    regrets: RunArray, by_prior: RunArray, records: pd.DataFrame, metadata: EvaluationMetadata, styles: Styles
) -> Values:
    """The verdict with its figure, or the study with its; each is None where the evaluation has none."""
    points = study_points(records, metadata)
    if points:
        return {
            "verdict": None,
            "others_ahead": [],
            "study": points,
            "study_words": STUDIES.get(points[0].study),
            "study_sentence": study_sentence(points, by_prior),
            "study_figure": study_figure("study", points),
        }
    verdict = verdict_of(by_prior, metadata)
    values: Values = {"verdict": verdict, "study": points, "others_ahead": _ahead(by_prior, metadata)}
    if verdict is not None:
        compared = comparable(regrets)
        curves = regret_curves(compared)
        values["verdict_figure"] = verdict_figure("verdict", curves, compared.methods, styles, verdict)
    return values


def _ahead(by_prior: RunArray, metadata: EvaluationMetadata) -> list[str]:
    """The methods, baselines left out, that are ahead of the first compared one after the last iteration."""
    first, *others = comparable(by_prior).methods
    models = [label for label in others if method_of(metadata, label) not in BASELINES]
    found = [paired_comparison(by_prior, first, each, by_prior.iterations) for each in models]
    return [each.second for each in found if each.lower > TIE_TOLERANCE]
