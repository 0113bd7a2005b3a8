"""Mean and covariance of a finite set of inputs by expectation-maximisation, from tasks with missing values.

Lin, Ament, Tiao, Eriksson, Balandat and Bakshy, "Empirical Gaussian Processes", ICML 2026, arXiv 2602.12082,
learn a prior in this way; the updates are those of Dempster, Laird and Rubin, "Maximum likelihood from
incomplete data via the EM algorithm", JRSS B 1977, for a Gaussian.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from hyperbo.compute.pytree import pytree
from hyperbo.gp.numerics import factorise


@pytree
class EmpiricalMoments:
    """mu and Sigma of the function values, without noise."""

    mean: Float[Array, " m"]
    covariance: Float[Array, "m m"]


def em_step(
    moments: EmpiricalMoments,
    y: Float[Array, "n m"],
    seen: Bool[Array, "n m"],
    noise_variance: Float[Array, ""],
    prior_covariance: Float[Array, "m m"],
    prior_tasks: Float[Array, ""] | float,
) -> EmpiricalMoments:
    r"""One iteration: from the moments of all tasks to those under which their observations are likelier.

    Expectation: given the observations of task i at its inputs S, all its function values have

    .. math:: m_i = \mu + \Sigma_{\cdot S} (\Sigma_{SS} + \sigma^2 I)^{-1} (y_i - \mu_S), \qquad
              V_i = \Sigma - \Sigma_{\cdot S} (\Sigma_{SS} + \sigma^2 I)^{-1} \Sigma_{S \cdot}

    Maximisation, under the density :math:`|\Sigma|^{-\kappa/2} \exp(-\tfrac\kappa2 \mathrm{tr}(\Sigma^{-1}
    K))` on the covariance, an inverse Wishart whose mode is K:

    .. math:: \mu' = \tfrac1N \sum_i m_i, \qquad
              \Sigma' = \frac{\sum_i \left(V_i + (m_i - \mu')(m_i - \mu')^\top\right) + \kappa K}{N + \kappa}

    The sum of the log marginal likelihood of all observations and the log density never falls. Where all is
    observed without noise and :math:`\kappa = 0`, one iteration gives Eq. 4 (estimate_mean_cov).

    Args:
      moments: mu and Sigma.
      y: observations, one row per task; those not seen count for nothing.
      seen: which inputs each task was observed at. A task that was observed nowhere is padding.
      noise_variance: sigma^2, which stays as it is: alone the observations do not tell it from Sigma.
      prior_covariance: K.
      prior_tasks: kappa, how many tasks K counts as; 0 for maximum likelihood.
    """

    def expect(task: tuple[Array, Array]) -> tuple[Array, Array]:
        values, inside = task
        noisy = moments.covariance + noise_variance * jnp.eye(len(inside), dtype=values.dtype)
        cross = jnp.where(inside[:, None], moments.covariance, 0.0)
        residual = jnp.where(inside, values - moments.mean, 0.0)
        whitened = factorise(noisy, inside).inverse_factor @ jnp.column_stack([residual, cross])
        return moments.mean + whitened[:, 0] @ whitened[:, 1:], whitened[:, 1:]

    own = jnp.any(seen, axis=1).astype(y.dtype)
    count = jnp.sum(own)

    def add(total: Array, task: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        mean, whitened = expect(task[:2])
        return total + task[2] * (whitened.T @ whitened), mean

    explained, means = lax.scan(add, jnp.zeros_like(moments.covariance), (y, seen, own))
    mean = own @ means / count
    centred = jnp.sqrt(own)[:, None] * (means - mean)
    second = count * moments.covariance - explained + centred.T @ centred
    return EmpiricalMoments(mean, (second + prior_tasks * prior_covariance) / (count + prior_tasks))
