"""Negative log marginal likelihood: the objective that needs no matched data."""

from __future__ import annotations

from jaxtyping import Array, Bool, Float

from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import gaussian_nll


def task_nll(
    gp: GaussianProcess, x: Float[Array, "n d"], y: Float[Array, " n"], mask: Bool[Array, " n"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Negative log marginal likelihood of one task, Eq. (singleml).

    Args:
      gp: model.
      x: inputs; rows outside the mask are padding.
      y: observations.
      mask: which rows are observations.

    Returns:
      The NLL, and the relative jitter that its Cholesky factor needed.
    """
    mean, covariance = gp.noisy_moments(x)
    return gaussian_nll((y - mean)[:, None], covariance, mask)
