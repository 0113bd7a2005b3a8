"""Table: its prior is the shrunk table, its choices those of dense algebra."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from baseline_cases import choices, new_task, table_of, training
from sklearn.covariance import ledoit_wolf

from hyperbo.errors import InvalidInputError
from hyperbo.gp.table import shrunk_table
from hyperbo.methods import AcquisitionDecision, Table
from hyperbo.pretrain import Job

pytestmark = pytest.mark.usefixtures("x64")
DATA = training(seed=6)
MIXED = np.concatenate([DATA.blocks[0].x, np.random.default_rng(7).random((5, 2))])
NOISE = 1e-3


def dense(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean, shrunk covariance and noise variance; shrinkage by scikit-learn."""
    covariance, _ = ledoit_wolf(y.T)
    return y.mean(axis=1), covariance, NOISE * float(np.trace(covariance)) / len(y)


def test_the_covariance_is_shrunk_as_ledoit_and_wolf_do_whatever_the_padding() -> None:
    y = table_of(DATA, MIXED)
    mean, covariance, noise = dense(y)
    padded = np.pad(y, ((0, 4), (0, 2)), constant_values=7.0)
    rows, columns = np.arange(len(padded)) < len(y), np.arange(5) < 3
    for prior in (
        shrunk_table(jnp.asarray(y), jnp.ones(len(y), bool), jnp.ones(3, bool), NOISE),
        shrunk_table(*map(jnp.asarray, (padded, rows, columns)), NOISE),
    ):
        found = np.array([prior.covariance_row(jnp.asarray(row)) for row in range(len(y))])[:, : len(y)]
        np.testing.assert_allclose(found, covariance, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(prior.mean[: len(y)], mean, rtol=1e-12)
        np.testing.assert_allclose(prior.noise_variance, noise, rtol=1e-10)
        variance = prior.unobserved(2).variance[: len(y)]
        np.testing.assert_allclose(variance, np.diag(covariance), rtol=1e-10)


def plain_choices(y: np.ndarray, observed: np.ndarray, count: int) -> list[int]:
    """The largest mean, then thresholded PI with the posterior by one dense solve."""
    mean, covariance, noise = dense(y)
    order = [int(mean.argmax())]
    while len(order) < count:
        noisy = covariance[np.ix_(order, order)] + noise * np.eye(len(order))
        solved = np.linalg.solve(noisy, covariance[order])
        posterior = mean + solved.T @ (observed[order] - mean[order])
        variance = np.diag(covariance) - (covariance[order] * solved).sum(axis=0)
        order.append(
            int(
                ((posterior - observed[order].max() - 0.1 * DATA.spread) / np.sqrt(variance + noise)).argmax()
            )
        )
    return order


def test_the_first_choice_is_the_largest_mean_and_the_others_those_of_dense_algebra() -> None:
    tests = [new_task(MIXED, 1, "long"), new_task(MIXED[3:9], 2, "short")]
    found = choices(Table(NOISE), DATA, *tests, iterations=5)
    for order, task in zip(found, tests, strict=True):
        assert order == plain_choices(table_of(DATA, task.x), task.y, 5)
    by_variance = Table(NOISE, AcquisitionDecision("upper_confidence_bound", 1000.0))
    (other,) = choices(by_variance, DATA, tests[0], iterations=2)
    assert other[0] == found[0][0]
    assert other[1] != found[0][1]


def test_tasks_that_do_not_vary_leave_usable_scores() -> None:
    y = jnp.ones((4, 3))
    prior = shrunk_table(y, jnp.ones(4, bool), jnp.ones(3, bool), 1e-4)
    posterior = prior.unobserved(1).observe(jnp.asarray(0), jnp.asarray(2), jnp.asarray(5.0))
    assert np.isfinite(posterior.mean).all()
    assert float(posterior.noise_variance) > 0


def test_one_task_and_no_noise_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="two tasks"):
        Table().fit([Job(training((5,)), 0)])
    with pytest.raises(InvalidInputError, match="noise_share"):
        Table(noise_share=0.0)
