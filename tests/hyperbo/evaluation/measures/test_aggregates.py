"""Every aggregate against loops in plain Python over the records themselves; laws by hypothesis."""

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures.aggregates import (
    CRITERIA,
    budget_to_target,
    performance_profile,
    rank_methods,
    saturated_tasks,
    speedups,
    task_ranks,
)
from hyperbo.evaluation.measures.regret import (
    regret_curves,
    simple_regret,
    simple_regrets,
    task_regret_curves,
)
from hyperbo.evaluation.measures.spread import bootstrap_interval, standard_deviation
from hyperbo.evaluation.measures.tables import (
    best_objective_table,
    best_objectives,
    budgets_within,
    mean_std_table,
    regret_at_budgets,
    summary_frame,
    summary_table,
)
from hyperbo.evaluation.records.run_array import RunArray, comparable


def regret_by_run(records):
    """{(method, task, seed): [r_1, ..., r_T]}, from the definition."""
    runs = {}
    for row in records.sort_values("iteration").itertuples():
        observed = runs.setdefault((row.method, row.task, row.seed), [])
        observed.append((row.y, row.y_max))
    return {
        run: [rows[0][1] - max(y for y, _ in rows[: t + 1]) for t in range(len(rows))]
        for run, rows in runs.items()
    }


def percentile(values, level):
    """Linear interpolation between order statistics."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * level / 100
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def means_over_tasks(runs, array, method, t):
    return [
        math.fsum(runs[method, task, seed][t] for task in array.tasks) / len(array.tasks)
        for seed in array.seeds
    ]


@pytest.fixture
def regrets(records, metadata):
    return simple_regrets(records, metadata)


def test_simple_regret(records, regrets):
    for (method, task, seed), expected in regret_by_run(records).items():
        place = regrets.methods.index(method), regrets.tasks.index(task), regrets.seeds.index(seed)
        assert regrets.values[place].tolist() == expected


def test_regret_as_hpo_b_wants_it(records, metadata):
    """Divided by the range of the task, and counted from the best of the trials that a run began with."""
    records = records.assign(y_min=records.groupby("task")["y"].transform("min"), y_initial=np.nan)
    begun = (records["method"] == "Rand") & (records["seed"] == 2)
    given = 0.9 * records["y_max"] + 0.1 * records["y_min"]
    records.loc[begun, "y_initial"] = given[begun]
    found = simple_regrets(records, {**metadata, "regret": "normalised"})
    plain = simple_regrets(records.drop(columns=["y_min", "y_initial"]), metadata)
    for t, task in enumerate(found.tasks):
        of_task = records[records["task"] == task]
        extent = of_task["y_max"].iloc[0] - of_task["y_min"].iloc[0]
        expected = plain.values[:, t] / extent
        rand, seed = found.methods.index("Rand"), found.seeds.index(2)
        assert expected[rand, seed].max() > 0.1  # what the run was given is better than its beginning
        expected[rand, seed] = np.minimum(expected[rand, seed], 0.1)
        np.testing.assert_allclose(found.values[:, t], expected, rtol=1e-9, atol=1e-12)


def test_a_task_without_a_range_has_no_regret(records, metadata):
    records = records.assign(y=1.0, y_max=1.0, y_min=1.0)
    lost = (records["method"] == "STBO") & (records["task"] == "easy") & (records["seed"] == 1)
    found = simple_regrets(records[~lost], {**metadata, "regret": "normalised"})
    missing = np.zeros(found.values.shape, bool)
    missing[found.methods.index("STBO"), found.tasks.index("easy"), 1] = True
    np.testing.assert_array_equal(np.isnan(found.values), missing)  # a missing run is not a solved one
    assert (found.values[~missing] == 0.0).all()


def test_normalised_regret_needs_the_range(records, metadata):
    with pytest.raises(InvalidInputError, match="no column y_min"):
        simple_regrets(records, {**metadata, "regret": "normalised"})
    for change, message in (
        ({"y_min": records["y"].max()}, "y is below y_min"),
        ({"y_min": -records["iteration"].astype(float)}, "more than one y_min"),
        ({"y_initial": records["y_max"] + 1.0}, "y_initial is above y_max"),
        ({"y_initial": -records["iteration"].astype(float)}, "more than one y_initial"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            simple_regrets(records.assign(**change), metadata)


def test_regret_curves(records, regrets):
    runs, curves = regret_by_run(records), regret_curves(regrets)
    for row, method in enumerate(regrets.methods):
        for t in range(regrets.iterations):
            means = means_over_tasks(runs, regrets, method, t)
            assert curves.median[row, t] == pytest.approx(statistics.median(means), abs=1e-14)
            assert curves.lower[row, t] == pytest.approx(percentile(means, 20), abs=1e-14)
            assert curves.upper[row, t] == pytest.approx(percentile(means, 80), abs=1e-14)


def test_task_curves_leave_out_an_arm_that_lacks_a_seed(with_missing_arm, metadata):
    regrets = simple_regrets(with_missing_arm, metadata)
    runs, curves = regret_by_run(with_missing_arm), task_regret_curves(regrets)
    for row, method in enumerate(regrets.methods):
        for column, task in enumerate(regrets.tasks):
            if method == "STBO" and task in ("digits-cnn-64", "wine-mlp-16"):
                assert np.isnan(curves.median[row, column]).all()
                assert np.isnan(curves.upper[row, column]).all()
                continue
            for t in (0, 7, 29):
                values = [runs[method, task, seed][t] for seed in regrets.seeds]
                assert curves.median[row, column, t] == statistics.median(values)
                assert curves.upper[row, column, t] == pytest.approx(percentile(values, 80), abs=1e-14)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_performance_profile(records, regrets, criterion):
    runs, profile = regret_by_run(records), performance_profile(regrets, criterion)
    for row, method in enumerate(regrets.methods):
        for t in range(regrets.iterations):
            solved = [regret[t] < criterion for (name, _, _), regret in runs.items() if name == method]
            assert profile[row, t] == pytest.approx(sum(solved) / len(solved), abs=1e-15)


def test_a_regret_equal_to_the_criterion_is_not_solved():
    regrets = RunArray(("a",), ("t",), (0,), np.array([[[[0.02, 0.01, 0.0099]]]]))
    assert performance_profile(regrets, 0.01).tolist() == [[0, 0, 1]]


def test_ranks(records, regrets):
    runs, ranks = regret_by_run(records), rank_methods(regrets)
    for t in range(regrets.iterations):
        means = [
            [round(mean, 12) for mean in means_over_tasks(runs, regrets, method, t)]
            for method in regrets.methods
        ]
        for seed in range(len(regrets.seeds)):
            column = [mean[seed] for mean in means]
            for row, own in enumerate(column):
                rank = sum(other < own for other in column) + (column.count(own) + 1) / 2
                assert ranks.per_seed[row, seed, t] == rank
        for row in range(len(regrets.methods)):
            assert ranks.mean[row, t] == pytest.approx(statistics.mean(ranks.per_seed[row, :, t]))
            assert ranks.std[row, t] == pytest.approx(statistics.stdev(ranks.per_seed[row, :, t]))


def test_two_best_methods_share_rank_one_and_a_half():
    values = np.array([0.1, 0.1, 0.5]).reshape(3, 1, 1, 1)
    ranks = rank_methods(RunArray(("a", "b", "c"), ("t",), (0,), values))
    assert ranks.mean[:, 0].tolist() == [1.5, 1.5, 3.0]
    assert np.isnan(ranks.std).all()


def test_ranks_on_each_task(with_missing_arm, metadata):
    regrets = simple_regrets(with_missing_arm, metadata)
    runs, ranks = regret_by_run(with_missing_arm), task_ranks(regrets, 7)
    for column, task in enumerate(regrets.tasks):
        lacking = {"STBO"} if task in ("digits-cnn-64", "wine-mlp-16") else set()
        ranked = [method for method in regrets.methods if method not in lacking]
        for row, method in enumerate(regrets.methods):
            if method in lacking:
                assert math.isnan(ranks[row, column])
                continue
            per_seed = []
            for seed in regrets.seeds:
                others = [runs[other, task, seed][6] for other in ranked]
                own = runs[method, task, seed][6]
                per_seed.append(sum(other < own for other in others) + (others.count(own) + 1) / 2)
            assert ranks[row, column] == pytest.approx(statistics.fmean(per_seed))


def test_budget_to_target(records, regrets):
    runs, criteria = regret_by_run(records), (0.05, 0.001)
    table = budget_to_target(regrets, criteria).set_index(["method", "criterion"])
    assert len(table) == 4 * 2
    for (method, criterion), row in table.iterrows():
        needed = sorted(
            next((t for t, r in enumerate(regret, 1) if r < criterion), math.inf)
            for (name, _, _), regret in runs.items()
            if name == method
        )
        assert row["runs"] == len(needed) == 30
        assert row["reached"] == sum(budget < math.inf for budget in needed)
        # Of 30 ordered budgets, the 6th, 15th and 24th have 20, 50 and 80 % of the runs at or before them.
        assert (row["lower"], row["median"], row["upper"]) == (needed[5], needed[14], needed[23])
    assert math.inf in set(table["upper"])


def test_a_budget_that_is_not_reached_is_not_made_up():
    regrets = RunArray(("a",), ("t",), (0, 1, 2), np.array([[[[0.5, 0.0], [0.5, 0.05], [0.5, 0.4]]]]))
    (row,) = budget_to_target(regrets, (0.05,)).itertuples()
    assert (row.lower, row.median, row.upper) == (2, math.inf, math.inf)
    assert (row.reached, row.runs) == (1, 3)


def test_saturated_tasks(regrets):
    assert saturated_tasks(regrets, 30) == ("easy",)
    assert saturated_tasks(regrets, 1) == ()


def test_speedup_by_hand():
    own, other = [0.5, 0.2, 0.1, 0.1], [0.9, 0.9, 0.9, 0.3]
    regrets = RunArray(("a", "b"), ("t",), (0,), np.array([[[own]], [[other]]]))
    (fast,) = speedups(regrets, "a", ["b"])
    assert (fast.alternative_iterations, fast.method_iterations, fast.ratio) == (4, 2, 2)
    (never,) = speedups(regrets, "b", ["a"])
    assert (never.alternative_iterations, never.method_iterations, never.ratio) == (3, math.inf, 0)
    for alternatives in ([], ["a"]):
        with pytest.raises(InvalidInputError, match="name other methods"):
            speedups(regrets, "a", alternatives)


def test_speedup_takes_medians_over_seeds():
    own, other = [[9, 5, 1], [9, 4, 4], [1, 1, 1]], [[9, 9, 3], [3, 3, 3], [9, 2, 2]]
    regrets = RunArray(("a", "b"), ("t",), (0, 1, 2), np.array([[own], [other]], float))
    # The best of b comes after 3, 1 and 2 iterations; a passes it after 3, never, and 1.
    (found,) = speedups(regrets, "a", ["b"])
    assert (found.alternative_iterations, found.method_iterations, found.ratio) == (2, 3, 2 / 3)


def one_task(**curves):
    return RunArray(tuple(curves), ("t",), (0,), np.array([[[curve]] for curve in curves.values()]))


def test_to_match_is_not_to_pass_unless_at_zero():
    (matched,) = speedups(one_task(a=[0.5, 0.3, 0.3], b=[0.9, 0.9, 0.3]), "a", ["b"])
    assert (matched.method_iterations, matched.ratio) == (math.inf, 0)
    (zero,) = speedups(one_task(a=[0.5, 0.0, 0.0], b=[0.9, 0.9, 0.0]), "a", ["b"])
    assert (zero.method_iterations, zero.ratio) == (2, 1.5)


def test_of_equal_alternatives_the_faster_is_best():
    regrets = one_task(a=[0.1, 0.1, 0.1], slow=[0.9, 0.9, 0.3], fast=[0.9, 0.3, 0.3])
    (result,) = speedups(regrets, "a", ["slow", "fast"])
    assert (result.alternative, result.ratio) == ("fast", 2)


def test_regret_at_budgets(records, regrets):
    runs = regret_by_run(records)
    table = regret_at_budgets(regrets, budgets_within(regrets.iterations))
    assert sorted(set(table["iteration"])) == [1, 5, 10, 25, 30]
    for row in table.itertuples():
        means = means_over_tasks(runs, regrets, row.method, row.iteration - 1)
        assert row.median == pytest.approx(statistics.median(means), abs=1e-14)
        assert (row.lower, row.upper) == pytest.approx((percentile(means, 20), percentile(means, 80)))


def test_budgets():
    assert budgets_within(100) == (1, 5, 10, 25, 50, 100)
    assert budgets_within(3) == (1, 3)


def test_best_errors(with_missing_arm, metadata):
    table = best_objective_table(best_objectives(with_missing_arm, metadata)).set_index(["task", "method"])
    whole = with_missing_arm.groupby(["task", "method"])["iteration"].size() == 5 * 30
    for task in metadata["tasks"]:
        means = {}
        for method in metadata["methods"]:
            rows = with_missing_arm[
                (with_missing_arm["task"] == task) & (with_missing_arm["method"] == method)
            ]
            row = table.loc[(task, method)]
            if not whole[task, method]:
                assert math.isnan(row["mean"])
                assert not row["best"]
                continue
            # The warping falls with the error, so the best observation has the lowest error.
            errors = [min(rows[rows["seed"] == seed]["objective"]) for seed in metadata["seeds"]]
            means[method] = statistics.fmean(errors)
            assert row["mean"] == pytest.approx(means[method], abs=1e-15)
            assert row["std"] == pytest.approx(statistics.stdev(errors), abs=1e-15)
        for method, mean in means.items():
            assert table.loc[(task, method), "best"] == (mean <= min(means.values()) + 1e-15)


def test_the_best_objective_counts_what_a_run_was_given(records, metadata):
    records = records.assign(y_initial=records["y_max"], objective_initial=0.001)
    assert (best_objectives(records, metadata).values == 0.001).all()
    worse = records.assign(y_initial=-10.0, objective_initial=0.99)
    plain = records.drop(columns=["y_initial", "objective_initial"])
    for begun in (worse, records.assign(y_initial=np.nan, objective_initial=np.nan)):
        np.testing.assert_array_equal(
            best_objectives(begun, metadata).values, best_objectives(plain, metadata).values
        )


def test_the_best_objective_is_that_of_the_largest_y(records, metadata):
    # An objective that is to be maximised, as HPO-B's accuracy: not the lowest one is best.
    records["objective"] = records["y"] * 2 + 1
    best = best_objectives(records, metadata)
    y = records[(records["method"] == "Rand") & (records["task"] == "easy") & (records["seed"] == 2)]["y"]
    assert best.values[3, 5, 2].tolist() == [max(y[: t + 1]) * 2 + 1 for t in range(30)]
    table = best_objective_table(best, minimise=False)
    for _, rows in table.groupby("task"):
        assert (rows["best"] == (rows["mean"] == max(rows["mean"]))).all()


def test_a_stopped_run_has_no_best_after_its_end(with_missing_arm, metadata):
    best = best_objectives(with_missing_arm, metadata)
    stopped = best.values[best.methods.index("STBO"), best.tasks.index("digits-cnn-64"), 1]
    assert np.isfinite(stopped[:12]).all()
    assert np.isnan(stopped[12:]).all()


def test_the_bootstrap_resamples_seeds():
    # Two seeds: their mean is resampled as a (1/4), b (1/4) or (a + b)/2 (1/2); the 95 % interval is [a, b].
    assert bootstrap_interval(np.array([1.0, 3.0])) == (1.0, 3.0)
    assert all(math.isnan(end) for end in bootstrap_interval(np.array([1.0])))
    many = np.random.default_rng(0).normal(size=400)
    lower, upper = bootstrap_interval(many)
    width = 2 * 1.96 * many.std(ddof=1) / math.sqrt(len(many))
    assert upper - lower == pytest.approx(width, rel=0.05)
    assert np.isnan(standard_deviation(np.ones((3, 1)), axis=1)).tolist() == [True] * 3


def test_aggregates_refuse_missing_runs(with_missing_arm, metadata):
    regrets = simple_regrets(with_missing_arm, metadata)
    for aggregate in (
        regret_curves,
        rank_methods,
        lambda r: performance_profile(r, 0.01),
        lambda r: speedups(r, "H-NLL", ["Rand"]),
        lambda r: budget_to_target(r, CRITERIA),
    ):
        with pytest.raises(InvalidInputError, match="runs are missing"):
            aggregate(regrets)


def test_aggregates_with_a_missing_arm_are_those_of_the_shared_tasks(records, with_missing_arm, metadata):
    shared = [task for task in metadata["tasks"] if task not in ("digits-cnn-64", "wine-mlp-16")]
    alone = simple_regrets(records[records["task"].isin(shared)], metadata | {"tasks": shared})
    compared = comparable(simple_regrets(with_missing_arm, metadata))
    np.testing.assert_array_equal(regret_curves(compared).median, regret_curves(alone).median)
    np.testing.assert_array_equal(rank_methods(compared).per_seed, rank_methods(alone).per_seed)


def test_the_same_values_with_other_seeds_are_best_alike():
    values = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.3, 0.2, 0.1 + 1e-9]])[:, None]
    table = mean_std_table(values, ["a", "b", "c"], ["t"])
    assert table["mean"][0] != table["mean"][1]
    assert table["best"].tolist() == [True, True, False]


def test_summary(records, metadata, regrets):
    frame = summary_frame(regrets)
    assert list(frame.columns) == ["regret_1", "regret_10", "regret_30", "rank", "solved"]
    curves, ranks = regret_curves(regrets), rank_methods(regrets)
    np.testing.assert_array_equal(frame["regret_10"], curves.median[:, 9])
    np.testing.assert_array_equal(frame["rank"], ranks.mean[:, -1])
    np.testing.assert_array_equal(frame["solved"], (regrets.values[..., -1] < 0.01).mean(axis=(1, 2)))
    table = summary_table(simple_regrets(records[records["method"] != "STBO"], metadata))
    assert table.row_count == 4
    cells = [list(column.cells) for column in table.columns]
    assert cells[0] == ["H-NLL", "H-EKL", "STBO", "Rand"]
    assert [column[2] for column in cells[1:]] == ["missing"] * 5
    assert "6 of 6 tasks, median over 5 seeds" in str(table.title)
    assert "median over 5 runs" in str(summary_table(regrets, "run").title)


def test_means_over_tasks_and_seeds_stand_beside_medians_where_regret_is_normalised(regrets):
    by_hand = {t: [np.mean(regrets.values[row, :, :, t - 1]) for row in range(4)] for t in (1, 10, 30)}
    frame = summary_frame(regrets, means=True)
    for t, means in by_hand.items():
        np.testing.assert_allclose(frame[f"mean_{t}"], means, rtol=1e-12)
    at = regret_at_budgets(regrets, (1, 10, 30)).pivot(index="method", columns="iteration", values="mean")
    np.testing.assert_allclose(at.loc[list(regrets.methods), 30], by_hand[30], rtol=1e-12)
    table = summary_table(regrets, "run", normalised=True)
    assert "Mean normalised regret, 6 of 6 tasks, median, and mean over 5 runs" in str(table.title)
    headers = [str(column.header) for column in table.columns]
    assert headers[1:7] == [f"{what} at {t}" for what in ("regret", "mean") for t in (1, 10, 30)]


# Few distinct values, so that ties and zero regret are common.
OBSERVATIONS = st.tuples(*(st.integers(1, 4) for _ in range(3)), st.integers(1, 8)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(-4, 4).map(lambda i: i / 64))
)


@settings(max_examples=60, deadline=None)
@given(OBSERVATIONS, st.sampled_from([0.0, 0.25]))
def test_laws(y, unobserved):
    y_max = y.max(axis=(0, 2, 3), keepdims=True) + unobserved
    y_max = np.broadcast_to(y_max, (*y.shape[:3], 1))
    labels = tuple("abcd")
    regrets = RunArray(
        labels[: y.shape[0]], labels[: y.shape[1]], tuple(range(y.shape[2])), simple_regret(y, y_max)
    )
    values = regrets.values
    assert (values >= 0).all()
    assert (np.diff(values, axis=-1) <= 0).all()

    count = len(regrets.methods)
    ranks = rank_methods(regrets)
    np.testing.assert_allclose(ranks.per_seed.sum(axis=0), count * (count + 1) / 2)
    assert (ranks.per_seed >= 1).all()
    assert (ranks.per_seed <= count).all()

    profiles = [performance_profile(regrets, criterion) for criterion in CRITERIA]
    for profile in profiles:
        assert (np.diff(profile, axis=1) >= 0).all()
        assert (profile >= 0).all()
        assert (profile <= 1).all()
    for loose, strict in itertools.pairwise(profiles):
        assert (loose >= strict).all()

    curves = regret_curves(regrets)
    assert (curves.lower <= curves.median + 1e-15).all()
    assert (curves.median <= curves.upper + 1e-15).all()

    by_task = task_ranks(regrets, regrets.iterations)
    np.testing.assert_allclose(by_task.sum(axis=0), count * (count + 1) / 2)

    # Half of the runs are there when the performance profile has crossed one half, and not before.
    for budget in budget_to_target(regrets, CRITERIA).itertuples():
        profile = performance_profile(regrets, budget.criterion)[regrets.methods.index(budget.method)]
        runs = len(regrets.tasks) * len(regrets.seeds)
        assert budget.runs == runs
        assert budget.reached == round(profile[-1] * runs)
        assert budget.lower <= budget.median <= budget.upper
        crossed = [t for t, share in enumerate(profile, 1) if share >= 0.5]
        assert budget.median == (crossed[0] if crossed else math.inf)
