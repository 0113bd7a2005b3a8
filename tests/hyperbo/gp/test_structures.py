from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from gp_cases import SPACE, kernel_matrix, random_structure, softplus, structure_moments
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import MLP, Architecture, initialise, initialise_mlp
from hyperbo.gp.kernels import KERNELS, Kernel, Stationary, initialise_kernel
from hyperbo.gp.means import MEANS, Linear
from hyperbo.gp.numerics import matern32_of_squared_distance
from hyperbo.objectives.nll import task_nll

pytestmark = pytest.mark.usefixtures("x64")


def random_kernel(name: str, seed: int, width: int = 2) -> Kernel:
    random = np.random.default_rng(seed)
    kernel = initialise_kernel(name, width, jnp.asarray(0.0), jnp.asarray(0.0))
    return jax.tree.map(lambda leaf: jnp.asarray(random.normal(size=leaf.shape)), kernel)


def raw(kernel: Kernel) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(kernel)]


@jax.jit
def gram_and_diagonal(kernel: Kernel, a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    return kernel(a, b), kernel.diagonal(a)


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_its_formula(name: str) -> None:
    random = np.random.default_rng(0)
    a, b, kernel = random.normal(size=(4, 2)), random.normal(size=(3, 2)), random_kernel(name, seed=0)
    b[0] = a[0]
    gram, diagonal = gram_and_diagonal(kernel, jnp.asarray(a), jnp.asarray(b))
    # At distance zero, cancellation leaves a squared distance of about 1e-15.
    np.testing.assert_allclose(gram, kernel_matrix(name, raw(kernel), a, b), rtol=1e-11, atol=1e-13)
    expected = np.diag(kernel_matrix(name, raw(kernel), a, a))
    np.testing.assert_allclose(diagonal, expected, rtol=1e-13)


@jax.jit
def weighted_gradient(weights: jax.Array, kernel: Kernel, a: jax.Array) -> Any:
    return jax.grad(lambda kernel, a: jnp.sum(weights * kernel(a, a)), argnums=(0, 1))(kernel, a)


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_gradients_are_finite_differences_also_at_distance_zero(name: str) -> None:
    random = np.random.default_rng(1)
    a, weights, kernel = random.normal(size=(4, 2)), random.normal(size=(4, 4)), random_kernel(name, seed=1)
    of_kernel, of_a = weighted_gradient(jnp.asarray(weights), kernel, jnp.asarray(a))
    parameters = raw(kernel)

    def value(parameters: list[np.ndarray], a: np.ndarray) -> float:
        return float((weights * kernel_matrix(name, parameters, a, a)).sum())

    for number, found in enumerate(raw(of_kernel)):

        def of_one(changed: np.ndarray, number: int = number) -> float:
            return value([*parameters[:number], changed, *parameters[number + 1 :]], a)

        np.testing.assert_allclose(found, differences(of_one, parameters[number]), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(of_a, differences(lambda v: value(parameters, v), a), rtol=1e-6, atol=1e-7)

    a[1:] = a[0]  # every pair at distance zero
    for leaf in jax.tree.leaves(weighted_gradient(jnp.asarray(weights), kernel, jnp.asarray(a))):
        assert np.isfinite(leaf).all()


def differences(function: Any, at: np.ndarray, step: float = 1e-5) -> np.ndarray:
    gradient = np.zeros(at.shape)
    for index in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[index] += step
        down[index] -= step
        gradient[index] = (function(up) - function(down)) / (2.0 * step)
    return gradient


def test_matern32_slope_in_the_squared_distance() -> None:
    slope = jax.grad(matern32_of_squared_distance)
    for squared in (0.0, 1e-300, 1e-8, 0.3, 20.0):
        expected = -1.5 * math.exp(-math.sqrt(3.0 * squared))
        assert float(slope(jnp.asarray(squared))) == pytest.approx(expected, rel=1e-13)


@settings(max_examples=60)
@given(
    st.sampled_from(KERNELS),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-3, 1.0, 30.0]),
    st.sampled_from([-6.0, 0.0, 6.0]),
    st.booleans(),
)
def test_kernel_matrices_are_symmetric_and_positive_semidefinite(
    name: str, seed: int, extent: float, shift: float, repeated: bool
) -> None:
    points = extent * np.random.default_rng(seed).normal(size=(8, 2))
    if repeated:
        points[4:] = points[:4]
    kernel = jax.tree.map(lambda leaf: leaf + shift, random_kernel(name, seed))  # tiny and huge parameters
    gram = np.asarray(gram_and_diagonal(kernel, jnp.asarray(points), jnp.asarray(points))[0])
    np.testing.assert_allclose(gram, gram.T, rtol=0, atol=1e-10 * gram.max())
    eigenvalues = np.linalg.eigvalsh(0.5 * (gram + gram.T))
    # Far points, in lengthscales, have large norms, and so is the rounding of their distances.
    assert eigenvalues[0] >= -1e-9 * eigenvalues[-1]


# Whole structures

STRUCTURES = [
    Architecture(hidden, kernel=kernel, mean=MEANS[number % len(MEANS)])
    for number, (kernel, hidden) in enumerate((k, h) for h in ((), (3,)) for k in KERNELS)
]


def name_of(architecture: Architecture) -> str:
    return f"{architecture.mean}-{architecture.kernel}-{len(architecture.hidden)}"


@jax.jit
def adam_step(gp: Any, x: jax.Array, y: jax.Array) -> Any:
    def loss(gp: Any) -> jax.Array:
        return task_nll(gp, x, y, jnp.arange(len(y)) < len(y) - 2)[0]

    value, gradient = jax.value_and_grad(loss)(gp)
    adam = optax.adam(1e-2)
    updates, _ = adam.update(gradient, adam.init(gp), gp)
    return value, gradient, optax.apply_updates(gp, updates)


@pytest.mark.parametrize("architecture", STRUCTURES, ids=name_of)
def test_a_structure_is_its_formulas_and_trains(architecture: Architecture) -> None:
    random = np.random.default_rng(2)
    x, y = random.random((8, 2)), random.normal(size=8)
    x[3] = x[0]
    gp = random_structure(2, architecture)
    mean, covariance = jax.jit(type(gp).moments)(gp, jnp.asarray(x))
    expected_mean, expected_covariance = structure_moments(architecture, gp, x, x)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(covariance, expected_covariance, rtol=1e-10, atol=1e-12)

    value, gradient, trained = adam_step(gp, jnp.asarray(x), jnp.asarray(y))
    seen = slice(0, 6)
    noisy = expected_covariance[seen, seen] + float(softplus(gp.raw_noise_variance)) * np.eye(6)
    residual = y[seen] - expected_mean[seen]
    expected = 0.5 * residual @ np.linalg.solve(noisy, residual)
    expected += 0.5 * np.linalg.slogdet(noisy)[1] + 3.0 * math.log(2.0 * math.pi)
    assert float(value) == pytest.approx(expected, rel=1e-10)
    for before, slope, after in zip(*map(jax.tree.leaves, (gp, gradient, trained)), strict=True):
        assert np.isfinite(slope).all()
        assert np.isfinite(after).all()
        # Adam moves every parameter that the loss depends on, against its gradient.
        np.testing.assert_allclose(after - before, -1e-2 * np.sign(slope), rtol=1e-3)


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
@pytest.mark.parametrize("hidden", [(4,), (8,), (32, 32), (128, 128)], ids=str)
def test_the_paper_s_grid_of_structures_is_there(hidden: tuple[int, ...], mean: str) -> None:
    """Section "Impact of Mean and Kernel Structures": Matern 5/2 on the features that the mean stands on."""
    architecture = Architecture(hidden, mean=mean)
    gp = jax.eval_shape(lambda: initialise(jax.random.key(0), 4, architecture))
    assert [weight.shape for weight in gp.features.weights] == [*itertools.pairwise((4, *hidden))]
    assert isinstance(gp.kernel, Stationary)
    assert gp.kernel.correlation == "matern52"
    assert gp.kernel.raw_lengthscales.shape == hidden[-1:]
    shapes = [leaf.shape for leaf in jax.tree.leaves(gp.mean)]
    assert shapes == {"zero": [], "constant": [()], "linear": [hidden[-1:]]}[mean]


def test_every_kind_of_mean_and_kernel_is_drawn_with_its_initial_values() -> None:
    for hidden in ((), (4,), (8,), (32, 32)):
        # Mean and kernel are drawn apart: every one of each, not every pair.
        for kernel, mean in zip(KERNELS, itertools.cycle(MEANS), strict=False):
            architecture = Architecture(hidden, 2.0, 0.7, 0.04, kernel, mean)
            gp = initialise(jax.random.key(0), 4, architecture)
            width = hidden[-1] if hidden else 4
            positive = [softplus(leaf) for leaf in raw(gp.kernel)]
            expected = {"linear": [math.sqrt(2.0), 0.7], "dot_product": [[0.7] * width]}
            for found, value in zip(positive, expected.get(kernel, [2.0, [0.7] * width]), strict=True):
                np.testing.assert_allclose(found, value, rtol=1e-12)
            np.testing.assert_allclose(softplus(gp.raw_noise_variance), 0.04, rtol=1e-12)
            shapes = [leaf.shape for leaf in jax.tree.leaves(gp.mean)]
            of_mean = {"zero": [], "constant": [()], "linear": [(width,)], "affine": [(width,), ()]}
            assert shapes == of_mean[mean]
            assert all(leaf.dtype == np.float64 for leaf in jax.tree.leaves(gp))


def test_the_default_is_the_linear_mlp_mean_and_matern_drawn_as_ever() -> None:
    """The draws written out: a seed must give the model that it gave in every earlier version."""
    gp = initialise(jax.random.key(7), 4, Architecture())
    feature_key, mean_key = jax.random.split(jax.random.key(7))
    expected = jax.random.normal(mean_key, (32,), jnp.float64) / jnp.sqrt(jnp.float64(32))
    assert isinstance(gp.mean, Linear)
    assert gp.mean.weight.tobytes() == expected.tobytes()
    glorot = jax.nn.initializers.glorot_normal()
    for weight, key, shape in zip(
        gp.features.weights, jax.random.split(feature_key, 2), ((4, 32), (32, 32)), strict=True
    ):
        assert weight.tobytes() == glorot(key, shape, jnp.float64).tobytes()
    assert not any(bias.any() for bias in gp.features.biases)
    assert isinstance(gp.kernel, Stationary)
    assert gp.kernel.correlation == "matern52"


def test_no_layer_is_the_identity() -> None:
    x = jnp.asarray(np.random.default_rng(3).random((5, 2)))
    assert initialise_mlp(jax.random.key(0), SPACE.dimension, ()) == MLP((), ())
    assert (MLP((), ())(x) == x).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": "matern12"}, "unknown kernel 'matern12'; use squared_exponential, matern32"),
        ({"mean": "quadratic"}, "unknown mean 'quadratic'; use zero, constant, linear, affine"),
        ({"hidden": (3, 0)}, r"hidden = \(3, 0\) has an empty layer"),
        ({"noise_variance": 0.0}, "noise_variance"),
        ({"lengthscale": math.nan}, "lengthscale"),
    ],
)
def test_an_architecture_that_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Architecture(**change)
