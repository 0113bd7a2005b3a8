"""The tuner's mixture against plain NumPy: weights, averaged improvement, running trials; wrong priors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import matern52, softplus
from scipy.special import logsumexp
from scipy.stats import multivariate_t, norm
from tuning_priors import prior_over

from hyperbo.bayesopt.history import History, padded
from hyperbo.data.warping import online_map
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.methods.mixture.uninformed import UNINFORMED, uninformed_processes
from hyperbo.tuning import proposals
from hyperbo.tuning.batches import BATCH_STRATEGIES, Box, acquisition_of
from hyperbo.tuning.mixture import mixture_posterior
from hyperbo.tuning.proposals import propose
from hyperbo.tuning.region import Region
from hyperbo.tuning.tuner import Tuner

PRIOR = prior_over()
WHOLE = Region.of(PRIOR.description.search_space, {})
RANDOM = np.random.default_rng(5)
AT, X, PENDING = RANDOM.uniform(size=(20, 2)), RANDOM.uniform(size=(6, 2)), RANDOM.uniform(size=(2, 2))
Y = np.array([0.3, -1.2, 2.0, 0.1, -2.0, 1.4])
FLAT = double_precision(GaussianProcess.from_values)(
    lengthscales=[0.7, 0.4], signal_variance=0.5, noise_variance=0.1, constant=0.2
)
KEPT = 32  # components of 16 rows
DEGREES = 5.0


def moments_of(kernel, mean, noise, x, y, at):
    """Mean and variance of an observation, at the scale 1."""
    covariance = kernel(x, x) + noise * np.eye(len(x))
    cross = kernel(x, at)
    solved = np.linalg.solve(covariance, cross)
    variance = kernel(at[:1], at[:1])[0, 0] - (cross * solved).sum(axis=0) + noise
    return mean + solved.T @ (y - mean), variance


def expected_scale(kernel, mean, noise, y):
    """Of the trials that have ended: what a running trial is believed to be says nothing of the scale."""
    quadratic = (y - mean) @ np.linalg.solve(kernel(X, X) + noise * np.eye(len(X)), y - mean)
    return (DEGREES + quadratic) / (DEGREES + len(y) - 2.0)


@pytest.fixture(scope="module")
def components():
    """Kernel, mean and noise variance of the flat prior and of all uninformed processes, in NumPy."""
    with jax.enable_x64(True):
        others = jax.tree.map(np.asarray, uninformed_processes(UNINFORMED, 2, 0.0, 1.0))
    found = [(lambda a, b: matern52(a, b, np.array([0.7, 0.4]), 0.5), 0.2, 0.1)]
    for i in range(UNINFORMED):
        inner = others.kernel.inner
        scales, signal = softplus(inner.raw_lengthscales[i]), float(softplus(inner.raw_signal_variance[i]))
        offset = float(softplus(others.kernel.raw_mean_variance[i]))

        def kernel(a, b, scales=scales, signal=signal, offset=offset):
            return matern52(a, b, scales, signal) + offset

        found.append((kernel, 0.0, float(softplus(others.raw_noise_variance[i]))))
    return found


def weighed(components, y, prior_weight):
    """The logarithms of the weights of what is kept, and these components."""
    start = [np.log(prior_weight), *[np.log((1.0 - prior_weight) / UNINFORMED)] * UNINFORMED]
    logs = np.array(
        [
            of
            + multivariate_t(np.full(len(X), mean), kernel(X, X) + noise * np.eye(len(X)), DEGREES).logpdf(y)
            for of, (kernel, mean, noise) in zip(start, components, strict=True)
        ]
    )
    kept = [0, *(1 + np.argsort(-logs[1:])[:KEPT])]
    return logs[kept] - logsumexp(logs[kept]), [components[each] for each in kept]


@double_precision
def score(strategy, pending):
    rows = padded(History(X, Y, pending), 16)
    found = acquisition_of(FLAT, rows, Box(jnp.zeros(2), jnp.ones(2)), strategy, True, 0.5)
    return np.asarray(found(jnp.asarray(AT)))


@pytest.mark.parametrize("pending", [PENDING[:0], PENDING], ids=["told", "running"])
def test_the_score_is_the_improvement_averaged_over_the_components(components, pending):
    """A component believes its own mean of a running trial: its mean stays, its variance falls."""
    y = online_map(Y, np.isfinite(Y))
    log_weights, kept = weighed(components, y, 0.5)
    w, best, expected = np.exp(log_weights), y.max(), 0.0
    believed = np.array([moments_of(*each, X, y, PENDING)[0] for each in kept])
    if len(pending):
        best = max(best, (w @ believed).max())
    for weight, component, own in zip(w, kept, believed, strict=True):
        x, values = (np.concatenate([X, pending]), np.append(y, own)) if len(pending) else (X, y)
        mean, variance = moments_of(*component, x, values, AT)
        deviation = np.sqrt(variance * expected_scale(*component, y))
        z = (mean - best) / deviation
        expected = expected + weight * deviation * (norm.pdf(z) + z * norm.cdf(z))
    np.testing.assert_allclose(np.exp(score("kriging_believer", pending)), expected, rtol=1e-4, atol=1e-9)


def test_the_first_proposal_is_the_best_guess_of_the_prior():
    nothing = History(np.zeros((0, 2)), np.zeros(0), np.zeros((0, 2)))
    alone, mixed = (
        propose(PRIOR.gp, WHOLE, nothing, np.random.default_rng(0), prior_weight=weight)
        for weight in (1.0, 0.9)
    )
    np.testing.assert_allclose(mixed, alone, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", BATCH_STRATEGIES)
def test_trials_at_the_same_time_are_apart(strategy):
    running = PENDING[:0]
    for number in range(3):
        given = History(X, Y, running)
        x = propose(PRIOR.gp, WHOLE, given, np.random.default_rng(number), strategy, prior_weight=0.9)
        running = np.concatenate([running, x[None]])
    apart = np.linalg.norm(running[:, None] - running[None], axis=2)
    assert apart[~np.eye(3, dtype=bool)].min() > 1e-3


@double_precision
def test_trials_that_a_prior_did_not_expect_take_its_weight():
    x = np.random.default_rng(1).uniform(size=(12, 2))
    mean, covariance = (np.asarray(each) for each in PRIOR.gp.noisy_moments(jnp.asarray(x)))
    drawn = mean + np.linalg.cholesky(covariance) @ np.random.default_rng(2).normal(size=12)
    for y, is_right in ((drawn, True), (5.0 - 3.0 * mean + np.sin(9.0 * x[:, 0]), False)):
        rows = padded(History(x, y, PENDING[:0]), 16)
        found = mixture_posterior(PRIOR.gp, 0.9, rows, rows.y, False)
        weight = float(jnp.exp(found.log_weights[0]))
        assert weight > 0.8 if is_right else weight < 0.1


@pytest.mark.parametrize("weight", [0.0, 1.5, float("nan")])
def test_a_weight_that_is_none_is_refused(weight):
    with pytest.raises(InvalidInputError, match="prior_weight"):
        Tuner(PRIOR, prior_weight=weight)


def test_a_choice_that_compiles_is_announced_once(caplog, monkeypatch):
    monkeypatch.setattr(proposals, "_announced", set())
    monkeypatch.setattr(proposals, "_climbed", lambda *args: (np.zeros(2), 0, np.zeros(len(args[6]))))
    nothing, random = History(np.zeros((0, 2)), np.zeros(0), np.zeros((0, 2))), np.random.default_rng(0)
    for weight, kept, seen in ((0.9, None, "WARNING"), (0.9, None, None), (0.8, "folder", "INFO")):
        caplog.clear()
        monkeypatch.setattr(proposals, "_programs_kept", lambda kept=kept: kept)
        with caplog.at_level("INFO", "hyperbo.tuning.proposals"):
            propose(PRIOR.gp, WHOLE, nothing, random, prior_weight=weight)
        assert [each.levelname for each in caplog.records] == ([seen] if seen else [])
