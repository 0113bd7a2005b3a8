from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from hyperbo.optimizers import minimise_from_starts, minimise_lbfgs

pytestmark = pytest.mark.usefixtures("x64")


def rosenbrock(x: Any) -> Any:
    return 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2


def two_valleys(x: Any) -> Any:
    """Minima near -1 (value 1) and +1 (value 0)."""
    return jnp.sum((x**2 - 1.0) ** 2) + 0.5 * jnp.sum(1.0 - x)


def test_l_bfgs_finds_the_minimum_that_scipy_finds_and_records_every_value() -> None:
    start = np.array([-1.2, 1.0])
    point, values = jax.jit(lambda x: minimise_lbfgs(rosenbrock, x, 60))(jnp.asarray(start))
    found = minimize(rosen, start, jac=rosen_der, method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(point, found, atol=1e-6)
    assert values.shape == (60,)
    assert values[0] == pytest.approx(rosen(start))
    assert (np.diff(values) <= 1e-12).all()


def test_an_early_stop_is_a_beginning_of_the_whole_run() -> None:
    start = jnp.array([-1.2, 1.0])
    whole_point, whole = jax.jit(lambda x: minimise_lbfgs(rosenbrock, x, 60))(start)
    point, values = jax.jit(lambda x: minimise_lbfgs(rosenbrock, x, 60, tolerance=1e-9))(start)
    changes = np.flatnonzero(np.diff(values) != 0.0)
    last = changes[-1] + 1
    np.testing.assert_allclose(values[: last + 1], whole[: last + 1], rtol=1e-9, atol=1e-15)
    assert (values[last:] == values[last]).all()
    assert last < 50
    np.testing.assert_allclose(point, whole_point, atol=1e-3)
    # Below the tolerance only where it stopped.
    falls = -np.diff(np.asarray(whole[: last + 1]))
    assert (falls[:-1] > 1e-9).all()


def test_of_several_starts_the_best_end_counts() -> None:
    starts = jnp.array([[-1.5], [0.9], [-0.8]])
    alone = jax.jit(lambda start: minimise_lbfgs(two_valleys, start, 20))
    ends = [alone(start) for start in starts]
    lowest = int(np.argmin([float(two_valleys(end)) for end, _ in ends]))
    assert lowest == 1
    point, values = jax.jit(lambda s: minimise_from_starts(two_valleys, s, 20))(starts)
    np.testing.assert_allclose(point, ends[1][0], rtol=1e-12)
    np.testing.assert_allclose(values, ends[1][1], rtol=1e-9, atol=1e-15)


def test_a_start_that_ends_in_nan_is_never_the_best() -> None:
    def objective(x: Any) -> Any:
        return jnp.sum(jnp.where(x > 5.0, jnp.nan, x**2))

    starts = jnp.array([[9.0], [2.0]])
    point, _ = jax.jit(lambda starts: minimise_from_starts(objective, starts, 10))(starts)
    assert abs(float(point[0])) < 1e-6
