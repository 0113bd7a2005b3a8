from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import softplus
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hyperbo.errors import InvalidInputError
from hyperbo.gp.parameter_priors import LogNormal, Normal, NormalOfLogarithm, inverse_soft_clip, soft_clip

pytestmark = pytest.mark.usefixtures("x64")

VALUES = np.array([0.05, 0.3, 1.0, 2.5, 7.0])


@pytest.mark.parametrize(
    ("prior", "density"),
    [
        (Normal(0.5, 0.2), lambda v: stats.norm(0.5, 0.2).logpdf(v)),
        (LogNormal(-0.3, 0.7), lambda v: stats.lognorm(0.7, scale=np.exp(-0.3)).logpdf(v)),
        (NormalOfLogarithm(-6.0, 3.0), lambda v: stats.norm(-6.0, 3.0).logpdf(np.log(v))),
    ],
    ids=["normal", "lognormal", "normal of the logarithm"],
)
def test_a_penalty_is_the_negative_log_density_up_to_a_constant(prior: Any, density: Any) -> None:
    penalties, expected = np.asarray(prior.penalty(jnp.asarray(VALUES))), -density(VALUES)
    np.testing.assert_allclose(penalties - penalties[0], expected - expected[0], rtol=1e-12, atol=1e-12)
    gradient = jax.vmap(jax.grad(prior.penalty))(jnp.asarray(VALUES))
    numeric = -(density(VALUES + 1e-6) - density(VALUES - 1e-6)) / 2e-6
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("location", "scale"), [(0.0, 0.0), (0.0, -1.0), (float("nan"), 1.0)])
def test_a_prior_without_a_density_is_refused(location: float, scale: float) -> None:
    for prior in (Normal, LogNormal, NormalOfLogarithm):
        with pytest.raises(InvalidInputError, match=f"{prior.__name__}.* is no density"):
            prior(location, scale)


@given(st.floats(-80.0, 80.0), st.floats(-10.0, 5.0), st.floats(0.5, 20.0))
def test_soft_clip_stays_inside_is_monotone_and_is_undone_by_its_inverse(
    raw: float, low: float, width: float
) -> None:
    high = low + width
    clipped, next_ = soft_clip(jnp.array([raw, raw + 1e-3]), low, high)
    assert low - 1e-12 <= clipped <= next_ <= high
    if low + 1e-3 * width < clipped < high - 1e-3 * width:
        back = inverse_soft_clip(clipped[None], low, high)
        assert float(back[0]) == pytest.approx(raw, abs=1e-8)


def test_soft_clip_is_the_composition_of_softplus_in_double_precision() -> None:
    raw, low, high = np.linspace(-12.0, 9.0, 15), -7.0, 2.5
    expected = high - softplus(high - low - softplus(raw - low)) * (high - low) / softplus(high - low)
    np.testing.assert_allclose(soft_clip(jnp.asarray(raw), low, high), expected, rtol=1e-12)


@pytest.mark.parametrize(("location", "scale"), [(-1.0, 1.0), (0.0, 1.0), (-6.0, 3.0)])
def test_stboh_values_stay_between_the_percentiles_of_their_prior(location: float, scale: float) -> None:
    prior = NormalOfLogarithm(location, scale)
    low, high = np.exp(stats.norm(location, scale).ppf([0.01, 0.99]))
    values = np.asarray(prior.clipped(jnp.array([-1e3, 0.0, 1e3])))
    assert values[0] == pytest.approx(low, rel=1e-9)
    assert values[2] == pytest.approx(high, rel=1e-9)
    start = np.exp(location) * np.array([0.5, 1.0, 2.0])
    np.testing.assert_allclose(prior.clipped(prior.unclipped(jnp.asarray(start))), start, rtol=1e-9)
