"""EGP: a prior from matched inputs with missing values, at them and between them."""

from __future__ import annotations

from dataclasses import replace

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from transfer_cases import related_tasks, require_learning

from hyperbo.errors import InvalidInputError
from hyperbo.methods import EGP
from hyperbo.methods.transfer.egp import EmpiricalOnCandidates, EmpiricalPrior
from hyperbo.pretrain import Job

pytestmark = pytest.mark.usefixtures("x64")

QUICK = EGP(iterations=5, kernel_points=20, kernel_iterations=20)


@pytest.fixture(scope="module")
def prior() -> EmpiricalPrior:
    data = related_tasks()
    fitted = QUICK.fit([Job(data, 0), Job(data, 1), Job(related_tasks(3, 12), 0)])
    assert fitted[0] is fitted[1]
    assert int(fitted[2].training_tasks) == 3
    np.testing.assert_allclose(fitted[0].spread, np.median([task.y.std() for task in data.tasks]))
    assert fitted[2].mask.sum() == 12
    return fitted[0]


def test_at_matched_inputs_the_prior_is_the_estimate(prior: EmpiricalPrior) -> None:
    x = np.asarray(prior.x)[prior.mask]
    on = jax.jit(EmpiricalOnCandidates.of)(prior, jnp.asarray(x))
    start = on.unobserved(3)
    covariance = np.asarray(prior.moments.covariance)
    np.testing.assert_allclose(start.mean, prior.moments.mean, atol=1e-4)
    np.testing.assert_allclose(start.variance, np.diag(covariance), atol=1e-4)
    np.testing.assert_allclose(on.covariance_row(jnp.asarray(2)), covariance[2], atol=1e-4)


def test_between_matched_inputs_the_kernel_interpolates(prior: EmpiricalPrior) -> None:
    x, candidates = np.asarray(prior.x), np.random.default_rng(2).random((4, 2))
    scales = reference.softplus(prior.kernel.kernel.raw_lengthscales)
    variance = float(reference.softplus(prior.kernel.kernel.raw_signal_variance))
    among, cross, own = (
        reference.matern52(a, b, scales, variance)
        for a, b in ((x, x), (candidates, x), (candidates, candidates))
    )
    weights = np.linalg.solve(among + 1e-10 * variance * np.eye(len(x)), cross.T).T
    mean = prior.level + weights @ (prior.moments.mean - prior.level)
    covariance = own + weights @ (prior.moments.covariance - among) @ weights.T
    on = jax.jit(EmpiricalOnCandidates.of)(prior, jnp.asarray(candidates))
    start = on.unobserved(3)
    np.testing.assert_allclose(start.mean, mean, atol=1e-5)
    np.testing.assert_allclose(start.variance, np.diag(covariance), atol=1e-5)
    np.testing.assert_allclose(on.covariance_row(jnp.asarray(1)), covariance[1], atol=1e-5)


def test_without_matched_data_there_is_nothing_to_estimate() -> None:
    with pytest.raises(InvalidInputError, match="EGP needs matched data"):
        QUICK.fit([Job(replace(related_tasks(), blocks=()), 0)])


@pytest.mark.slow
def test_egp_learns_from_tasks_that_resemble_each_other() -> None:
    require_learning(QUICK)
