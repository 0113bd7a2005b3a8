from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from hyperbo.evaluation.measures.repeats import measure_repeats


def run(method: str, task: str, picks: list[int]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "method": method,
            "task": task,
            "seed": 0,
            "iteration": np.arange(1, len(picks) + 1),
            "trial_id": [f"trial-{pick}" for pick in picks],
        }
    )


def test_a_run_stands_still_where_36_of_its_last_40_picks_are_one_candidate() -> None:
    new = list(range(100, 200))
    records = pd.concat(
        [
            run("PI", "stuck", [*new[:20], *new[20:24], *[7] * 36]),
            run("PI", "late", [*new[:20], *new[20:25], *[7] * 35]),
            run("PI", "early", [*[7] * 60, *new[:40]]),
            run("PI", "short", [7] * 39),
            run("Rand", "stuck", new[:60]),
        ]
    ).sample(frac=1.0, random_state=1)  # the order of rows means nothing
    found = measure_repeats(records, "PI")
    assert (found.still, found.runs) == (1, 3)
    repeated = 35 + 34 + 59 + 38
    assert found.share == pytest.approx(repeated / (60 + 60 + 100 + 39), rel=1e-15)
    other = measure_repeats(records, "Rand")
    assert (other.share, other.still, other.runs) == (0.0, 0, 1)
    assert np.isnan(measure_repeats(records, "missing").share)
