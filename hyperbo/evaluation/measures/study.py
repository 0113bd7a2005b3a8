"""Studies: evaluations whose methods vary one quantity, and regret by that quantity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hyperbo.evaluation.measures.regret import regret_curves, simple_regrets
from hyperbo.evaluation.records.metadata import EvaluationMetadata
from hyperbo.evaluation.records.run_array import any_comparable, comparable

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class StudyPoint:
    """Regret of one arm of a study after the last iteration.

    Attributes:
      quantity: the quantity that the study varies.
      series: name of the arms that differ only in the quantity.
      at: the value of the quantity, a number or a name; None for a reference that does not vary.
      arm: label of the arm, a method of the evaluation.
      median: median over seeds of the mean regret over tasks; NaN for an arm that completed no task.
      lower: 20th percentile.
      upper: 80th percentile.
    """

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

    A method is an arm of a study if its configuration in the metadata has a `study` with `quantity`, `series`
    and `at`. Regret is over the tasks that all compared methods completed. There is no point if the
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
        StudyPoint(study["quantity"], study["series"], study["at"], label, *of_arm.get(label, nothing))
        for label, study in studies.items()
    )


def study_table(points: Sequence[StudyPoint], iterations: int) -> Table:
    """The points of a study as a table for the terminal; `missing` for an arm that completed no task."""
    from rich.markup import escape
    from rich.table import Table

    quantity = points[0].quantity
    table = Table(title=f"Mean simple regret after {iterations} iterations by {escape(quantity)}")
    table.add_column("method")
    table.add_column(escape(quantity), justify="right")
    for name in ("median", "20 %", "80 %"):
        table.add_column(name, justify="right")
    for point in points:
        cells = [f"{value:.3g}" for value in (point.median, point.lower, point.upper)]
        at = "" if point.at is None else str(point.at)
        table.add_row(escape(point.series), escape(at), *(["missing"] * 3 if point.missing else cells))
    return table
