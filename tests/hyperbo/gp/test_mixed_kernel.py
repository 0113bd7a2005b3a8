"""The kernel over a space of numbers, levels and conditions, against its formula written out by parameter."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from hyperbo.data import Choice, Condition, Parameter, SearchSpace
from hyperbo.gp import GaussianProcess
from hyperbo.gp.numerics import double_precision

SPACE = SearchSpace(
    (
        Parameter("rate", 1e-4, 1.0, "log"),
        Parameter("depth", 1, 5, integer=True),
        Choice("activation", ("relu", "tanh", "gelu")),
        Choice("optimizer", ("sgd", "adam")),
        Parameter("momentum", 0.0, 1.0, condition=Condition("optimizer", ("sgd",))),
    )
)
SCALES = {
    **{"rate": 0.3, "depth": 0.7, "activation=relu": 0.5, "activation=tanh": 1.5, "activation=gelu": 2.5},
    **{"optimizer": 0.9, "momentum": 0.4, "momentum:active": 1.1},
}
GP = GaussianProcess.from_values(lengthscales=[SCALES[name] for name in SPACE.columns], signal_variance=2.0)
POINTS = SPACE.values(SPACE.from_unit(np.random.default_rng(0).uniform(size=(12, SPACE.dimension))))


def plain_covariance(a: dict, b: dict) -> float:
    """2 (1 + q + q^2 / 3) exp(-q), q = sqrt(5 r^2); r^2 is a sum over the parameters."""
    squared = (np.log10(a["rate"] / b["rate"]) / 4 / SCALES["rate"]) ** 2
    squared += ((a["depth"] - b["depth"]) / 4 / SCALES["depth"]) ** 2
    if a["activation"] != b["activation"]:
        squared += sum(SCALES[f"activation={each['activation']}"] ** -2 for each in (a, b))
    if a["optimizer"] != b["optimizer"]:
        squared += SCALES["optimizer"] ** -2 + SCALES["momentum:active"] ** -2
    # An inactive momentum counts as one half.
    squared += ((a.get("momentum", 0.5) - b.get("momentum", 0.5)) / SCALES["momentum"]) ** 2
    q = np.sqrt(5.0 * squared)
    return 2.0 * (1.0 + q + q**2 / 3.0) * np.exp(-q)


@double_precision
def covariance(lengthscales: np.ndarray, x: np.ndarray) -> jax.Array:
    gp = GaussianProcess.from_values(lengthscales=lengthscales, signal_variance=2.0)
    return gp.kernel(jnp.asarray(x), jnp.asarray(x))


def test_levels_and_inactive_parameters_are_as_far_apart_as_the_formula_says() -> None:
    x = SPACE.to_unit(SPACE.codes(POINTS))
    expected = [[plain_covariance(a, b) for b in POINTS] for a in POINTS]
    np.testing.assert_allclose(covariance(np.array([*SCALES.values()]), x), expected, atol=1e-12)


def test_the_kernel_is_constant_between_two_integers_and_two_levels() -> None:
    cube = np.random.default_rng(1).uniform(size=(50, SPACE.dimension))
    seen = SPACE.to_unit(SPACE.from_unit(cube))
    depth = SPACE.columns.index("depth")
    assert set(seen[:, depth]) <= {0.0, 0.25, 0.5, 0.75, 1.0}
    for a, b in itertools.combinations(range(50), 2):
        if round(4 * cube[a, depth]) == round(4 * cube[b, depth]):
            assert seen[a, depth] == seen[b, depth]


@double_precision
def test_gradients_along_numbers_are_those_of_differences() -> None:
    x = jnp.asarray(SPACE.to_unit(SPACE.codes(POINTS)))

    def total(moved: jax.Array) -> jax.Array:
        return jnp.sum(GP.kernel(moved, x) * jnp.arange(1.0, 13.0))

    gradient = np.asarray(jax.grad(total)(x))
    for column in (SPACE.columns.index("rate"), SPACE.columns.index("momentum")):
        for row in range(3):
            step = np.zeros(x.shape)
            step[row, column] = 1e-6
            difference = (total(x + step) - total(x - step)) / 2e-6
            np.testing.assert_allclose(gradient[row, column], difference, rtol=1e-5, atol=1e-7)
