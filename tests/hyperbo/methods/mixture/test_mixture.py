"""The mixture over Gaussian processes against explicit loops in NumPy, its guarantee, and what it is for."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import matern52, random_gp, softplus, tuning_data
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_t, norm
from scipy.stats import t as student

from hyperbo.bayesopt.offline import Run, simulate
from hyperbo.data.tuning_data import Task
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.methods import HMix, Mix, prior_in_use
from hyperbo.methods.mixture.policy import Mixture, MixturePolicy
from hyperbo.methods.mixture.scale import log_density, log_evidence
from hyperbo.methods.mixture.uninformed import MEAN_DEVIATION, even_points, uninformed_processes, unit_of
from hyperbo.methods.pretrained import GPPolicy
from hyperbo.pretrain import Job

DATA = tuning_data((5, 9, 7), seed=3)
TASK = DATA.tasks[1]
METHOD = HMix(prior_weight=0.7, uninformed=3)
PRIOR = double_precision(random_gp)(4)


@cache
def mixture() -> Mixture:
    return METHOD.in_use(PRIOR, DATA)


DEGREES = 5.0


class PlainProcess:
    """A component in NumPy: prior mean and covariance as functions, and the noise variance."""

    def __init__(self, gp: GaussianProcess) -> None:
        self.gp, self.noise = gp, reference.noise_variance(gp)

    def mean(self, x: np.ndarray) -> np.ndarray:
        if hasattr(self.gp.mean, "value"):
            return np.full(len(x), float(self.gp.mean.value))
        return reference.mean(self.gp, x)

    def covariance(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        kernel = self.gp.kernel
        if not hasattr(kernel, "inner"):
            return reference.covariance(self.gp, a, b)
        signal = float(softplus(kernel.inner.raw_signal_variance))
        known = matern52(a, b, softplus(kernel.inner.raw_lengthscales), signal)
        return known + float(softplus(kernel.raw_mean_variance))

    def log_evidence(self, x: np.ndarray, y: np.ndarray) -> float:
        covariance = self.covariance(x, x) + self.noise * np.eye(len(x))
        return float(multivariate_t(self.mean(x), covariance, DEGREES).logpdf(y)) if len(x) else 0.0

    def predict(self, x: np.ndarray, y: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of an observation, by an explicit Cholesky factor and the expected scale."""
        factor = np.linalg.cholesky(self.covariance(x, x) + self.noise * np.eye(len(x)))
        whitened, errors = (np.linalg.solve(factor, of) for of in (self.covariance(x, at), y - self.mean(x)))
        prior = np.array([self.covariance(row[None], row[None])[0, 0] for row in at])
        expected_scale = (DEGREES + errors @ errors) / (DEGREES + len(y) - 2.0)
        variance = expected_scale * (prior - (whitened**2).sum(axis=0) + self.noise)
        return self.mean(at) + whitened.T @ errors, variance


@cache
def components() -> list[PlainProcess]:
    groups = mixture().groups
    return [
        PlainProcess(jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i]), group))
        for group in groups
        for i in range(len(group.raw_noise_variance))
    ]


@jax.jit
def _after(policy: MixturePolicy, picks: Any, y: Any) -> Any:
    """The log weights, values, means and deviations before each observation and after the last."""

    def seen(state: Any, step: Any) -> Any:
        scores = policy.score(state, jnp.asarray(step), jax.random.key(0))[1]
        return state.log_weights, scores.values, scores.mean, scores.deviation

    state = policy.start(jnp.asarray(TASK.x), jnp.ones(len(TASK.x), bool), len(picks))
    found = [seen(state, 0)]
    for step in range(len(picks)):
        state = policy.observe(state, jnp.asarray(step), picks[step], y[step])
        found.append(seen(state, step + 1))
    return [jnp.stack(each) for each in zip(*found, strict=True)]


@double_precision
def after(picks: Any, y: Any, log_weights: Any = None) -> list[np.ndarray]:
    """`_after` with the components of `mixture` and any weights."""
    weights = mixture().log_weights if log_weights is None else jnp.asarray(log_weights)
    policy = MixturePolicy(Mixture(mixture().groups, weights))
    return [np.asarray(each) for each in _after(policy, jnp.asarray(picks), jnp.asarray(y))]


def test_a_run_is_that_of_a_loop_with_a_factor_for_each_component() -> None:
    picks = [3, 0, 3, 8]  # one of them twice
    weights, values, means, deviations = after(picks, TASK.y[picks])
    start = np.log([0.7, 0.1, 0.1, 0.1])
    for count in range(len(picks) + 1):
        x, y = TASK.x[picks[:count]], TASK.y[picks[:count]]
        log_weights = start + [each.log_evidence(x, y) for each in components()]
        log_weights -= logsumexp(log_weights)
        mean, variance = np.array([each.predict(x, y, TASK.x) for each in components()]).swapaxes(0, 1)
        np.testing.assert_allclose(weights[count], log_weights, rtol=0, atol=1e-8)
        w = np.exp(log_weights)
        np.testing.assert_allclose(means[count], w @ mean, rtol=0, atol=1e-9)
        second_moment = w @ (variance + mean**2)
        np.testing.assert_allclose(deviations[count] ** 2, second_moment - (w @ mean) ** 2, atol=1e-9)
        if not count:
            np.testing.assert_allclose(values[count], w @ mean, rtol=0, atol=1e-9)
            continue
        deviation = np.sqrt(variance)
        z = (mean - y.max()) / deviation
        improvement = w @ (deviation * (norm.pdf(z) + z * norm.cdf(z)))
        np.testing.assert_allclose(np.exp(values[count]), improvement, rtol=1e-6, atol=1e-12)


@settings(max_examples=30)
@given(
    st.lists(st.integers(0, 8), min_size=5, max_size=5),
    st.lists(st.floats(-30.0, 30.0), min_size=5, max_size=5),
    st.lists(st.floats(-12.0, 0.0), min_size=4, max_size=4),
)
def test_the_log_loss_is_within_the_log_of_its_weight_of_every_component(
    picks: list[int], y: list[float], logits: list[float]
) -> None:
    start = np.array(logits) - logsumexp(logits)
    weights = after(picks, np.array(y), start)[0]
    # ln w_m(t) = ln w_m(0) + ln p_m - ln p: what the weights say of the mixture's own evidence.
    alone = np.array([each.log_evidence(TASK.x[picks], np.array(y)) for each in components()])
    own = start + alone - weights[-1]
    np.testing.assert_allclose(own, logsumexp(start + alone), rtol=1e-7, atol=1e-6)
    assert (-own <= -alone - start + 1e-6 * (1.0 + np.abs(alone))).all()
    np.testing.assert_allclose(logsumexp(weights, axis=1), 0.0, atol=1e-9)


@pytest.mark.parametrize("component", [0, 2])
@double_precision
def test_the_true_component_seldom_loses_its_weight_whatever_is_chosen(component: int) -> None:
    """Ville's inequality, with values drawn from one component and points chosen by the mixture."""
    draws, picks = 600, len(TASK.x)
    policy, plain = MixturePolicy(mixture()), components()[component]
    random = np.random.default_rng(component)
    factor = np.linalg.cholesky(plain.covariance(TASK.x, TASK.x) + plain.noise * np.eye(picks))
    scales = 1.0 / random.gamma(DEGREES / 2.0, 2.0 / DEGREES, size=(draws, 1))
    drawn = plain.mean(TASK.x) + np.sqrt(scales) * (random.normal(size=(draws, picks)) @ factor.T)

    def step(y: Any, carry: Any, count: Any) -> Any:
        state, open_ = carry
        values = policy.score(state, count, jax.random.key(0))[1].values
        choice = jnp.argmax(jnp.where(open_, values, -jnp.inf))
        state = policy.observe(state, count, choice, y[choice])
        return (state, open_.at[choice].set(False)), state.log_weights[component]

    @jax.jit
    @jax.vmap
    def lowest(y: Any) -> Any:
        start = policy.start(jnp.asarray(TASK.x), jnp.ones(picks, bool), picks)
        logs = jax.lax.scan(partial(step, y), (start, jnp.ones(picks, bool)), jnp.arange(picks))[1]
        return jnp.min(logs) - mixture().log_weights[component]

    ratios = np.exp(np.asarray(lowest(jnp.asarray(drawn))))
    for share in (0.5, 0.2, 0.05):
        deviation = np.sqrt(share * (1.0 - share) / draws)
        assert (ratios <= share).mean() <= share + 3.0 * deviation
    if component:  # one that has little weight gains it
        assert np.median(ratios) > 0.8


def test_the_points_of_the_parameters_fill_their_box_evenly() -> None:
    points = even_points(48, 6)
    for column in points.T:
        np.testing.assert_allclose(np.histogram(column, 6, (0.0, 1.0))[0], 8, atol=2)
    assert np.abs(np.corrcoef(points.T) - np.eye(6)).max() < 0.4


def test_an_unit_of_y_scales_the_uninformed_processes() -> None:
    with jax.enable_x64(True):
        one, other = (uninformed_processes(4, 2, *unit) for unit in ((0.0, 1.0), (-3.0, 10.0)))
        assert np.allclose(softplus(one.kernel.raw_mean_variance), MEAN_DEVIATION**2)
        assert np.allclose(other.mean.value, -3.0)
        x = jnp.asarray(TASK.x)
        covariances = [np.asarray(jax.vmap(lambda gp: gp.noisy_moments(x)[1])(gps)) for gps in (one, other)]
    np.testing.assert_allclose(covariances[1], 100.0 * covariances[0], rtol=1e-9)


def test_the_unit_counts_every_task_once_and_is_one_where_nothing_varies() -> None:
    def with_values(*values: np.ndarray) -> Any:
        tasks = (Task(str(i), "d", np.zeros((len(y), 2)), y, y, ("",) * len(y)) for i, y in enumerate(values))
        return tuning_data().with_tasks(tuple(tasks))

    low, high = np.array([0.0, 2.0]), np.array([4.0, 6.0] * 10)
    assert unit_of(with_values(low, high)) == (3.0, np.sqrt(1.0 + 4.0))
    assert unit_of(with_values(np.ones(3), np.ones(5))) == (1.0, 1.0)


def test_without_a_prior_the_first_choice_is_random_and_the_seed_makes_it() -> None:
    method = Mix(uninformed=4)
    (fitted,) = method.fit([Job(DATA, 0)])
    runs = [Run(method.policy(fitted, TASK), TASK, seed) for seed in range(40)]
    first = simulate(runs, 1).choices[:, 0]
    assert set(first) == set(range(len(TASK.y)))


@pytest.mark.slow
@double_precision
def test_a_component_that_predicts_no_numbers_does_not_count() -> None:
    """Smooth beliefs without noise overflow on rough values; the run goes on with the other components."""
    policy = MixturePolicy(mixture())
    state = policy.start(jnp.asarray(TASK.x), jnp.ones(len(TASK.x), bool), 2)
    prior, others = state.groups
    broken = replace(state, groups=(jax.tree.map(lambda leaf: leaf * jnp.nan, prior), others))
    one, zero = jnp.asarray(1), jnp.asarray(0)
    assert np.isnan(policy.score(broken, zero, jax.random.key(0))[1].values).all()
    after_one = policy.observe(broken, zero, one, jnp.asarray(0.5))
    assert np.isneginf(after_one.log_weights[0])
    scores = policy.score(after_one, one, jax.random.key(0))[1]
    assert np.isfinite([scores.values, scores.mean, scores.deviation]).all()


@pytest.mark.slow
def test_a_prior_that_is_wrong_is_left_and_one_that_is_right_is_kept() -> None:
    """H-Mix is near its prior alone where that is right, and far ahead where it is reversed."""
    random = np.random.default_rng(0)
    x = random.random((200, 2))
    y = np.sin(5.0 * x[:, 0]) + np.cos(4.0 * x[:, 1])
    task = Task("test", "d", x, y, y, ("",) * len(y))

    def regret(policy: Any) -> float:
        choices = simulate([Run(policy, task, 0)], 30, repeats=False).require_usable().choices[0]
        return float(y.max() - np.maximum.accumulate(y[choices])[[4, 9, 19, 29]].mean())

    @double_precision
    def prior(sign: float) -> GaussianProcess:
        """A narrow belief in -3 x_0 - x_1, which is nearly right, or in its reverse."""
        return GaussianProcess.from_values(
            lengthscales=[0.5, 0.5], signal_variance=0.05, noise_variance=0.01, weights=[-3.0 * sign, -sign]
        )

    right, wrong = prior(1.0), prior(-1.0)
    for gp in (right, wrong):
        alone = regret(GPPolicy(prior_in_use(gp, 3)))
        mixed = regret(HMix().policy(HMix().in_use(gp, DATA), task))
        assert mixed <= alone + (0.02 if gp is right else -0.1)


@double_precision
def test_the_evidence_is_the_multivariate_t_density_and_the_product_of_the_predictions() -> None:
    rows = np.array([3, 0, 8, 5])
    x, y = TASK.x[rows], TASK.y[rows]
    mask = jnp.arange(6) < 4
    padded = [jnp.asarray(np.concatenate([of, 7.0 + of[:2]])) for of in (x, y)]
    for group, place in ((0, 0), (1, 2)):
        gp = jax.tree.map(lambda leaf, i=place: leaf[i], mixture().groups[group])
        plain = PlainProcess(jax.tree.map(np.asarray, gp))
        expected, quadratic = 0.0, 0.0
        for count in range(len(y)):
            seen, value = (x[:count], y[:count]), y[count]
            mean, variance = (each[0] for each in plain.predict(*seen, x[count : count + 1]))
            # `predict` gives the variance of the Student's t; its scale is smaller.
            degrees = DEGREES + count
            own = student(degrees, mean, np.sqrt(variance * (degrees - 2.0) / degrees)).logpdf(value)
            at_one = variance * (degrees - 2.0) / (DEGREES + quadratic)
            given = (jnp.asarray(each)[None] for each in (value - mean, at_one, quadratic))
            np.testing.assert_allclose(log_density(*given, jnp.asarray(float(count)))[0], own, rtol=1e-10)
            expected, quadratic = expected + own, quadratic + (value - mean) ** 2 / at_one
        np.testing.assert_allclose(plain.log_evidence(x, y), expected, rtol=1e-9)
        np.testing.assert_allclose(log_evidence(gp, *padded, mask), expected, rtol=1e-9)
