"""Losses by test task and prior, and Pearson's coefficient from its definition."""

import math
import statistics

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hyperbo.evaluation.measures.correlations import correlate_losses, loss_array, losses_of_priors, pearson
from hyperbo.evaluation.measures.regret import regrets_of_priors, simple_regrets
from hyperbo.evaluation.records.losses import (
    COLUMNS,
    KINDS,
    validate_losses,
)


@pytest.fixture
def task_datasets(records):
    return dict(zip(records["task"], records["task_dataset"], strict=True))


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_test_task_has_the_losses_of_its_prior(losses, records, metadata, task_datasets, kind):
    regrets = simple_regrets(records, metadata)
    values = loss_array(losses, kind, regrets, task_datasets)
    assert np.isnan(values[2:]).all()  # STBO and Rand have no pre-trained prior
    for i, method in enumerate(regrets.methods[:2]):
        for j, task in enumerate(regrets.tasks):
            for k, seed in enumerate(regrets.seeds):
                row_task = task if kind in ("test_nll", "test_ekl") else ""
                (expected,) = losses[
                    (losses["method"] == method)
                    & (losses["held_out"] == task_datasets[task])
                    & (losses["seed"] == seed)
                    & (losses["task"] == row_task)
                    & (losses["kind"] == kind)
                ]["value"]
                assert values[i, j, k] == expected


def test_a_prior_that_held_out_the_test_task_alone_comes_first(records, metadata, task_datasets):
    rows = [
        ("H-NLL", held_out, 0, "", "training_nll", value)
        for held_out, value in (("digits", 1.0), ("digits-cnn-64", 2.0))
    ]
    values = loss_array(
        pd.DataFrame(rows, columns=list(COLUMNS)),
        "training_nll",
        simple_regrets(records, metadata),
        task_datasets,
    )
    np.testing.assert_array_equal(values[0, :, 0], [1, 2, 1, np.nan, np.nan, np.nan])


def pearson_by_definition(x, y):
    mean_x, mean_y = statistics.fmean(x), statistics.fmean(y)
    products = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    squares = [math.fsum((a - mean) ** 2 for a in z) for z, mean in ((x, mean_x), (y, mean_y))]
    return products / math.sqrt(squares[0] * squares[1])


def test_correlations_are_over_methods_and_seeds(losses, records, metadata, task_datasets):
    regrets = simple_regrets(records, metadata)
    lacking = losses[
        ~((losses["kind"] == "training_nll") & (losses["seed"] == 2) & (losses["method"] == "H-EKL"))
    ]
    found = correlate_losses(lacking, regrets, 30, task_datasets)
    assert [(each.x, each.y) for each in found] == [
        ("test_nll", "regret"),
        ("training_nll", "regret"),
        ("training_nll", "test_nll"),
        ("test_ekl", "test_nll"),
    ]
    tasks = list(regrets.tasks)
    points = {}
    for i, method in enumerate(("H-NLL", "H-EKL")):
        for seed in metadata["seeds"]:
            own = lacking[(lacking["method"] == method) & (lacking["seed"] == seed)]
            point = {"regret": statistics.fmean(regrets.values[i, :, seed, 29].tolist())}
            for kind in KINDS:
                of_kind = own[own["kind"] == kind].set_index(["held_out", "task"])["value"].to_dict()
                values = [
                    of_kind.get((task_datasets[task], task if kind.startswith("test") else ""))
                    for task in tasks
                ]
                if None not in values:
                    point[kind] = statistics.fmean(values)
            points[method, seed] = point
    for each in found:
        both = [point for point in points.values() if each.x in point and each.y in point]
        assert each.points == len(both) == (9 if each.x == "training_nll" else 10)
        x, y = ([point[kind] for point in both] for kind in (each.x, each.y))
        np.testing.assert_allclose(each.x_values[np.isfinite(each.x_values)], x)
        assert each.coefficient == pytest.approx(pearson_by_definition(x, y))
    assert correlate_losses(losses[losses["kind"] == "training_ekl"], regrets, 30, task_datasets) == ()


def test_correlations_count_priors_and_not_runs(losses, records, metadata, task_datasets):
    # As of HPO-B: two runs on a task share a prior, here seeds 0 and 1, 2 and 3, and 4 alone.
    metadata["runs_per_prior"] = 2
    key = ["method", "held_out", "task", "kind"]
    of_first = losses[losses["seed"] % 2 == 0].set_index([*key, "seed"])["value"]
    runs = [(*row, seed - seed % 2) for *row, seed in losses[[*key, "seed"]].itertuples(index=False)]
    shared = losses.assign(value=of_first.loc[runs].to_numpy())
    regrets = simple_regrets(records, metadata)
    of_priors = losses_of_priors(shared, metadata)
    validate_losses(of_priors)
    assert set(of_priors["seed"]) == {0, 1, 2}
    (found,) = (
        each
        for each in correlate_losses(of_priors, regrets_of_priors(regrets, metadata), 30, task_datasets)
        if (each.x, each.y) == ("test_nll", "regret")
    )
    assert found.points == 2 * 3
    x, y = [], []
    for i, method in enumerate(("H-NLL", "H-EKL")):
        for runs in ((0, 1), (2, 3), (4,)):
            own = shared[
                (shared["method"] == method) & (shared["seed"] == runs[0]) & (shared["kind"] == "test_nll")
            ]
            x.append(own["value"].mean())
            y.append(regrets.values[i][:, list(runs), 29].mean())
    np.testing.assert_allclose(found.x_values[:2].ravel(), x)
    np.testing.assert_allclose(found.y_values[:2].ravel(), y)
    assert found.coefficient == pytest.approx(np.corrcoef(x, y)[0, 1])


def test_without_shared_priors_losses_stay_as_they_are(losses, metadata):
    pd.testing.assert_frame_equal(losses_of_priors(losses, metadata), losses)


def test_rounding_correlates_with_nothing():
    varied, constant = np.array([1.0, 2.0, 4.0]), np.array([0.3, 0.1 + 0.2, 0.3])
    assert np.ptp(constant) > 0
    assert math.isnan(pearson(varied, constant))
    assert math.isnan(pearson(constant, varied))
    assert not math.isnan(pearson(varied, 1e-9 * constant * varied))


@settings(max_examples=100, deadline=None)
@given(
    arrays(np.float64, (2, 6), elements=st.integers(-8, 8).map(float)), st.floats(0.1, 10), st.floats(-5, 5)
)
def test_laws_of_the_coefficient(values, scale, shift):
    x, y = values
    coefficient = pearson(x, y)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert math.isnan(coefficient)
        return
    assert coefficient == pytest.approx(pearson_by_definition(x.tolist(), y.tolist()), abs=1e-12)
    assert pearson(y, x) == pytest.approx(coefficient, abs=1e-12)
    assert pearson(scale * x + shift, y) == pytest.approx(coefficient, abs=1e-9)
    assert pearson(-x, y) == pytest.approx(-coefficient, abs=1e-12)
    assert math.isnan(pearson(x[:2], y[:2]))
