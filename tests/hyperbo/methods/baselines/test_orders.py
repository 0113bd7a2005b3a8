"""Best-average, Portfolio, Default-Rand and Box-Rand: their choices by plain loops."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from baseline_cases import choices, new_task, shares_of, table_of, training
from gp_cases import make_task, tuning_data
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperbo.bayesopt.offline import Run, simulate
from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.errors import InvalidInputError
from hyperbo.methods import BestAverage, BoxRand, DefaultRand, Method, Portfolio, Table
from hyperbo.methods.baselines.task_values import recorded_values, share_of_range
from hyperbo.pretrain import Job
from hyperbo.storage.validation import validated

pytestmark = pytest.mark.usefixtures("x64")
DATA = training(seed=6)
# No two candidates have the same values, which would be in random order.
MATCHED, NEW = DATA.blocks[0].x, np.random.default_rng(7).random((5, 2))
# Candidates that all tasks tried, some that one tried, and some that none tried.
MIXED = np.concatenate([MATCHED, DATA.tasks[0].x[:3], NEW])
ORDERS = [BestAverage(), Portfolio(), DefaultRand(), BoxRand()]


def test_a_value_is_that_of_the_nearest_trial_whatever_the_padding() -> None:
    fewer = training((4, 12), inputs=5, seed=3)
    learned = recorded_values([Job(DATA, 0), Job(fewer, 0)])
    assert len({jax.tree.structure(each) for each in learned}) == 1
    assert len({tuple(leaf.shape for leaf in jax.tree.leaves(each)) for each in learned}) == 1
    for data, values in zip((DATA, fewer), learned, strict=True):
        count = len(data.tasks)
        expected = table_of(data, MIXED)
        np.testing.assert_array_equal(values.tasks, np.arange(3) < count)
        np.testing.assert_allclose(values.at(jnp.asarray(MIXED))[:, :count], expected, rtol=1e-12)
        np.testing.assert_array_equal(values.at(jnp.asarray(MIXED))[:, count:], 0.0)
        np.testing.assert_allclose(values.average_at(jnp.asarray(MIXED)), expected.mean(axis=1), rtol=1e-12)
    assert table_of(DATA, MATCHED)[0, -1] == DATA.tasks[-1].y.min()  # it diverged there


def test_trials_of_one_input_are_averaged_and_a_flat_task_has_no_say() -> None:
    x = np.array([[0.2, 0.2], [0.2, 0.2 + 1e-12], [0.8, 0.8], [0.5, 0.1]])
    twice, flat = (
        make_task("t0", "d0", x, np.array([0.0, 4.0, 3.0, 1.0])),
        make_task("t1", "d1", x, np.ones(4)),
    )
    data = replace(tuning_data((4, 4)), tasks=(twice, flat))
    (values,) = recorded_values([Job(data, 0)])
    np.testing.assert_array_equal(values.at(jnp.asarray(x))[:, 0], [2.0, 2.0, 3.0, 1.0])
    test = new_task(x[1:])
    assert choices(BestAverage(), data, test, iterations=3) == [[1, 0, 2]]


def test_best_average_tries_candidates_in_the_order_of_their_average() -> None:
    small, large = new_task(MIXED[2:6]), new_task(MIXED)
    averages = shares_of(DATA, MIXED).mean(axis=1)
    of_small, of_large = choices(BestAverage(), DATA, small, large, iterations=4)
    assert of_small == np.argsort(-averages[2:6]).tolist()
    assert of_large == np.argsort(-averages)[:4].tolist()


def plain_portfolio(shares: np.ndarray) -> list[int]:
    order: list[int] = []
    best = np.zeros(shares.shape[1])
    while len(order) < len(shares):
        left = [row for row in range(len(shares)) if row not in order]
        regret = {row: sum(1.0 - np.maximum(best, shares[row])) for row in left}
        row = min(left, key=lambda row: regret[row])
        if regret[row] > sum(1.0 - best) - 1e-9:
            row = max(left, key=lambda row: shares[row].mean())
        order.append(row)
        best = np.maximum(best, shares[row])
    return order


def test_a_portfolio_is_greedy_until_nothing_improves_and_goes_on_by_average() -> None:
    order = plain_portfolio(shares_of(DATA, MIXED))
    assert choices(Portfolio(), DATA, new_task(MIXED), iterations=len(MIXED)) == [order]
    # The tail is by average, and the whole is another order than that of the averages.
    averages = shares_of(DATA, MIXED).mean(axis=1)[order]
    assert (np.diff(averages[4:]) <= 0).all()
    assert not (np.diff(averages) <= 0).all()


def test_given_trials_belong_to_the_portfolio() -> None:
    shares = shares_of(DATA, MIXED)
    first, second = plain_portfolio(shares)[:2]
    (fitted,) = Portfolio().fit([Job(DATA, 0)])
    task = new_task(MIXED)
    run = Run(Portfolio().policy(fitted, task), task, 0, (first,))
    assert simulate([run], 1, repeats=False).choices.tolist() == [[second]]


@given(st.integers(0, 1000), st.floats(0.1, 10.0), st.floats(-5.0, 5.0))
@settings(max_examples=10)
def test_the_unit_of_a_task_does_not_matter(seed: int, scale: float, shift: float) -> None:
    data = tuning_data((7, 7, 7), seed)
    first = data.tasks[0]
    other = replace(data, tasks=(replace(first, y=scale * first.y + shift), *data.tasks[1:]))
    (values,), (same,) = (recorded_values([Job(each, 0)], share_of_range) for each in (data, other))
    np.testing.assert_allclose(values.at(jnp.asarray(MIXED)), same.at(jnp.asarray(MIXED)), rtol=0, atol=1e-9)


def test_the_default_comes_first() -> None:
    test = new_task(MIXED)
    nearest = int(((MIXED - 0.5) ** 2).sum(axis=1).argmin())
    orders = [choices(DefaultRand(), DATA, test, iterations=6, seed=seed)[0] for seed in range(4)]
    assert {order[0] for order in orders} == {nearest}
    assert len({tuple(order) for order in orders}) == 4
    given_one = DefaultRand({"b": float(NEW[0, 1]), "a": float(NEW[0, 0])})
    assert choices(given_one, DATA, test, iterations=1) == [[len(MIXED) - 5]]


def test_a_file_may_give_the_default() -> None:
    assert validated(DefaultRand, {"default": {"a": 1, "b": 0.5}}, "file") == DefaultRand(
        {"a": 1.0, "b": 0.5}
    )


def test_a_default_is_in_raw_units_and_its_nearest_candidate_no_padding() -> None:
    space = SearchSpace((Parameter("a", 1e-4, 1.0, "log"), Parameter("b", 0.0, 2.0)))
    data = replace(DATA, search_space=space)
    (default,) = DefaultRand({"a": 1e-4, "b": 0.0}).fit([Job(data, 0)])
    np.testing.assert_allclose(default, [0.0, 0.0], atol=1e-12)
    # Padding has the input 0, which no candidate of the short task is nearer to.
    short, long = new_task(MIXED[:3], name="short"), new_task(MIXED, name="long")
    expected = int((MIXED[:3] ** 2).sum(axis=1).argmin())
    assert choices(DefaultRand({"a": 1e-4, "b": 0.0}), data, short, long, iterations=1)[0] == [expected]


@pytest.mark.parametrize(
    ("default", "named"),
    [({"a": 0.5}, "a, b"), ({"a": 0.5, "c": 1.0}, "a, b"), ({"a": 0.5, "b": 7.0}, "b = 7.0")],
)
def test_a_default_must_be_a_point_of_the_search_space(default: dict[str, float], named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        DefaultRand(default).fit([Job(DATA, 0)])


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_box_holds_the_best_inputs_and_is_tried_first(share: float) -> None:
    best = []
    for task in DATA.tasks:
        ranked = sorted(range(len(task.y)), key=lambda row: -task.y[row])
        best += [task.x[row] for row in ranked[: max(1, int(np.ceil(share * len(task.y))))]]
    lower, upper = np.min(best, axis=0), np.max(best, axis=0)
    (box,) = BoxRand(share).fit([Job(DATA, 0)])
    np.testing.assert_array_equal(box.lower, lower)
    np.testing.assert_array_equal(box.upper, upper)
    grid = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 5)] * 2), axis=-1).reshape(-1, 2)
    x = np.concatenate([grid, [lower, upper]])
    inside = np.flatnonzero(((x >= lower) & (x <= upper)).all(axis=1)).tolist()
    assert 2 <= len(inside) < len(x)
    orders = [
        choices(BoxRand(share), DATA, new_task(x), iterations=len(x), seed=seed)[0] for seed in range(3)
    ]
    for order in orders:
        assert sorted(order[: len(inside)]) == inside
        assert sorted(order) == list(range(len(x)))
    assert len({tuple(order) for order in orders}) == 3


@pytest.mark.parametrize("method", [*ORDERS, Table()], ids=lambda method: type(method).__name__)
def test_the_values_of_the_new_task_decide_nothing_but_what_is_observed(method: Method) -> None:
    first, second = (choices(method, DATA, new_task(MIXED, seed), iterations=12)[0] for seed in (1, 2))
    if isinstance(method, Table):
        assert first[0] == second[0]
        assert first != second
    else:
        assert first == second


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_share_is_between_0_and_1(share: float) -> None:
    with pytest.raises(InvalidInputError, match="share"):
        BoxRand(share)
