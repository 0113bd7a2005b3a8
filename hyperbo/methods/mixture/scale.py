r"""A Gaussian process of unknown scale: its predictions are Student's t, and its evidence is exact.

A component m of a mixture has the covariance :math:`c \, (K_m + s_m^2 I)` with a scale c of its own, which is
integrated out. Its prior is the inverse gamma distribution

.. math:: \tfrac1c \sim \mathrm{Gamma}\left(\tfrac\nu2, \tfrac\nu2\right), \qquad
          \mathrm{E}\left[\tfrac1c\right] = 1, \qquad \nu = 5.

After t observations with the standardised errors :math:`z_i = (y_i - \mu(x_i)) / \sqrt{v(x_i) + s^2}`, each
from the prediction before it was made, :math:`q_t = \sum_i z_i^2 = r^\top (K + s^2 I)^{-1} r` with r the
observations less the prior mean. The next observation is Student's t with :math:`\nu + t` degrees of freedom,
the location :math:`\mu(x)` and the squared scale :math:`(v(x) + s^2)(\nu + q_t) / (\nu + t)`; the evidence is
the multivariate t density

.. math:: \ln p(y_1, \ldots, y_t) = {}& \ln \Gamma\left(\tfrac{\nu + t}{2}\right)
          - \ln \Gamma\left(\tfrac\nu2\right) - \tfrac t2 \ln(\nu \pi) \\
          & - \tfrac12 \ln |K + s^2 I| - \tfrac{\nu + t}{2} \ln(1 + q_t / \nu).

Source: Shah, Wilson and Ghahramani, "Student-t Processes as Alternatives to Gaussian Processes", AISTATS
2014, where the degrees of freedom are above 2 and the scale is that of the covariance.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax.scipy.special import gammaln
from jax.scipy.stats import t as student
from jaxtyping import Array, Bool, Float

from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import factorise

# nu: before any observation the scale is known within a factor of a few.
DEGREES = 5.0


def log_density(
    error: Float[Array, " m"],
    variance: Float[Array, " m"],
    quadratic: Float[Array, " m"],
    count: Float[Array, ""],
) -> Float[Array, " m"]:
    """The logarithm of each component's predictive density of one observation.

    Args:
      error: the observation less the predicted mean.
      variance: v + s^2, predicted at the scale 1.
      quadratic: q of the observations before.
      count: their number t.

    >>> import jax.numpy as jnp
    >>> one = jnp.ones(1)
    >>> round(float(log_density(0 * one, one, 0 * one, jnp.zeros(()))[0]), 4)
    -0.9686
    """
    scale = jnp.sqrt(variance * (DEGREES + quadratic) / (DEGREES + count))
    return student.logpdf(error, DEGREES + count, 0.0, scale)


def variance_factor(quadratic: Float[Array, "*m"], count: Float[Array, ""]) -> Float[Array, "*m"]:
    r"""By what the variance at the scale 1 is multiplied: the posterior mean of the scale c.

    .. math:: \mathrm{E}[c \mid y_1, \ldots, y_t] = (\nu + q_t) / (\nu + t - 2)
    """
    return (DEGREES + quadratic) / (DEGREES + count - 2.0)


def log_evidence(
    gp: GaussianProcess, x: Float[Array, "n d"], y: Float[Array, " n"], mask: Bool[Array, " n"]
) -> Float[Array, ""]:
    """The logarithm of the evidence of the rows of the mask.

    Args:
      gp: the component at the scale 1.
      x: inputs.
      y: observations.
      mask: which rows are observations.
    """
    mean, covariance = gp.noisy_moments(x)
    factorisation = factorise(covariance, mask)
    whitened = factorisation.inverse_factor @ jnp.where(mask, y - mean, 0.0)
    half_log_determinant = jnp.sum(jnp.log(jnp.diagonal(factorisation.factor)))
    count = jnp.sum(mask, dtype=covariance.dtype)
    return log_student(whitened @ whitened, half_log_determinant, count)


def log_student(
    quadratic: Float[Array, ""], half_log_determinant: Float[Array, ""], count: Float[Array, ""]
) -> Float[Array, ""]:
    """The logarithm of the multivariate t density at the head of this module.

    Args:
      quadratic: q of the observations.
      half_log_determinant: half of ln |K + s^2 I|.
      count: their number t.
    """
    return (
        gammaln(0.5 * (DEGREES + count))
        - math.lgamma(0.5 * DEGREES)
        - 0.5 * count * math.log(math.pi * DEGREES)
        - half_log_determinant
        - 0.5 * (DEGREES + count) * jnp.log1p(quadratic / DEGREES)
    )
