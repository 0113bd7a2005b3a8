"""Studies: evaluations whose methods vary one quantity, and regret by that quantity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hyperbo.evaluation.measures.comparisons import TIE_TOLERANCE, paired_comparison
from hyperbo.evaluation.measures.findings import number
from hyperbo.evaluation.measures.regret import regret_curves, simple_regrets
from hyperbo.evaluation.records.metadata import EvaluationMetadata
from hyperbo.evaluation.records.run_array import RunArray, any_comparable, comparable

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class StudyPoint:
    """Regret of one arm of a study after the last iteration.

    Attributes:
      study: name of the study; empty for an evaluation that does not name it.
      quantity: the quantity that the study varies.
      series: name of the arms that differ only in the quantity.
      at: the value of the quantity, a number or a name; None for a reference that does not vary.
      arm: label of the arm, a method of the evaluation.
      median: median over seeds of the mean regret over tasks; NaN for an arm that completed no task.
      lower: 20th percentile.
      upper: 80th percentile.
    """

    study: str
    quantity: str
    series: str
    at: int | float | str | None
    arm: str
    median: float
    lower: float
    upper: float

    @property
    def missing(self) -> bool:
        """Whether the arm completed no task."""
        return bool(np.isnan(self.median))


def study_points(records: pd.DataFrame, metadata: EvaluationMetadata) -> tuple[StudyPoint, ...]:
    """Regret after the last iteration by the quantity that a study varies; one point per arm, in their order.

    A method is an arm of a study if its configuration in the metadata has a `study` with `name`, `quantity`,
    `series` and `at`. Regret is over the tasks that all compared methods completed. There is no point if the
    evaluation is not a study, or if no task was completed by all methods.

    Raises:
      InvalidInputError: records and metadata belong to different evaluations.
    """
    studies = {
        label: configuration["study"]
        for label, configuration in metadata["methods"].items()
        if "study" in configuration
    }
    if not studies:
        return ()
    every = simple_regrets(records, metadata)
    if not any_comparable(every):
        return ()
    regrets = comparable(every)
    curves = regret_curves(regrets)
    last = np.stack([curves.median[:, -1], curves.lower[:, -1], curves.upper[:, -1]], axis=1).tolist()
    of_arm = dict(zip(regrets.methods, last, strict=True))
    nothing = [float("nan")] * 3
    return tuple(
        StudyPoint(
            study.get("name", ""),
            study["quantity"],
            study["series"],
            study["at"],
            label,
            *of_arm.get(label, nothing),
        )
        for label, study in studies.items()
    )


def study_sentence(points: Sequence[StudyPoint], regrets: RunArray) -> str:
    """Where each curve of a study has its lowest and its highest regret, and whether these can be told apart.

    They can where the 95 % bootstrap interval of their difference, over seeds, excludes zero.

    Args:
      points: the points of `study_points`.
      regrets: regrets by prior, missing runs included.
    """
    varied: dict[str, list[StudyPoint]] = {}
    for point in points:
        if point.at is not None and not point.missing:
            varied.setdefault(point.series, []).append(point)
    said = [_said(series, of_series, regrets) for series, of_series in varied.items() if len(of_series) > 1]
    return " ".join(said) or f"No method has two values of {points[0].quantity} to compare."


def _said(series: str, points: Sequence[StudyPoint], regrets: RunArray) -> str:
    lowest, highest = (choose(points, key=lambda point: point.median) for choose in (min, max))
    what = f"{series} has its lowest regret, {number(lowest.median)}, at {lowest.at}"
    if lowest.median == highest.median:
        return f"{series} has the same regret, {number(lowest.median)}, at all {len(points)} values."
    compared = paired_comparison(regrets, lowest.arm, highest.arm, regrets.iterations)
    if len(compared.seeds) < 2:
        told = "one seed cannot tell whether that is chance"
    elif compared.upper < -TIE_TOLERANCE:
        told = "more than chance explains"
    else:
        told = "which may be chance"
    return f"{what}, and its highest, {number(highest.median)}, at {highest.at}: {told}."


def study_table(points: Sequence[StudyPoint], iterations: int) -> Table:
    """The points of a study as a table for the terminal; `missing` for an arm that completed no task.

    With one seed, where all percentiles are the median, it has no columns for them.
    """
    from rich.markup import escape
    from rich.table import Table

    quantity = points[0].quantity
    one_seed = all(point.lower == point.upper for point in points if not point.missing)
    names = ("regret",) if one_seed else ("median", "20 %", "80 %")
    table = Table(title=f"Mean simple regret after {iterations} iterations by {escape(quantity)}")
    table.add_column("method")
    table.add_column(escape(quantity), justify="right")
    for name in names:
        table.add_column(name, justify="right")
    for point in points:
        cells = [f"{value:.3g}" for value in (point.median, point.lower, point.upper)]
        at = "" if point.at is None else str(point.at)
        row = ["missing"] * 3 if point.missing else cells
        table.add_row(escape(point.series), escape(at), *row[: len(names)])
    return table
