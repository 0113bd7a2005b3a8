from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from hyperbo.acquisition.functions import (
    best_candidate,
    estimated_max_value,
    log_expected_improvement,
    log_improvement,
    max_value_probability_of_improvement,
    probability_of_improvement,
    random_scores,
    upper_confidence_bound,
)

pytestmark = pytest.mark.usefixtures("x64")

MEAN, VARIANCE, NOISE = np.array([0.3, -1.2, 2.0, 0.9]), np.array([0.5, 0.1, 1e-8, 2.0]), 0.2


value_and_slope = jax.jit(jax.vmap(jax.value_and_grad(log_improvement)))
log_ei = jax.jit(log_expected_improvement)
max_value_of = jax.jit(estimated_max_value)


def posterior() -> tuple[jax.Array, jax.Array, jax.Array]:
    return jnp.asarray(MEAN), jnp.asarray(VARIANCE), jnp.asarray(NOISE)


def nothing_observed() -> jax.Array:
    return jnp.asarray(-jnp.inf)


def integral(z: float, power: int) -> float:
    """The integral of t^power exp(z t - t^2 / 2) over t > 0: no cancellation, and no overflow for z <= 0."""
    value, _ = integrate.quad(
        lambda s: s**power * np.exp(-s - 0.5 * (s / z) ** 2), 0.0, np.inf, epsabs=0.0, epsrel=1e-12
    )
    return float(value / abs(z) ** (power + 1))


@pytest.mark.parametrize("z", [-3.0, -3.999, -4.001, -7.0, -40.0, -1e3, -1e6])
def test_log_improvement_in_the_tail_is_the_integral(z: float) -> None:
    # E[max(z + u, 0)] = phi(z) times the integral of t exp(z t - t^2 / 2); Phi(z) likewise without the t.
    expected = integral(z, 1)
    value, slope = value_and_slope(jnp.array([z, z, z]))
    log_density = -0.5 * z * z - 0.5 * np.log(2.0 * np.pi)
    assert float(value[0]) == pytest.approx(log_density + np.log(expected), rel=1e-13, abs=1e-10)
    assert float(slope[0]) == pytest.approx(integral(z, 0) / expected, rel=1e-10)


def test_log_improvement_is_the_scaled_form_of_the_reference() -> None:
    # Ament et al. (2023), Eq. (9), with scipy's erfcx; it loses digits as z^2 in the tail.
    z = np.linspace(-30.0, -1.0, 60)
    scaled = np.sqrt(np.pi / 2.0) * special.erfcx(-z / np.sqrt(2.0))
    expected = -0.5 * z**2 - 0.5 * np.log(2.0 * np.pi) + np.log1p(z * scaled)
    np.testing.assert_allclose(log_improvement(jnp.asarray(z)), expected, rtol=1e-13, atol=1e-11)


def test_log_improvement_above_the_tail_is_the_plain_formula() -> None:
    z = np.linspace(-2.0, 9.0, 45)
    value, slope = value_and_slope(jnp.asarray(z))
    improvement = stats.norm.pdf(z) + z * stats.norm.cdf(z)
    np.testing.assert_allclose(value, np.log(improvement), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(slope, stats.norm.cdf(z) / improvement, rtol=1e-12)


def test_log_improvement_and_its_slope_are_finite_and_smooth_everywhere() -> None:
    z = np.concatenate([-np.logspace(150, -3, 200), np.logspace(-3, 300, 200)])
    value, slope = (np.asarray(part) for part in value_and_slope(jnp.asarray(z)))
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    assert (np.diff(value) > 0.0).all()
    assert (slope > 0.0).all()
    assert (np.diff(slope) <= 1e-15 * slope[1:]).all()  # concave
    around = np.array([-4.0 - 1e-12, -4.0, -4.0 + 1e-12])  # where the two forms meet
    value, slope = value_and_slope(jnp.asarray(around))
    np.testing.assert_allclose(value, value[1], rtol=1e-12)
    np.testing.assert_allclose(slope, slope[1], rtol=1e-12)
    curvature = jax.vmap(jax.grad(jax.grad(log_improvement)))(jnp.asarray(around))
    np.testing.assert_allclose(curvature, curvature[1], rtol=1e-9)


@given(st.floats(-1e4, 1e4))
def test_the_slope_of_log_improvement_is_a_difference_quotient(z: float) -> None:
    step = 1e-5 * max(1.0, abs(z))
    (low, middle, high), slopes = value_and_slope(jnp.array([z - step, z, z + step]))
    rounding = 1e-15 * max(1.0, abs(float(middle))) / step
    # In the tail the quotient is exact but for rounding; elsewhere its error is of the order of step^2.
    assert float((high - low) / (2.0 * step)) == pytest.approx(
        float(slopes[1]), rel=1e-6, abs=10.0 * rounding
    )


def test_expected_improvement_is_that_of_an_observation_over_the_best() -> None:
    best = 1.1
    deviation = np.sqrt(VARIANCE + NOISE)
    expected = [
        integrate.quad(lambda y, m=m, s=s: (y - best) * stats.norm.pdf(y, m, s), best, m + 12 * s)[0]
        if m + 12 * s > best
        else 0.0
        for m, s in zip(MEAN, deviation, strict=True)
    ]
    np.testing.assert_allclose(np.exp(log_ei(*posterior(), jnp.asarray(best))), expected, rtol=1e-7)
    z = MEAN / deviation
    at_zero = np.log(deviation * (stats.norm.pdf(z) + z * stats.norm.cdf(z)))
    np.testing.assert_allclose(log_ei(*posterior(), nothing_observed()), at_zero, rtol=1e-12)


def test_a_hopeless_candidate_still_has_a_gradient() -> None:
    def score(mean: jax.Array) -> jax.Array:
        return log_expected_improvement(mean, jnp.array([0.0]), jnp.asarray(1e-4), jnp.asarray(10.0))[0]

    # z = -1000: EI underflows, log EI rises by |z| / sigma per unit of the mean.
    gradient = jax.grad(score)(jnp.array([0.0]))
    assert float(gradient[0]) == pytest.approx(1e3 / 1e-2, rel=1e-5)


def test_upper_confidence_bound_is_the_mean_and_three_deviations() -> None:
    deviation = np.sqrt(VARIANCE + NOISE)
    np.testing.assert_allclose(
        upper_confidence_bound(*posterior(), nothing_observed()), MEAN + 3.0 * deviation, rtol=1e-14
    )
    np.testing.assert_allclose(
        upper_confidence_bound(*posterior(), nothing_observed(), 1.8), MEAN + 1.8 * deviation, rtol=1e-14
    )


def test_max_value_pi_takes_its_target_from_the_estimate() -> None:
    scores = max_value_probability_of_improvement(*posterior(), jnp.asarray(0.0), jnp.asarray(2.5))
    np.testing.assert_allclose(scores, (MEAN - 2.5) / np.sqrt(VARIANCE + NOISE), rtol=1e-14)
    # With the threshold of the paper as the estimate it is thresholded PI.
    scores = max_value_probability_of_improvement(*posterior(), jnp.asarray(0.7), jnp.asarray(0.7 + 0.1))
    np.testing.assert_array_equal(scores, probability_of_improvement(*posterior(), jnp.asarray(0.7)))


@pytest.mark.parametrize("quantile", [0.01, 0.5, 0.99])
def test_the_estimated_maximum_is_a_quantile_of_independent_normals(quantile: float) -> None:
    mask = np.array([True, True, False, True])
    value = float(max_value_of(*posterior()[:2], jnp.asarray(mask), quantile))
    probability = stats.norm.cdf(value, MEAN[mask], np.sqrt(VARIANCE[mask])).prod()
    assert probability == pytest.approx(quantile, rel=1e-10)


def test_the_estimated_maximum_of_known_values_is_their_maximum() -> None:
    value = max_value_of(posterior()[0], jnp.zeros(4), jnp.ones(4, bool))
    assert float(value) == pytest.approx(2.0, rel=1e-12)


def test_the_estimated_maximum_errs_upwards_for_positively_correlated_values() -> None:
    covariance = np.exp(-0.5 * np.subtract.outer(np.arange(4.0), np.arange(4.0)) ** 2)
    maxima = np.random.default_rng(0).multivariate_normal(np.zeros(4), covariance, 20_000).max(axis=1)
    value = float(max_value_of(jnp.zeros(4), jnp.ones(4), jnp.ones(4, bool)))
    assert (maxima <= value).mean() > 0.5


def test_random_scores_choose_every_candidate_equally_often() -> None:
    def choose(key: jax.Array) -> jax.Array:
        return best_candidate(random_scores(*posterior(), nothing_observed(), key), jnp.ones(4, bool))

    draws = 4000
    counts = np.bincount(jax.jit(jax.vmap(choose))(jax.random.split(jax.random.key(0), draws)), minlength=4)
    assert stats.chisquare(counts).pvalue > 1e-4


@given(st.lists(st.sampled_from([0.0, 1.0, -np.inf, np.nan]), min_size=5, max_size=5), st.integers(1, 31))
def test_the_best_candidate_is_the_first_allowed_one_with_the_largest_score(
    scores: list[float], allowed: int
) -> None:
    mask = [bool(allowed >> place & 1) for place in range(5)]
    numbers = [-np.inf if np.isnan(score) else score for score in scores]
    largest = max(number for number, may in zip(numbers, mask, strict=True) if may)
    expected = next(place for place in range(5) if mask[place] and numbers[place] == largest)
    assert int(best_candidate(jnp.array(scores), jnp.array(mask))) == expected
