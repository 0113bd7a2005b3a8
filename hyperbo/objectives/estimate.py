"""The Gaussian that a matched block is evidence of: mean and covariance over its tasks."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from hyperbo.gp.estimate import Estimator, estimate_root
from hyperbo.gp.pytree import pytree
from hyperbo.tuning_data import MatchedBlock


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
