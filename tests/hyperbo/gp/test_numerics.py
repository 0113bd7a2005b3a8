from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from hyperbo.errors import NumericalError
from hyperbo.gp.numerics import (
    cholesky,
    double_precision,
    factorise,
    gaussian_nll,
    inverse_softplus,
    matern52_of_squared_distance,
    softplus,
    squared_distances,
)

pytestmark = pytest.mark.usefixtures("x64")

M = 6
nll_and_gradients = jax.jit(jax.value_and_grad(gaussian_nll, argnums=(0, 1), has_aux=True))
factorise_compiled = jax.jit(factorise)


def random_covariance(seed: int, size: int = M) -> np.ndarray:
    root = np.random.default_rng(seed).normal(size=(size, size))
    return root @ root.T + 0.3 * np.eye(size)


def all_rows(size: int = M) -> jax.Array:
    return jnp.ones(size, bool)


def evaluate(
    residuals: np.ndarray, covariance: np.ndarray, mask: Any = None
) -> tuple[float, float, Any, Any]:
    """Value, jitter and the two gradients."""
    rows = all_rows(len(residuals)) if mask is None else jnp.asarray(mask)
    (value, jitter), gradients = nll_and_gradients(jnp.asarray(residuals), jnp.asarray(covariance), rows)
    return float(value), float(jitter), *map(np.asarray, gradients)


# softplus


@given(st.floats(1e-12, 700.0))
def test_a_positive_value_survives_inverse_softplus(value: float) -> None:
    assert float(softplus(inverse_softplus(jnp.asarray(value)))) == pytest.approx(value, rel=1e-12)


def test_softplus_at_the_extremes() -> None:
    raw = np.array([-700.0, -40.0, 0.0, 40.0, 700.0])
    positive = np.asarray(softplus(jnp.asarray(raw)))
    np.testing.assert_allclose(positive, [math.exp(-700), math.exp(-40), math.log(2), 40, 700], rtol=1e-14)
    np.testing.assert_allclose(inverse_softplus(jnp.asarray(positive)), raw, rtol=1e-13, atol=1e-15)
    slopes = jax.vmap(jax.grad(softplus))(jnp.asarray(raw))
    np.testing.assert_allclose(slopes, 1.0 / (1.0 + np.exp(-raw)), rtol=1e-13)


# Distances and Matern 5/2; whole kernels are tested in `test_structures`


def central_difference(function: Any, at: np.ndarray, index: tuple[int, ...], step: float = 1e-5) -> float:
    up, down = at.copy(), at.copy()
    up[index] += step
    down[index] -= step
    return (function(up) - function(down)) / (2.0 * step)


def test_matern_slope_in_the_squared_distance() -> None:
    slope = jax.grad(matern52_of_squared_distance)
    assert float(slope(jnp.asarray(0.0))) == pytest.approx(-5.0 / 6.0, rel=1e-15)
    for squared in (1e-8, 0.3, 20.0):
        scaled = math.sqrt(5.0 * squared)
        expected = -5.0 / 6.0 * (1.0 + scaled) * math.exp(-scaled)
        assert float(slope(jnp.asarray(squared))) == pytest.approx(expected, rel=1e-13)


def test_squared_distances_are_never_negative() -> None:
    points = 1e4 + 1e-6 * np.random.default_rng(2).normal(size=(20, 3))
    found = np.asarray(squared_distances(jnp.asarray(points), jnp.asarray(points)))
    assert (found >= 0.0).all()
    far = np.random.default_rng(3).normal(size=(7, 3))
    explicit = ((far[:, None] - far[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared_distances(jnp.asarray(far), jnp.asarray(far)), explicit, atol=1e-13)


# gaussian_nll


def test_nll_is_the_density_of_scipy() -> None:
    random = np.random.default_rng(4)
    residuals, covariance = random.normal(size=(M, 1)), random_covariance(4)
    value, jitter, _, _ = evaluate(residuals, covariance)
    expected = -multivariate_normal(np.zeros(M), covariance).logpdf(residuals[:, 0])
    assert value == pytest.approx(expected, rel=1e-12)
    assert jitter == 0.0


def plain_nll(residuals: Any, covariance: Any, module: Any) -> Any:
    """By solve and slogdet, in NumPy or in JAX; unbatched."""
    quadratic = module.sum(residuals * module.linalg.solve(covariance, residuals))
    log_determinant = module.linalg.slogdet(covariance)[1]
    return 0.5 * (quadratic + log_determinant + len(residuals) * math.log(2.0 * math.pi))


def test_nll_of_columns_is_their_quadratic_forms_and_one_determinant() -> None:
    residuals, covariance = np.random.default_rng(5).normal(size=(M, 3)), random_covariance(5)
    value = evaluate(residuals, covariance)[0]
    assert value == pytest.approx(plain_nll(residuals, covariance, np), rel=1e-12)


def test_nll_gradients_are_those_of_finite_differences_and_of_autodiff() -> None:
    residuals, covariance = np.random.default_rng(6).normal(size=(M, 3)), random_covariance(6)
    _, _, of_residuals, of_covariance = evaluate(residuals, covariance)

    differences = [
        [central_difference(lambda v: plain_nll(v, covariance, np), residuals, (i, j)) for j in range(3)]
        for i in range(M)
    ]
    np.testing.assert_allclose(of_residuals, differences, rtol=1e-7, atol=1e-8)
    differences = [
        [central_difference(lambda v: plain_nll(residuals, v, np), covariance, (i, j)) for j in range(M)]
        for i in range(M)
    ]
    np.testing.assert_allclose(of_covariance, differences, rtol=1e-6, atol=1e-8)

    automatic = jax.jit(jax.grad(lambda r, c: plain_nll(r, c, jnp), argnums=(0, 1)))
    by_residuals, by_covariance = automatic(jnp.asarray(residuals), jnp.asarray(covariance))
    np.testing.assert_allclose(of_residuals, by_residuals, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(of_covariance, by_covariance, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("garbage", [0.0, 1e6, np.nan])
def test_padding_changes_nothing(garbage: float) -> None:
    residuals, covariance = np.random.default_rng(7).normal(size=(M, 3)), random_covariance(7)
    value, _, of_residuals, of_covariance = evaluate(residuals, covariance)
    rows = np.array([0, 2, 3, 5, 6, 8])  # where the true rows stand among the padded ones
    padded_residuals, padded_covariance = np.full((9, 3), garbage), np.full((9, 9), garbage)
    padded_residuals[rows], padded_covariance[np.ix_(rows, rows)] = residuals, covariance
    mask = np.isin(np.arange(9), rows)

    found, jitter, by_residuals, by_covariance = evaluate(padded_residuals, padded_covariance, mask)
    assert found == pytest.approx(value, rel=1e-12)
    assert jitter == 0.0
    np.testing.assert_allclose(by_residuals[rows], of_residuals, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(by_covariance[np.ix_(rows, rows)], of_covariance, rtol=1e-12, atol=1e-13)
    assert (by_residuals[~mask] == 0.0).all()
    assert (by_covariance[~mask] == 0.0).all()
    assert (by_covariance[:, ~mask] == 0.0).all()


def test_a_task_without_observations_has_nll_zero() -> None:
    value, jitter, of_residuals, of_covariance = evaluate(np.ones((M, 3)), -np.eye(M), np.zeros(M, bool))
    assert value == 0.0
    assert jitter == 0.0
    assert not of_residuals.any()
    assert not of_covariance.any()


def test_one_observation() -> None:
    value, _, of_residuals, of_covariance = evaluate(np.array([[3.0]]), np.array([[4.0]]))
    assert value == pytest.approx(0.5 * (9.0 / 4.0 + math.log(4.0) + math.log(2.0 * math.pi)), rel=1e-14)
    assert of_residuals[0, 0] == pytest.approx(3.0 / 4.0, rel=1e-14)
    assert of_covariance[0, 0] == pytest.approx(0.5 * (1.0 / 4.0 - 9.0 / 16.0), rel=1e-14)


@given(st.integers(0, 2**32 - 1), st.permutations(range(M)), st.integers(0, M))
def test_order_of_observations_does_not_matter(seed: int, permuted: list[int], count: int) -> None:
    residuals, covariance = np.random.default_rng(seed).normal(size=(M, 3)), random_covariance(seed)
    mask, order = np.arange(M) < count, np.array(permuted)
    value, _, of_residuals, of_covariance = evaluate(residuals, covariance, mask)
    other = evaluate(residuals[order], covariance[np.ix_(order, order)], mask[order])
    assert other[0] == pytest.approx(value, rel=1e-11, abs=1e-11)
    np.testing.assert_allclose(other[2], of_residuals[order], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(other[3], of_covariance[np.ix_(order, order)], rtol=1e-9, atol=1e-10)


# factorise


def smallest_working_jitter(matrix: np.ndarray) -> float:
    scale = np.diag(matrix).mean()
    for jitter in (0.0, *(10.0**power for power in range(-10, -3))):
        try:
            factor = np.linalg.cholesky(matrix + jitter * scale * np.eye(len(matrix)))
        except np.linalg.LinAlgError:
            continue
        if np.isfinite(factor).all():
            return jitter
    return math.nan


def with_smallest_eigenvalue(value: float) -> np.ndarray:
    basis, _ = np.linalg.qr(np.random.default_rng(9).normal(size=(M, M)))
    matrix = basis @ np.diag([value, 0.5, 1.0, 1.0, 2.0, 3.0]) @ basis.T
    return 100.0 * 0.5 * (matrix + matrix.T)  # a scale far from the 1 of padded rows


@pytest.mark.parametrize(("smallest", "expected"), [(1e-3, 0.0), (-3e-9, 1e-8), (-3e-7, 1e-6), (-5e-5, 1e-4)])
def test_the_smallest_working_jitter_is_taken_and_reported(smallest: float, expected: float) -> None:
    matrix = with_smallest_eigenvalue(smallest)
    assert smallest_working_jitter(matrix) == pytest.approx(expected, rel=1e-9)
    factor, inverse_factor, jitter = map(np.asarray, factorise_compiled(jnp.asarray(matrix), all_rows()))
    assert float(jitter) == pytest.approx(expected, rel=1e-9)
    jittered = matrix + float(jitter) * np.diag(matrix).mean() * np.eye(M)
    np.testing.assert_allclose(factor @ factor.T, jittered, rtol=0, atol=1e-12 * matrix.max())
    assert (np.triu(factor, 1) == 0.0).all()
    # The pivot of a jittered matrix is small: its inverse loses as many digits as it has.
    np.testing.assert_allclose(inverse_factor @ factor, np.eye(M), atol=1e-8)


def test_jitter_and_its_effect_do_not_depend_on_padding() -> None:
    matrix, residuals = with_smallest_eigenvalue(-3e-7), np.random.default_rng(10).normal(size=(M, 1))
    value, jitter, _, gradient = evaluate(residuals, matrix)
    padded = np.eye(40)
    padded[:M, :M] = matrix
    tall = np.concatenate([residuals, np.zeros((40 - M, 1))])
    found, padded_jitter, _, padded_gradient = evaluate(tall, padded, np.arange(40) < M)
    assert padded_jitter == jitter > 0.0
    # One pivot is about 1e-6 of the matrix: 1e-16 of rounding becomes 1e-10 of the quadratic form.
    assert found == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(padded_gradient[:M, :M], gradient, rtol=1e-6)


@pytest.mark.parametrize("hopeless", [np.diag([1.0, 1.0, 1.0, 1.0, 1.0, -1.0]), np.full((M, M), np.nan)])
def test_a_hopeless_matrix_gives_nan(hopeless: np.ndarray) -> None:
    assert math.isnan(smallest_working_jitter(hopeless))
    factorisation = factorise_compiled(jnp.asarray(hopeless), all_rows())
    assert np.isnan(np.asarray(factorisation.factor)).any()
    assert math.isnan(evaluate(np.ones((M, 3)), hopeless)[0])


def test_repeated_inputs_without_noise_are_factorised_by_jitter() -> None:
    ones = np.ones((M, M))
    expected = smallest_working_jitter(ones)
    assert expected > 0.0
    assert float(factorise_compiled(jnp.asarray(ones), all_rows()).jitter) == pytest.approx(expected)


def test_each_matrix_of_a_batch_gets_its_own_jitter() -> None:
    matrices = [with_smallest_eigenvalue(v) for v in (1e-3, -3e-9, -5e-5, -1.0)]
    masks = np.ones((4, M), bool)
    masks[0, 4:] = False
    batch = jax.jit(jax.vmap(factorise))(jnp.asarray(np.stack(matrices)), jnp.asarray(masks))
    for number, matrix in enumerate(matrices):
        alone = factorise_compiled(jnp.asarray(matrix), jnp.asarray(masks[number]))
        for of_batch, of_one in zip(batch, alone, strict=True):
            np.testing.assert_allclose(of_batch[number], of_one, rtol=1e-12)
    np.testing.assert_allclose(batch.jitter[:3], [0.0, 1e-8, 1e-4], rtol=1e-9)


def test_a_factor_for_a_report_is_exact_or_an_error_that_names_the_matrix() -> None:
    matrices = np.stack([with_smallest_eigenvalue(1e-3), np.eye(M)])
    factors = cholesky(matrices, "both")
    np.testing.assert_allclose(factors @ factors.transpose(0, 2, 1), matrices, rtol=0, atol=1e-12 * 300.0)
    for wrong in (with_smallest_eigenvalue(-1e-3), np.full((M, M), np.nan)):
        with pytest.raises(NumericalError, match="the sample covariance is not positive definite"):
            cholesky(wrong, "the sample covariance")


# precision


def test_double_precision_holds_inside_and_leaves_no_trace() -> None:
    def dtype_of_a_number() -> np.dtype[Any]:
        return jnp.asarray(1.0).dtype

    with jax.enable_x64(False):
        assert double_precision(dtype_of_a_number)() == np.float64
        assert dtype_of_a_number() == np.float32
