"""Mean and covariance of a finite set of inputs, estimated from tasks that were observed at all of them."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from jaxtyping import Float64

from hyperbo.errors import InvalidInputError

# Eq. (estimate_mean_cov) divides by N, the number of tasks; the unbiased covariance by N - 1.
Estimator = Literal["mle", "unbiased"]


def estimate_root(
    y: Float64[np.ndarray, "m n"], estimator: Estimator
) -> tuple[Float64[np.ndarray, " m"], Float64[np.ndarray, "m n"]]:
    r"""The mean over tasks, and A' with Sigma~ = A' A'^T, Eq. (estimate_mean_cov).

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
            "y is not finite", where="matched data", fix="keep the inputs that diverged on none of the tasks"
        )
    if estimator == "unbiased" and tasks < 2:
        raise InvalidInputError(
            "the unbiased covariance of one task is not defined", fix="use the estimator 'mle'"
        )
    mean = y.mean(axis=1)
    return mean, (y - mean[:, None]) / np.sqrt(tasks if estimator == "mle" else tasks - 1)
