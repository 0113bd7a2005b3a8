"""Records of online trials, the best so far, and their figure."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperbo.bayesopt.journal import OnlineTrial, RunName
from hyperbo.bayesopt.online import best_so_far, online_records
from hyperbo.data.warping import output_warping
from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.figures.online import best_by_seed, online_figure
from hyperbo.evaluation.figures.style import line_styles

WARPINGS = {name: output_warping("negative_log") for name in ("a", "b")}


def records_of(runs: dict[tuple[str, str, int], list[float | None]]) -> pd.DataFrame:
    trials = [
        OnlineTrial(RunName(*run), iteration, (0.5,), value, {})
        for run, values in runs.items()
        for iteration, value in enumerate(values, start=1)
    ]
    return online_records(trials, WARPINGS)


def test_a_record_says_what_was_tried_and_what_came_of_it() -> None:
    records = records_of({("Rand", "b", 0): [0.5], ("H-NLL", "a", 1): [None, 0.25]})
    assert records["method"].tolist() == ["H-NLL", "H-NLL", "Rand"]
    assert records["iteration"].tolist() == [1, 2, 1]
    assert records["infeasible"].tolist() == [True, False, False]
    np.testing.assert_array_equal(records["objective"], [np.nan, 0.25, 0.5])
    np.testing.assert_allclose(
        records["y"], [np.nan, -np.log(0.25 + 1e-10), -np.log(0.5 + 1e-10)], rtol=1e-14
    )


# Counted errors: two that differ by less than 1e-10 would have the same y.
errors = st.integers(0, 1000).map(lambda count: count / 1000)
values = st.lists(st.one_of(st.none(), errors), min_size=1, max_size=8)


@given(first=values, second=values)
def test_the_best_so_far_is_the_smallest_error_of_the_trials_before(
    first: list[float | None], second: list[float | None]
) -> None:
    records = best_so_far(records_of({("Rand", "a", 0): first, ("Rand", "a", 1): second}))
    for seed, tried in enumerate((first, second)):
        expected = [
            min((value for value in tried[: number + 1] if value is not None), default=np.nan)
            for number in range(len(tried))
        ]
        np.testing.assert_array_equal(records["best"][records["seed"] == seed], expected)


def test_a_run_that_ended_early_keeps_its_best_and_one_without_a_value_is_infinite() -> None:
    records = records_of({("Rand", "a", 0): [0.5, 0.25], ("Rand", "a", 1): [None, None, 0.75]})
    np.testing.assert_array_equal(
        best_by_seed(records, "Rand", "a", 3), [[0.5, 0.25, 0.25], [np.inf, np.inf, 0.75]]
    )


def test_the_figure_has_a_line_for_each_method_and_says_what_it_shows() -> None:
    records = records_of(
        {
            ("H-NLL", "a", 0): [0.5, 0.25],
            ("H-NLL", "a", 1): [None, 0.5],
            ("STBOH", "a", 0): [None, None],
        }
    )
    methods = ["H-NLL", "STBOH"]
    drawn = online_figure("a", records, "a", methods, line_styles(methods))
    assert 'aria-label="Best validation error so far on a of H-NLL, STBOH"' in drawn
    assert all(re.search(rf">{label}<", drawn) for label in methods)
    with pytest.raises(InvalidInputError, match="no trial of task 'b'; use one of a"):
        online_figure("b", records, "b", methods, line_styles(methods))
