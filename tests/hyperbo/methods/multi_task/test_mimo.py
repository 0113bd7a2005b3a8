from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, norm

from hyperbo.methods.multi_task.mimo import MIMO, MIMONetwork, mixture_moments

pytestmark = pytest.mark.usefixtures("x64")
SMALL = MIMO(members=2, shared_units=4, unshared_units=(3, 5))
INPUTS = 3


@pytest.fixture(scope="module")
def network() -> MIMONetwork:
    """No two parameters equal, so that none can be mistaken for another."""
    drawn, _ = jax.eval_shape(partial(SMALL.initialise, inputs=INPUTS), jax.random.key(0))
    random = np.random.default_rng(1)
    return jax.tree.map(lambda leaf: jnp.asarray(random.normal(size=leaf.shape), jnp.float32), drawn)


def by_hand(network: Any, inputs: Any) -> tuple[Any, Any]:
    """Member by member and row by row; inputs[m, i] is what member m sees in row i."""
    network = jax.tree.map(lambda leaf: np.asarray(leaf, float), network)
    members, rows, _ = inputs.shape
    moments = np.zeros((2, members, rows))
    for m in range(members):
        for i in range(rows):
            units = np.tanh(inputs[:, i].ravel() @ network.shared[0] + network.shared[1])
            for weight, bias in network.hidden:
                units = np.tanh(units @ weight[m] + bias[m, 0])
            moments[:, m, i] = units @ network.output[0][m] + network.output[1][m, 0]
    return moments[0], np.log1p(np.exp(moments[1])) + 1e-4


def test_members_share_the_first_layer_and_no_other(network: MIMONetwork) -> None:
    inputs = np.random.default_rng(2).normal(size=(2, 6, INPUTS))
    found = SMALL.members_moments(network, jnp.asarray(inputs, jnp.float32))
    np.testing.assert_allclose(found, by_hand(network, inputs), rtol=0, atol=1e-5)


def test_loss_is_the_negative_log_density_up_to_a_constant(network: MIMONetwork) -> None:
    random = np.random.default_rng(3)
    inputs, y = random.normal(size=(2, 6, INPUTS)), random.normal(size=(2, 6))
    mask = np.array([True, True, False, True, True, False])
    loss = SMALL.loss(
        network,
        (),
        jnp.asarray(inputs, jnp.float32),
        jnp.asarray(y, jnp.float32),
        jnp.asarray(mask),
        jnp.asarray(100, jnp.int32),
    )
    density = norm.logpdf(y, *by_hand(network, inputs))[:, mask]
    expected = -density.mean(axis=1).sum() - 2 * 0.5 * np.log(2.0 * np.pi)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_prediction_shows_all_members_the_same_input(network: MIMONetwork) -> None:
    at = np.random.default_rng(4).normal(size=(7, INPUTS))
    nothing = jnp.zeros((1, INPUTS), jnp.float32), jnp.zeros(1, jnp.float32), jnp.zeros(1, bool)
    mean, variance = SMALL.predict(network, (), *nothing, jnp.asarray(at, jnp.float32))
    means, deviations = by_hand(network, np.stack([at, at]))
    np.testing.assert_allclose(mean, means.mean(axis=0), rtol=0, atol=1e-5)
    # By the second moment of the mixture, not by the law of total variance.
    second = (means**2 + deviations**2).mean(axis=0)
    np.testing.assert_allclose(variance, second - means.mean(axis=0) ** 2, rtol=1e-4)


members = st.lists(st.tuples(st.floats(-5, 5), st.floats(0.01, 5)), min_size=3, max_size=3)


@given(members)
def test_moments_of_a_mixture(pairs: list[tuple[float, float]]) -> None:
    means, deviations = np.array(pairs).T
    mean, variance = mixture_moments(jnp.asarray(means)[:, None], jnp.asarray(deviations)[:, None])
    # Gauss-Hermite quadrature is exact for the moments of each member.
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    values = means[:, None] + deviations[:, None] * nodes
    share = np.broadcast_to(weights / weights.sum() / 3, values.shape)
    np.testing.assert_allclose(mean[0], (share * values).sum(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(variance[0], (share * (values - mean[0]) ** 2).sum(), rtol=1e-10)
    assert variance[0] >= (deviations**2).mean() - 1e-12


def test_sizes_are_those_of_the_paper() -> None:
    network, constants = jax.eval_shape(partial(MIMO().initialise, inputs=4 + 5), jax.random.key(0))
    assert constants == ()
    assert network.shared[0].shape == (3 * 9, 10)
    assert [weight.shape for weight, _ in network.hidden] == [(3, 10, 10), (3, 10, 10)]
    assert network.output[0].shape == (3, 10, 2)
    assert {leaf.dtype for leaf in jax.tree.leaves(network)} == {jnp.dtype("float32")}
    settings = MIMO()
    assert (settings.learning_rate, settings.training.epochs, settings.training.refit_epochs) == (
        1e-4,
        1000,
        1000,
    )
    assert (settings.training.batch_size, settings.training.embedding_size) == (64, 5)


def test_weights_are_glorot_normal_and_biases_zero() -> None:
    network, _ = MIMO(members=2, shared_units=60, unshared_units=(80,)).initialise(jax.random.key(0), 50)
    for weight, bias in (network.shared, *network.hidden, network.output):
        standard = np.asarray(weight).ravel() / np.sqrt(2.0 / (weight.shape[-2] + weight.shape[-1]))
        assert kstest(standard, norm.cdf).pvalue > 1e-3
        assert not bias.any()
