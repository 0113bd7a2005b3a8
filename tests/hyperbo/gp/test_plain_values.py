"""A Gaussian process from named values, and its moments on plain arrays, under the default precision."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import kernel_matrix, matern52
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp import KERNELS, GaussianProcess, posterior_moments, prior_moments

Array = np.ndarray[Any, np.dtype[np.float64]]
LENGTHSCALES = np.array([0.3, 1.7])


def inverse_softplus(positive: Any) -> Any:
    return np.log(np.expm1(np.asarray(positive, float)))


def layers(seed: int, sizes: tuple[int, ...]) -> list[tuple[Array, Array]]:
    random = np.random.default_rng(seed)
    return [(random.normal(size=pair), random.normal(size=pair[1])) for pair in itertools.pairwise(sizes)]


def features(network: list[tuple[Array, Array]], x: Array) -> Array:
    for weight, bias in network:
        x = np.tanh(x @ weight + bias)
    return x


def case(seed: int, count: int) -> tuple[GaussianProcess, Any, Any]:
    """A model with every part, its mean and its kernel written down in NumPy."""
    random, network = np.random.default_rng(seed), layers(seed, (2, 3))
    lengthscales, weights = random.uniform(0.2, 2.0, 3), random.normal(size=3)
    gp = GaussianProcess.from_values(
        lengthscales=lengthscales,
        signal_variance=1.7,
        noise_variance=0.05,
        constant=0.4,
        weights=weights,
        layers=network,
    )

    def mean(x: Array) -> Array:
        return features(network, x) @ weights + 0.4

    def kernel(a: Array, b: Array) -> Array:
        return matern52(features(network, a), features(network, b), lengthscales, 1.7)

    return gp, mean, kernel


@pytest.mark.parametrize("name", KERNELS)
def test_values_are_those_that_stand_in_the_formulas(name: str) -> None:
    x = np.random.default_rng(0).random((4, 2))
    lengthscales = LENGTHSCALES[:1] if name == "linear" else LENGTHSCALES
    variance = {} if name == "dot_product" else {"signal_variance": 1.7}
    gp = GaussianProcess.from_values(lengthscales=lengthscales, noise_variance=0.05, kernel=name, **variance)
    raw = [inverse_softplus(LENGTHSCALES)] if name == "dot_product" else [inverse_softplus(1.7)]
    if name == "linear":
        raw = [inverse_softplus(np.sqrt(1.7)), inverse_softplus(LENGTHSCALES[0])]
    elif name != "dot_product":
        raw.append(inverse_softplus(LENGTHSCALES))
    expected = kernel_matrix(name, raw, x, x)
    found = prior_moments(gp, x)
    assert_allclose(found.covariance, expected, rtol=1e-10)
    assert not found.mean.any()
    assert_allclose(prior_moments(gp, x, noise=True).covariance, expected + 0.05 * np.eye(4), rtol=1e-10)


@given(
    st.sampled_from(KERNELS),
    st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3),
    st.floats(1e-3, 1e3),
    st.floats(1e-6, 10.0),
    st.none() | st.floats(-5.0, 5.0),
    st.none() | st.lists(st.floats(-5.0, 5.0), min_size=3, max_size=3),
    st.booleans(),
)
def test_values_come_back(
    kernel: str, lengthscales: Any, signal: float, noise: float, constant: Any, weights: Any, deep: bool
) -> None:
    given_values = {
        "lengthscales": lengthscales[:1] if kernel == "linear" else lengthscales,
        "signal_variance": 1.0 if kernel == "dot_product" else signal,
        "noise_variance": noise,
        "kernel": kernel,
        "constant": constant,
        "weights": weights,
        "layers": layers(0, (2, 4, 3)) if deep else (),
    }
    gp = GaussianProcess.from_values(**given_values)
    values = gp.values()
    assert values["kernel"] == kernel
    for name in ("lengthscales", "signal_variance", "noise_variance"):
        assert_allclose(values[name], given_values[name], rtol=1e-10)
    assert values["constant"] == constant
    assert values["weights"] is weights is None or values["weights"].tolist() == weights
    again = GaussianProcess.from_values(**values)
    jax.tree.map(lambda found, expected: assert_allclose(found, expected, rtol=1e-12, atol=1e-12), again, gp)
    assert {leaf.dtype for leaf in jax.tree.leaves(again)} == {np.dtype(np.float64)}


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("observed", [0, 1, 6])
def test_posterior_is_the_dense_formula(observed: int, noise: bool) -> None:
    gp, mean, kernel = case(1, 3)
    random = np.random.default_rng(2)
    x, y, at = random.random((observed, 2)), random.normal(size=observed), random.random((5, 2))
    found = posterior_moments(gp, x, y, at, noise=noise)
    solved = np.linalg.solve(kernel(x, x) + 0.05 * np.eye(observed), kernel(x, at))
    covariance = kernel(at, at) - kernel(at, x) @ solved + noise * 0.05 * np.eye(5)
    assert_allclose(found.mean, mean(at) + solved.T @ (y - mean(x)), rtol=1e-10, atol=1e-10)
    assert_allclose(found.covariance, covariance, rtol=1e-10, atol=1e-10)
    assert_allclose(found.variance, np.diag(covariance), rtol=1e-10, atol=1e-10)
    assert found.mean.dtype == found.covariance.dtype == np.float64
    assert jnp.zeros(1).dtype == jnp.float32  # the caller's precision is as it was


@given(st.integers(0, 2**32 - 1))
def test_the_order_of_observations_does_not_matter(seed: int) -> None:
    gp, _, _ = case(3, 3)
    random = np.random.default_rng(seed)
    x, y, at = random.random((5, 2)), random.normal(size=5), random.random((3, 2))
    order = random.permutation(5)
    whole, shuffled = (posterior_moments(gp, x[rows], y[rows], at) for rows in (np.arange(5), order))
    assert_allclose(whole.mean, shuffled.mean, rtol=0, atol=1e-10)
    assert_allclose(whole.covariance, shuffled.covariance, rtol=0, atol=1e-10)
    assert (whole.variance <= prior_moments(gp, at).variance + 1e-12).all()


def test_arrays_of_jax_are_taken_like_those_of_numpy() -> None:
    gp, _, _ = case(1, 3)
    x = np.array([[0.25, 0.5], [0.75, 0.125]])
    plain = posterior_moments(gp, x, [0.5, 0.25], x)
    of_jax = posterior_moments(gp, jnp.asarray(x), jnp.asarray([0.5, 0.25]), jnp.asarray(x))
    np.testing.assert_array_equal(of_jax.mean, plain.mean)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lengthscales": [1.0, 0.0]}, "not positive"),
        ({"lengthscales": []}, "lengthscales is empty"),
        ({"lengthscales": ["short"]}, "lengthscales is not an array of numbers"),
        ({"lengthscales": [1.0], "weights": [[1.0], [1.0, 2.0]]}, "weights is not an array of numbers"),
        ({"lengthscales": np.array(1.0)}, "shape"),
        ({"lengthscales": [1.0], "noise_variance": 0.0}, "noise_variance"),
        ({"lengthscales": [1.0], "signal_variance": np.inf}, "not finite"),
        ({"lengthscales": [1.0], "kernel": "cosine"}, "unknown kernel"),
        ({"lengthscales": [1.0, 2.0], "kernel": "linear"}, "one length scale"),
        ({"lengthscales": [1.0], "kernel": "dot_product", "signal_variance": 2.0}, "no signal variance"),
        ({"lengthscales": [1.0], "weights": [1.0, 2.0]}, "numbers of features differ"),
        ({"lengthscales": [1.0], "layers": [(np.eye(2), np.zeros(2))]}, "numbers of features differ"),
        ({"lengthscales": [1.0], "layers": [(np.eye(2), np.zeros(3))]}, "layer 0"),
    ],
)
def test_values_that_make_no_process_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        GaussianProcess.from_values(**values)


@pytest.mark.parametrize(
    ("x", "y", "at"),
    [
        ([0.5], [1.0], [[0.5]]),
        ([[0.5]], [1.0, 2.0], [[0.5]]),
        ([[0.5]], [np.nan], [[0.5]]),
        ([[0.5]], [1.0], [[0.5, 0.5]]),
    ],
)
def test_arrays_that_do_not_fit_are_refused(x: Any, y: Any, at: Any) -> None:
    with pytest.raises(InvalidInputError):
        posterior_moments(GaussianProcess.from_values(lengthscales=[1.0]), x, y, at)


@pytest.mark.parametrize(
    "values",
    [
        {"lengthscales": [1.0, 2.0]},
        {"lengthscales": [1.0, 2.0], "kernel": "dot_product"},
        {"lengthscales": [1.0], "kernel": "linear", "weights": [1.0, 2.0]},
        {"lengthscales": [1.0], "layers": [(np.ones((2, 1)), np.zeros(1))]},
    ],
)
@pytest.mark.parametrize("columns", [1, 3])
def test_inputs_of_another_dimension_are_refused(values: dict[str, Any], columns: int) -> None:
    gp = GaussianProcess.from_values(**values)
    assert gp.dimension == 2
    with pytest.raises(InvalidInputError, match=r"x has .* dimension 2"):
        prior_moments(gp, np.zeros((3, columns)))
    with pytest.raises(InvalidInputError, match=r"at has .* dimension 2"):
        posterior_moments(gp, np.zeros((1, 2)), [0.0], np.zeros((3, columns)))


def test_a_linear_kernel_alone_takes_inputs_of_any_dimension() -> None:
    gp = GaussianProcess.from_values(lengthscales=[1.0], kernel="linear")
    assert gp.dimension is None
    assert prior_moments(gp, np.zeros((1, 4))).mean.tolist() == [0.0]


def test_jitter_is_warned_of_and_its_end_is_an_error() -> None:
    gp = GaussianProcess.from_values(lengthscales=[1.0], noise_variance=1e-20)
    x = np.full((3, 1), 0.5)
    with pytest.warns(UserWarning, match="jitter"):
        posterior_moments(gp, x, np.zeros(3), x)
    with pytest.raises(NumericalError):
        posterior_moments(gp, x, np.array([1e308, -1e308, 1e308]), x)
