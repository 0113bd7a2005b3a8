"""Repeated picks: how often runs observe what they know already, and which of them stand still."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from hyperbo.evaluation.records.runs import RUN

# A run stands still where this share of so many last picks is one candidate.
STILL_SHARE, STILL_PICKS = 0.9, 40


@dataclass(frozen=True)
class Repeats:
    """The repeated picks of a method, over all tasks and seeds.

    Attributes:
      method: the method.
      share: share of the picks that are of a candidate which the run had observed before.
      still: number of runs that stand still: at least 90 % of their last 40 picks are one candidate.
      runs: number of runs with at least 40 picks.
    """

    method: str
    share: float
    still: int
    runs: int


def measure_repeats(records: pd.DataFrame, method: str) -> Repeats:
    """The repeated picks of a method; trials that a run was given are no picks.

    Args:
      records: valid run records.
      method: the method; its share is NaN where it has no record.
    """
    own = records[records["method"] == method].sort_values([*RUN, "iteration"])
    repeated = own.duplicated([*RUN, "trial_id"]).to_numpy()
    last = own.groupby(RUN, sort=False).tail(STILL_PICKS)
    long = last[last.groupby(RUN)["trial_id"].transform("size") == STILL_PICKS]
    most = long.groupby([*RUN, "trial_id"]).size().groupby(RUN).max()
    return Repeats(
        method,
        float(repeated.mean()) if len(own) else np.nan,
        int((most >= STILL_SHARE * STILL_PICKS).sum()),
        len(most),
    )
