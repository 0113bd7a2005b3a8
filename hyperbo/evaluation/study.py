"""Studies: evaluations whose arms vary one quantity, and regret by that quantity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hyperbo.evaluation.metadata import EvaluationMetadata
from hyperbo.evaluation.regret import regret_curves, simple_regrets
from hyperbo.evaluation.run_array import any_comparable, comparable

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class StudyPoint:
    """Regret of one arm of a study after the last iteration.

    Attributes:
      quantity: what the study varies.
      series: the arms that differ in it alone.
      at: the value of the quantity, a number or a name; None: a reference that does not vary.
      arm: label of the arm.
      median: over seeds, of the mean over tasks; NaN for an arm that completed no task.
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
    """Regret after the last iteration by the quantity that a study varies.

    An arm is a point of a study where its configuration in the metadata has a `study` with `quantity`,
    `series` and `at`. As everywhere, regret is over the tasks that all compared arms completed.

    Args:
      records: run records.
      metadata: metadata of the evaluation that made them.

    Returns:
      One point per arm of the study, in their order; none where the evaluation is no study, or where no task
      was completed by all methods.

    Raises:
      InvalidInputError: records and metadata are not of one evaluation.
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
    """The points of a study as a table for the terminal; `missing` where an arm completed no task."""
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
