from __future__ import annotations

import itertools
from math import e, exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.theory import (
    RegretSetting,
    alternative_regret_bound,
    greedy_information_gain,
    information_gain,
    mean_error_variance,
    pi_regret_bound,
    posterior_bound,
    regret_rate,
    ucb_coefficient,
    ucb_regret_bound,
    variance_bias,
)
from hyperbo.theory.gaussian import condition

N, T, DELTA = 300, 7, 0.2
SETTING = RegretSetting(N, T, DELTA)
C, NOISE, RHO = 1.7, 0.3, 4.0


def coefficients() -> tuple[float, float, float]:
    """The regret theorems' own a, b and zeta, with their 12 in place of 4 and delta / 3."""
    total = T + 2.0 * sqrt((T - 1) * log(12.0 / DELTA)) + 2.0 * log(12.0 / DELTA) - 2.0 / N
    return (
        sqrt(12.0 * total / ((N - T - 1) * DELTA)),
        log(12.0 / DELTA) / (N - T),
        sqrt(2.0 * log(3.0 / DELTA)),
    )


def test_posterior_bound_is_the_formula_of_the_theorem() -> None:
    bound = posterior_bound(40, 6, 0.05)
    assert bound.a**2 == pytest.approx(
        4.0 * (6.0 + 2.0 * sqrt(5.0 * log(80.0)) + 2.0 * log(80.0) - 2.0 / 40.0) / (33.0 * 0.05), rel=1e-13
    )
    b = log(80.0) / 34.0
    assert bound.b == pytest.approx(b, rel=1e-13)
    assert (bound.lower, bound.upper) == pytest.approx((1 - 2 * sqrt(b), 1 + 2 * sqrt(b) + 2 * b), rel=1e-12)


@given(st.integers(1, 30), st.integers(2, 500), st.floats(1e-6, 0.999))
def test_chebyshev_with_the_proof_s_variance_gives_the_theorem_s_a(
    iteration: int, more: int, delta: float
) -> None:
    # q is at most this with probability 1 - delta / 4, and Chebyshev spends another delta / 4.
    surprise = iteration - 1 + 2.0 * sqrt((iteration - 1) * log(4.0 / delta)) + 2.0 * log(4.0 / delta)
    variance = mean_error_variance(iteration + more, iteration, surprise)
    assert posterior_bound(iteration + more, iteration, delta).a ** 2 == pytest.approx(
        variance / (delta / 4.0), rel=1e-10
    )


@pytest.mark.parametrize("iteration", [1, 3, 8])
def test_the_variance_bound_holds_with_the_exact_chi_squared_distribution(iteration: int) -> None:
    # N kappa^ / kappa has N - t degrees of freedom.
    for functions, delta in itertools.product([12, 50, 1000], [0.01, 0.1, 0.9]):
        bound, freedom = posterior_bound(functions, iteration, delta), functions - iteration
        inside = stats.chi2.cdf(bound.upper * freedom, freedom) - stats.chi2.cdf(
            bound.lower * freedom, freedom
        )
        assert inside >= 1.0 - delta / 2.0


def test_the_regret_bounds_are_the_formulas_of_the_theorems() -> None:
    a, b, zeta = coefficients()
    ratio = sqrt((1.0 + 2.0 * sqrt(b) + 2.0 * b) / (1.0 - 2.0 * sqrt(b)))
    beta = (a + zeta) * sqrt(N / ((N - T) * (1.0 - 2.0 * sqrt(b))))
    assert ucb_coefficient(SETTING) == pytest.approx(beta, rel=1e-12)

    root = sqrt(2.0 * C * RHO / (T * log(1.0 + C / NOISE)) + NOISE)
    noise = zeta * sqrt(NOISE) * (1.0 - sqrt(NOISE) / sqrt(C + NOISE))
    expected = (a + zeta) * (1.0 + ratio) * root + noise
    assert ucb_regret_bound(SETTING, C, NOISE, RHO) == pytest.approx(expected, rel=1e-12)

    eta = ratio * (1.3 + a) + a + zeta
    noise = zeta * sqrt(NOISE) * (1.0 - sqrt(NOISE) / (2.0 * sqrt(C + NOISE)))
    assert pi_regret_bound(SETTING, C, NOISE, RHO, 1.3) == pytest.approx(eta * root + noise, rel=1e-12)

    root = sqrt(2.0 * C * RHO / (T * log(1.0 + C / 0.2)))
    noise = zeta * sqrt(NOISE) * (1.0 - sqrt(NOISE) / sqrt(C + NOISE))
    expected = 2.0 * beta * root + beta * sqrt(0.2) + noise
    assert alternative_regret_bound(SETTING, C, NOISE, 0.2, RHO) == pytest.approx(expected, rel=1e-12)

    expected = (sqrt(7.0 / 292.0) + sqrt(log(5.0))) * (sqrt(4.0 / 7.0) + sqrt(0.3))
    assert regret_rate(SETTING, NOISE, RHO) == pytest.approx(expected, rel=1e-12)


def test_the_stated_ucb_bound_fails_for_a_million_independent_inputs() -> None:
    # T = 1: a prior that knows no input from another chooses one without regard to f; the maximum of f is
    # drawn by inversion. A fact about the theorem: its proof treats the maximiser of f as a fixed input.
    inputs, noise_variance, random = 10**6, 1e-6, np.random.default_rng(0)
    setting = RegretSetting(10 * inputs, 1, 0.9)
    bound = ucb_regret_bound(setting, 1.0, noise_variance, 0.5 * log(1.0 + 1.0 / noise_variance))
    maxima = stats.norm.isf(-np.expm1(np.log(random.random(100_000)) / inputs))
    failed = (maxima - random.standard_normal(100_000) > bound).mean()
    assert failed == pytest.approx(0.95, abs=0.01)
    assert failed > setting.delta


def test_the_lemma_on_the_best_observation_fails_for_many_iterations() -> None:
    # One iteration has f larger by 2 zeta sigma, all others the same f: the largest of their noises, drawn by
    # inversion, beats it. A fact about the lemma: its proof treats the iteration of the largest y as fixed.
    iterations, delta, random = 1000, 0.9, np.random.default_rng(0)
    advantage = 2.0 * sqrt(2.0 * log(1.0 / delta)) * (1.0 + 1e-9)
    others = stats.norm.isf(-np.expm1(np.log(random.random(100_000)) / (iterations - 1)))
    failed = (others > advantage + random.standard_normal(100_000)).mean()
    assert failed == pytest.approx(0.98, abs=0.01)
    assert failed > delta


@pytest.mark.parametrize(
    ("functions", "iterations", "delta"), [(20, 5, 0.1), (300, 0, 0.1), (300, 5, 0.0), (300, 5, 1.0)]
)
def test_regret_bounds_outside_their_assumptions_are_refused(
    functions: int, iterations: int, delta: float
) -> None:
    with pytest.raises(InvalidInputError):
        ucb_coefficient(RegretSetting(functions, iterations, delta))


def test_too_few_training_functions_for_the_posterior_bound_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"N = 6 .* t = 5"):
        variance_bias(6, 5)
    with pytest.raises(InvalidInputError, match="not both positive"):
        ucb_regret_bound(SETTING, 1.0, 0.0, 1.0)
    for of_negative_gain in (
        lambda: ucb_regret_bound(SETTING, C, NOISE, -1e-9),
        lambda: pi_regret_bound(SETTING, C, NOISE, -1.0, 1.3),
        lambda: alternative_regret_bound(SETTING, C, NOISE, 0.2, float("nan")),
        lambda: regret_rate(SETTING, NOISE, -1.0),
    ):
        with pytest.raises(InvalidInputError, match=r"regret bound: information gain .* is negative"):
            of_negative_gain()


def random_covariance(seed: int, inputs: int) -> np.ndarray:
    root = np.random.default_rng(seed).normal(size=(inputs, inputs + 2))
    return root @ root.T / inputs


@pytest.mark.parametrize("observed", [(), (3,), (4, 0, 4)])
def test_a_conditioned_gaussian_is_that_of_an_explicit_inverse(observed: tuple[int, ...]) -> None:
    covariance, seen, random = random_covariance(7, 5), np.array(observed, int), np.random.default_rng(7)
    mean, y = random.normal(size=5), random.normal(size=len(seen))
    gain = covariance[:, seen] @ np.linalg.inv(covariance[np.ix_(seen, seen)] + NOISE * np.eye(len(seen)))
    found_mean, found_variance = condition(mean, covariance, NOISE, seen, y)
    np.testing.assert_allclose(found_mean, mean + gain @ (y - mean[seen]), rtol=1e-10)
    np.testing.assert_allclose(found_variance, np.diag(covariance - gain @ covariance[seen]), rtol=1e-10)


@given(st.integers(0, 50), st.floats(0.01, 10.0))
def test_information_gain_is_the_sum_over_posterior_variances_in_any_order(seed: int, noise: float) -> None:
    covariance = random_covariance(seed, 5)
    total = 0.0
    for count in range(5):
        cross, seen = covariance[count, :count], covariance[:count, :count] + noise * np.eye(count)
        total += 0.5 * log(1.0 + (covariance[count, count] - cross @ np.linalg.solve(seen, cross)) / noise)
    assert information_gain(covariance, noise) == pytest.approx(total, rel=1e-9)
    order = np.random.default_rng(seed).permutation(5)
    assert information_gain(covariance[np.ix_(order, order)], noise) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_greedy_information_gain_encloses_the_largest_of_all_sets(seed: int, repeats: bool) -> None:
    covariance, noise, count = random_covariance(seed, 6), 0.2, 3
    pick = itertools.combinations_with_replacement if repeats else itertools.combinations
    largest = max(
        0.5 * np.linalg.slogdet(np.eye(count) + covariance[np.ix_(places, places)] / noise)[1]
        for places in pick(range(6), count)
    )
    found = greedy_information_gain(covariance, noise, count, repeats=repeats)
    chosen = list(found.chosen)
    assert found.gain == pytest.approx(information_gain(covariance[np.ix_(chosen, chosen)], noise), rel=1e-10)
    assert found.gain <= largest * (1.0 + 1e-12)
    assert found.gain >= 0.9 * largest
    assert found.upper_bound == pytest.approx(found.gain / (1.0 - 1.0 / e), rel=1e-12)
    assert found.upper_bound >= largest
    assert repeats or len(set(chosen)) == count


def test_one_input_observed_again_and_again_gains_a_logarithm() -> None:
    found = greedy_information_gain(np.array([[2.0]]), 0.5, 9, repeats=True)
    assert found.gain == pytest.approx(0.5 * log(1.0 + 9.0 * 4.0), rel=1e-12)
    with pytest.raises(InvalidInputError, match="9 of 1 inputs"):
        greedy_information_gain(np.array([[2.0]]), 0.5, 9, repeats=False)


def test_what_has_no_information_gain_is_refused() -> None:
    with pytest.raises(NumericalError, match="no covariance"):
        information_gain(np.array([[-2.0]]), 1.0)
    with pytest.raises(InvalidInputError, match="noise variance 0"):
        information_gain(np.eye(2), 0.0)
    assert exp(2.0 * information_gain(np.zeros((2, 2)), 1.0)) == 1.0
