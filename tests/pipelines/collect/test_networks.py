"""The networks: convolution and attention against independent computations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pipelines.collect.models import MODELS, _convolve, _max_pool
from pipelines.collect.tasks import TASK_DATASETS, load_task_dataset


@pytest.mark.parametrize("stride", [1, 2])
def test_patches_times_matrix_is_a_convolution(stride):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(2, 8, 6, 3)).astype(np.float32)
    kernel = generator.normal(size=(3, 3, 3, 5)).astype(np.float32)
    parameters = {"c/w": jnp.asarray(kernel.reshape(27, 5)), "c/b": jnp.zeros(5)}
    expected = jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), ((1, 1), (1, 1)), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    np.testing.assert_allclose(_convolve(parameters, "c", jnp.asarray(x), stride), expected, atol=1e-4)


def test_max_pooling_takes_the_largest_of_each_square():
    x = np.random.default_rng(0).normal(size=(2, 4, 6, 3)).astype(np.float32)
    pooled = np.asarray(_max_pool(jnp.asarray(x)))
    assert pooled.shape == (2, 2, 3, 3)
    assert pooled[1, 1, 2, 0] == x[1, 2:4, 4:6, 0].max()


def test_the_transformer_does_not_see_the_future():
    dataset = load_task_dataset("sklearn_text")
    transformer = MODELS["transformer"]
    parameters = transformer.init(np.random.default_rng(0), dataset.train.inputs.shape[1:], dataset.classes)
    tokens = dataset.train.inputs[:3]
    changed = tokens.copy()
    changed[:, 20:] = (changed[:, 20:] + 1) % dataset.classes
    logits = jax.jit(transformer.apply)
    before = np.asarray(logits(parameters, jnp.asarray(tokens)))
    after = np.asarray(logits(parameters, jnp.asarray(changed)))
    np.testing.assert_allclose(after[:, :20], before[:, :20], atol=1e-6)
    assert not np.allclose(after[:, 20:], before[:, 20:], atol=1e-2)


@pytest.mark.parametrize("variant", MODELS)
def test_logits_have_a_row_per_example_and_every_weight_a_gradient(variant):
    model = MODELS[variant]
    dataset = next(d for d in map(load_task_dataset, TASK_DATASETS) if d.kind == model.kind)
    parameters = model.init(np.random.default_rng(0), dataset.train.inputs.shape[1:], dataset.classes)
    inputs = jnp.asarray(dataset.train.inputs[:20])

    def total(parameters):
        logits = model.apply(parameters, inputs)
        assert logits.shape == (*dataset.train.labels[:20].shape, dataset.classes)
        return jnp.square(logits - 1).sum()

    for name, gradient in jax.jit(jax.grad(total))(parameters).items():
        assert gradient.dtype == jnp.float32
        assert np.abs(gradient).max() > 0, f"{name} has no effect"
