"""The networks: convolution, normalisation and attention against independent computations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyperbo_pipelines.collect.datasets import TASK_DATASETS, load_task_dataset
from hyperbo_pipelines.collect.datasets.images import DOWNLOADED
from hyperbo_pipelines.collect.models import MODELS
from hyperbo_pipelines.collect.models.layers import (
    STATISTICS_DECAY,
    batch_norm,
    convolve,
    layer_norm,
    max_pool,
)

SHIPPED = [name for name in TASK_DATASETS if name not in DOWNLOADED]


@pytest.mark.parametrize("stride", [1, 2])
def test_patches_times_matrix_is_a_convolution(stride):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(2, 8, 6, 3)).astype(np.float32)
    kernel = generator.normal(size=(3, 3, 3, 5)).astype(np.float32)
    parameters = {"c/w": jnp.asarray(kernel.reshape(27, 5)), "c/b": jnp.zeros(5)}
    expected = jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), ((1, 1), (1, 1)), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    np.testing.assert_allclose(convolve(parameters, "c", jnp.asarray(x), stride), expected, atol=1e-4)


def test_max_pooling_takes_the_largest_of_each_square():
    x = np.random.default_rng(0).normal(size=(2, 4, 6, 3)).astype(np.float32)
    pooled = np.asarray(max_pool(jnp.asarray(x)))
    assert pooled.shape == (2, 2, 3, 3)
    assert pooled[1, 1, 2, 0] == x[1, 2:4, 4:6, 0].max()


def test_batch_normalisation_in_training_and_after_it():
    generator = np.random.default_rng(0)
    x = generator.normal(2.0, 3.0, size=(5, 2, 2, 3))
    parameters = {"n/s": jnp.array([1.0, 2.0, 0.5]), "n/o": jnp.array([0.0, 1.0, -1.0])}
    statistics = {"n/mean": jnp.array([1.0, 0.0, 0.0]), "n/variance": jnp.array([2.0, 1.0, 4.0])}
    scale, offset = np.array([1.0, 2.0, 0.5]), np.array([0.0, 1.0, -1.0])
    mean, variance = x.mean(axis=(0, 1, 2)), x.var(axis=(0, 1, 2))
    normalised, after = batch_norm(parameters, statistics, "n", jnp.asarray(x, jnp.float32), True)
    expected = (x - mean) / np.sqrt(variance + 1e-5) * scale + offset
    np.testing.assert_allclose(normalised, expected, rtol=1e-4, atol=1e-5)
    kept = STATISTICS_DECAY
    np.testing.assert_allclose(after["n/mean"], kept * np.array([1.0, 0, 0]) + (1 - kept) * mean, rtol=1e-5)
    np.testing.assert_allclose(
        after["n/variance"], kept * np.array([2.0, 1, 4]) + (1 - kept) * variance, rtol=1e-5
    )
    normalised, unchanged = batch_norm(parameters, statistics, "n", jnp.asarray(x, jnp.float32), False)
    expected = (x - [1.0, 0, 0]) / np.sqrt(np.array([2.0, 1, 4]) + 1e-5) * scale + offset
    np.testing.assert_allclose(normalised, expected, rtol=1e-4, atol=1e-5)
    assert unchanged is statistics


def test_layer_normalisation_is_of_each_position():
    x = np.random.default_rng(0).normal(2.0, 3.0, size=(2, 4, 6))
    parameters = {"n/s": jnp.full(6, 2.0), "n/o": jnp.full(6, 1.0)}
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * 2 + 1
    normalised = layer_norm(parameters, "n", jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose(normalised, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("variant", "causal"), [("transformer", True), ("token_encoder", False)])
def test_a_decoder_does_not_see_the_future_and_an_encoder_sees_all(variant, causal):
    dataset = load_task_dataset("characters" if causal else "pages")
    model = MODELS[variant]
    parameters, statistics = model.init(np.random.default_rng(0), dataset)
    tokens = dataset.train.inputs[:3]
    changed = tokens.copy()
    half = tokens.shape[1] // 2
    changed[:, half:] = (changed[:, half:] + 1) % dataset.vocabulary
    logits = jax.jit(model.apply, static_argnums=3)
    before = np.asarray(logits(parameters, statistics, jnp.asarray(tokens), True)[0])
    after = np.asarray(logits(parameters, statistics, jnp.asarray(changed), True)[0])
    if causal:
        np.testing.assert_allclose(after[:, :half], before[:, :half], atol=1e-6)
        assert not np.allclose(after[:, half:], before[:, half:], atol=1e-2)
    else:
        assert not np.allclose(after, before, atol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("variant", MODELS)
def test_logits_have_a_row_per_example_and_every_weight_a_gradient(variant):
    model = MODELS[variant]
    decodes = variant == "transformer"
    dataset = next(
        dataset
        for dataset in map(load_task_dataset, SHIPPED)
        if dataset.kind == model.kind and (dataset.train.labels.ndim == 2) == decodes
    )
    start = model.init(np.random.default_rng(0), dataset)
    inputs = jnp.asarray(dataset.train.inputs[:20])

    def total(parameters):
        logits, statistics = model.apply(parameters, start.statistics, inputs, True)
        assert logits.shape == (*dataset.train.labels[:20].shape, dataset.classes)
        assert jax.tree.structure(statistics) == jax.tree.structure(start.statistics)
        return jnp.square(logits - 1).sum()

    for name, gradient in jax.jit(jax.grad(total))(start.parameters).items():
        assert gradient.dtype == jnp.float32
        assert np.abs(gradient).max() > 0, f"{name} has no effect"
