"""The Gaussian that a matched block is evidence of: mean and covariance over its tasks."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64

from hyperbo.errors import InvalidInputError
from hyperbo.gp.pytree import pytree
from hyperbo.tuning_data import MatchedBlock

# Eq. (estimate_mean_cov) divides by N, the number of tasks; the unbiased covariance by N - 1.
Estimator = Literal["mle", "unbiased"]


@pytree
class MatchedEstimate:
    """Estimated Gaussian of one matched block, Eq. (estimate_mean_cov).

    Attributes:
      x: the M shared inputs; rows outside the mask are padding.
      mean: mu~, the mean over tasks.
      root: A' with Sigma~ = A' A'^T: the centred observations over sqrt(N), one column per task; over
        sqrt(N - 1) where the estimator is the unbiased one.
      mask: which rows are inputs.
    """

    x: Float[Array, "m d"]
    mean: Float[Array, " m"]
    root: Float[Array, "m n"]
    mask: Bool[Array, " m"]


def estimate_root(
    y: Float64[np.ndarray, "m n"], estimator: Estimator
) -> tuple[Float64[np.ndarray, " m"], Float64[np.ndarray, "m n"]]:
    """The mean over tasks, and A' with Sigma~ = A' A'^T.

    Args:
      y: observations, one column per task.
      estimator: `mle`, or `unbiased`, which needs two tasks.

    Raises:
      InvalidInputError: one task has no unbiased covariance.

    >>> estimate_root(np.array([[0.0, 2.0, 0.0, 2.0]]), "mle")[1].tolist()
    [[-0.5, 0.5, -0.5, 0.5]]
    """
    columns = y.shape[1]
    if estimator == "unbiased" and columns < 2:
        raise InvalidInputError(
            "the unbiased covariance of one task is not defined", fix="use the estimator 'mle'"
        )
    mean = y.mean(axis=1)
    return mean, (y - mean[:, None]) / np.sqrt(columns if estimator == "mle" else columns - 1)


def matched_estimate(
    block: MatchedBlock, inputs: int, tasks: int, estimator: Estimator = "mle"
) -> MatchedEstimate:
    """Estimate a complete block's Gaussian, Eq. (estimate_mean_cov), padded to `inputs` and `tasks`.

    Raises:
      InvalidInputError: as `estimate_root`.
    """
    count, columns = block.y.shape
    mean, root = estimate_root(block.y, estimator)
    rows = (0, inputs - count)
    return MatchedEstimate(
        jnp.pad(block.x, (rows, (0, 0))),
        jnp.pad(mean, rows),
        jnp.pad(root, (rows, (0, tasks - columns))),
        jnp.arange(inputs) < count,
    )
