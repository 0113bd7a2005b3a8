"""Mean and covariance of a finite set of inputs, estimated from tasks that were observed at all of them."""

from __future__ import annotations

from typing import Literal, get_args

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64
from numpy.typing import ArrayLike

from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import MatchedBlock
from hyperbo.errors import InvalidInputError
from hyperbo.gp.numerics import plain_array

# Eq. 4 (estimate_mean_cov) divides by N, the number of tasks; the unbiased covariance by N - 1.
Estimator = Literal["mle", "unbiased"]
# Of the largest entry of a covariance; a larger difference from its transpose is not rounding.
_SYMMETRY_TOLERANCE = 1e-8


def estimate_root(
    y: Float64[np.ndarray, "m n"], estimator: Estimator
) -> tuple[Float64[np.ndarray, " m"], Float64[np.ndarray, "m n"]]:
    r"""The mean over tasks, and A' with Sigma~ = A' A'^T, Eq. 4 (estimate_mean_cov).

    .. math:: \tilde\mu = \tfrac1N Y 1_N, \qquad A' = \tfrac1{\sqrt N} (Y - \tilde\mu 1_N^\top)

    Args:
      y: observations of M inputs, one column per task.
      estimator: `mle`, or `unbiased`: N - 1 in place of N under the root, which needs two tasks.

    Raises:
      InvalidInputError: there is no input or no task, a value is not finite, the estimator is unknown, or one
        task has no unbiased covariance.

    >>> estimate_root(np.array([[0.0, 2.0, 0.0, 2.0]]), "mle")[1].tolist()
    [[-0.5, 0.5, -0.5, 0.5]]
    """
    inputs, tasks = y.shape
    if estimator not in get_args(Estimator):
        raise InvalidInputError(
            f"unknown estimator {estimator!r}", fix=f"use {' or '.join(get_args(Estimator))}"
        )
    if inputs < 1 or tasks < 1:
        raise InvalidInputError(f"{inputs} inputs on {tasks} tasks have no mean", where="matched data")
    if not np.isfinite(y).all():
        raise InvalidInputError(
            "y is not finite", where="matched data", fix="remove every input that diverged on a task"
        )
    if estimator == "unbiased" and tasks < 2:
        raise InvalidInputError(
            "the unbiased covariance of one task is not defined", fix="use the estimator 'mle'"
        )
    mean = y.mean(axis=1)
    return mean, (y - mean[:, None]) / np.sqrt(tasks if estimator == "mle" else tasks - 1)


def checked_moments(
    mean: ArrayLike, covariance: ArrayLike, y: ArrayLike, where: str
) -> tuple[Float64[np.ndarray, " m"], Float64[np.ndarray, "m m"], Float64[np.ndarray, "m n"]]:
    """A model's moments at the inputs of a matched block, and the observations there, as float64 arrays.

    Raises:
      InvalidInputError: the shapes do not fit each other, a value is not finite, or the covariance is not
        symmetric.
    """
    mean = plain_array("mean", mean, 1, where)
    covariance, y = plain_array("covariance", covariance, 2, where), plain_array("y", y, 2, where)
    count = len(mean)
    if covariance.shape != (count, count) or len(y) != count:
        raise InvalidInputError(
            f"shapes {mean.shape} of the mean, {covariance.shape} of the covariance and {y.shape} of y",
            where=where,
            fix="give the shapes (M,), (M, M) and (M, N): M inputs and N tasks",
        )
    largest = np.abs(covariance).max(initial=0.0)
    if (np.abs(covariance - covariance.T) > _SYMMETRY_TOLERANCE * largest).any():
        raise InvalidInputError("the covariance is not symmetric", where=where)
    return mean, covariance, y


@pytree
class MatchedEstimate:
    """Estimated Gaussian of one matched block, Eq. 4 (estimate_mean_cov).

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
    """Estimate a complete block's Gaussian, Eq. 4 (estimate_mean_cov), padded to `inputs` and `tasks`.

    Raises:
      InvalidInputError: as in `estimate_root`.
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
