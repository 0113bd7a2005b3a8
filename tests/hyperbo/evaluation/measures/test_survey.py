"""What a survey says of a benchmark, against simulation and independent ranks."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.data.tuning_data import MatchedBlock, Provenance, Task, TuningData
from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.figures.diagnostics import heat_map
from hyperbo.evaluation.measures.survey import (
    chance_of_best,
    expected_regret,
    gains,
    rank_correlations,
    survey_markdown,
    survey_tasks,
)

SPACE = SearchSpace((Parameter("a", 0.0, 1.0),))


def tuning_data(blocks=()):
    draw = np.random.default_rng(0)
    tasks = []
    for number in range(3):
        error = draw.uniform(0.1, 0.9, size=20)
        ids = tuple(f"{number}/{i}" for i in range(20))
        x = draw.uniform(size=(20, 1))
        tasks.append(Task(f"task{number}", f"d{number}", x, -np.log(error), error, ids))
    return TuningData(SPACE, tuple(tasks), tuple(blocks), Provenance("trials/x:1.0.0", "none", "none"))


def frame():
    rows = [("task0", "matched", i % 4 == 0) for i in range(12)] + [("task0", "unmatched", False)] * 8
    rows += [(f"task{n}", "matched", False) for n in (1, 2) for _ in range(5)]
    return pd.DataFrame(rows, columns=["task", "split", "diverged"])


@pytest.mark.parametrize("draws", [1, 10, 100])
def test_expected_regret_and_the_chance_of_the_best_are_those_of_a_simulation(draws):
    generator = np.random.default_rng(1)
    y = np.round(generator.normal(size=30), 1)  # with ties
    best = y[generator.integers(30, size=(200_000, draws))].max(axis=1)
    assert expected_regret(y, draws) == pytest.approx((y.max() - best).mean(), abs=0.01)
    assert chance_of_best(y, draws) == pytest.approx((best == y.max()).mean(), abs=0.01)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=20), st.integers(1, 50))
def test_more_draws_never_raise_the_expected_regret(values, draws):
    y = np.array(values)
    assert -1e-9 <= expected_regret(y, draws + 1) <= expected_regret(y, draws) + 1e-9
    assert expected_regret(y, 1) == pytest.approx(y.max() - y.mean(), abs=1e-9)


def test_every_task_is_described():
    data = tuning_data()
    found = survey_tasks(frame(), data)
    assert list(found.index) == ["task0", "task1", "task2"]
    assert found.loc["task0", ["matched", "unmatched"]].tolist() == [12, 8]
    assert found.loc["task0", "diverged"] == pytest.approx(3 / 20)
    task = data.tasks[0]
    assert found.loc["task0", "best"] == task.objective.min(), "the best error is the smallest"
    assert found.loc["task0", "worst"] == task.objective.max()
    assert found.loc["task0", "range"] == pytest.approx(task.y.max() - task.y.min())


def test_a_task_without_trials_is_named():
    with pytest.raises(InvalidInputError, match="no trial of task 'task2'"):
        survey_tasks(frame()[lambda rows: rows["task"] != "task2"], tuning_data())


def test_rank_correlations_are_spearmans_over_what_two_tasks_share():
    draw = np.random.default_rng(2)
    y = np.round(draw.normal(size=(30, 2)), 1)
    y[:, 1] += y[:, 0]
    y[:4, 0] = np.nan
    wide = draw.normal(size=(12, 2))
    blocks = [
        MatchedBlock(("task0", "task1"), draw.uniform(size=(30, 1)), y),
        MatchedBlock(("task1", "task2"), draw.uniform(size=(12, 1)), wide),
    ]
    found = rank_correlations(tuning_data(blocks))
    assert found.loc["task0", "task1"] == pytest.approx(stats.spearmanr(y[4:, 0], y[4:, 1]).statistic)
    assert found.loc["task2", "task1"] == pytest.approx(stats.spearmanr(wide[:, 0], wide[:, 1]).statistic)
    assert np.isnan(found.loc["task0", "task2"]), "they share no input"
    few = rank_correlations(tuning_data([MatchedBlock(("task0", "task1"), np.zeros((9, 1)), y[10:19])]))
    assert np.isnan(few.loc["task0", "task1"])
    assert rank_correlations(tuning_data()).isna().all(axis=None)


def test_the_page_names_trivial_tasks_and_leaves_blank_what_is_not_known():
    found = survey_tasks(frame(), tuning_data())
    found.loc["task1", "chance_10"] = 0.9
    found["gain_10"] = [0.25, np.nan, -0.5]
    correlations = rank_correlations(tuning_data())
    page = survey_markdown(found, correlations)
    assert "| task0 | 12 | 8 | 15% |" in page
    assert "30 trials of 3 tasks." in page
    assert "more often than not on task1." in page
    assert "| gain at 10 |" in page
    assert [line.split("|")[-2].strip() for line in page.splitlines()[2:5]] == ["0.25", "", "-0.5"]


def test_the_heat_map_is_a_vector_graphic_with_every_task():
    names = ["one", "two"]
    correlations = pd.DataFrame([[1.0, -0.4], [-0.4, 1.0]], index=names, columns=names)
    drawn = heat_map(correlations)
    assert drawn.startswith("<svg")
    assert all(name in drawn for name in names)
    assert heat_map(correlations) == drawn


def test_gains_are_differences_of_mean_regrets_by_task(records, metadata):
    found = gains(records, metadata, "H-NLL", "Rand", at=(10,))
    assert list(found.index) == list(metadata["tasks"])
    for task in found.index:
        means = []
        for method in ("Rand", "H-NLL"):
            own = records[(records["task"] == task) & (records["method"] == method)]
            best = own[own["iteration"] <= 10].groupby("seed")["y"].max()
            means.append((own["y_max"].iloc[0] - best).mean())
        assert found.loc[task, "gain_10"] == pytest.approx(means[0] - means[1])


def test_a_method_that_was_not_evaluated_is_named(records, metadata):
    with pytest.raises(InvalidInputError, match="ABLR"):
        gains(records, metadata, "ABLR", "Rand")
