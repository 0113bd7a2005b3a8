from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from hyperbo.compute.optimizers import LBFGSState, best_start, continue_lbfgs, minimise_lbfgs, start_lbfgs

pytestmark = pytest.mark.usefixtures("x64")

START = np.array([-1.2, 1.0])
# What programs that differ have in common, to the last bit, they have as they are compiled outside the tests.
as_used = partial(jax.jit, compiler_options={"xla_cpu_use_fusion_emitters": True})


def rosenbrock(x: Any) -> Any:
    return 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2


@pytest.fixture(scope="module")
def whole() -> tuple[np.ndarray, np.ndarray]:
    point, values = as_used(lambda x: minimise_lbfgs(rosenbrock, x, 60))(jnp.asarray(START))
    return np.asarray(point), np.asarray(values)


def test_l_bfgs_finds_the_minimum_that_scipy_finds_and_records_every_value(
    whole: tuple[np.ndarray, np.ndarray],
) -> None:
    point, values = whole
    found = minimize(rosen, START, jac=rosen_der, method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(point, found, atol=1e-6)
    assert values.shape == (60,)
    assert values[0] == pytest.approx(rosen(START))
    assert (np.diff(values) <= 1e-12).all()


def in_parts(iterations: int, tolerance: float | None = None) -> list[LBFGSState]:
    """The states after every part of a minimisation of 60 iterations."""
    traced = []

    @as_used
    def go_on(state: LBFGSState) -> LBFGSState:
        traced.append(state)
        return continue_lbfgs(rosenbrock, state, iterations, tolerance)

    states = [as_used(lambda x: start_lbfgs(rosenbrock, x, 60))(jnp.asarray(START))]
    for _ in range(-(-60 // iterations)):
        states.append(go_on(states[-1]))
    assert len(traced) == 1  # one compiled program serves every part
    return states


@pytest.mark.slow
def test_a_minimisation_in_parts_is_that_in_one_to_the_last_bit(whole: tuple[np.ndarray, np.ndarray]) -> None:
    states, (_, at_once) = in_parts(7), in_parts(60)
    assert [int(state.done) for state in states] == [*range(0, 60, 7), 60]
    jax.tree.map(np.testing.assert_array_equal, states[-1], at_once)
    np.testing.assert_array_equal(states[3].values[:21], at_once.values[:21])
    # A loop of known length may round otherwise.
    np.testing.assert_allclose(at_once.values, whole[1], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(at_once.params, whole[0], rtol=1e-9)


def test_an_early_stop_is_a_beginning_of_the_whole_run(whole: tuple[np.ndarray, np.ndarray]) -> None:
    states = in_parts(10, tolerance=1e-9)
    point, values = states[-1].params, np.asarray(states[-1].values)
    last = int(states[-1].done) - 1
    np.testing.assert_allclose(values[: last + 1], whole[1][: last + 1], rtol=1e-9, atol=1e-15)
    assert (values[last:] == values[last]).all()
    assert last < 50
    np.testing.assert_allclose(point, whole[0], atol=1e-3)
    # Below the tolerance only where it stopped.
    falls = -np.diff(whole[1][: last + 1])
    assert (falls[:-1] > 1e-9).all()
    assert falls[-1] <= 1e-9
    # Once stopped, always stopped.
    jax.tree.map(np.testing.assert_array_equal, states[-1], states[-2])


@pytest.mark.parametrize(
    ("ends", "best"),
    [([3.0, 1.0, 2.0], 1), ([np.nan, 2.0], 1), ([np.inf, np.nan, 5.0], 2), ([np.nan, np.nan], 0), ([4.0], 0)],
)
def test_the_best_start_ended_lowest_and_not_in_nan(ends: list[float], best: int) -> None:
    assert int(best_start(jnp.array(ends))) == best
