"""Negative log marginal likelihood (NLL): the objective that needs no matched data."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64
from numpy.typing import ArrayLike

from hyperbo.data.tuning_data import PaddedTasks, pad_pairs
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.moments import as_observations, check_factorised
from hyperbo.gp.numerics import double_precision, gaussian_nll


@double_precision
def task_nll(
    gp: GaussianProcess, x: Float[Array, "n d"], y: Float[Array, " n"], mask: Bool[Array, " n"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """NLL of one padded task, Eq. 14 (singleml): what training minimises, for compiled code.

    Args:
      gp: model.
      x: inputs.
      y: observations.
      mask: which rows are observations; the others are padding.

    Returns:
      The NLL, and the relative jitter that its Cholesky factor needed.
    """
    mean, covariance = gp.noisy_moments(x)
    return gaussian_nll((y - mean)[:, None], covariance, mask)


def nll(gp: GaussianProcess, x: ArrayLike, y: ArrayLike) -> float:
    r"""Negative log marginal likelihood of the observations of one task, Eq. 14 (singleml).

    .. math:: \tfrac12 \left((y - \mu)^\top \Sigma^{-1} (y - \mu) + \ln|\Sigma| + M \ln 2\pi\right), \qquad
              \Sigma = k(x, x) + \sigma^2 I

    Args:
      gp: model.
      x: M inputs, one per row: an array of shape (M, d).
      y: one observation per input.

    Returns:
      The NLL in nats, computed in float64 whatever the default precision of JAX.

    Raises:
      InvalidInputError: the arrays do not fit each other, a value is not finite, or there is no observation.
      NumericalError: the covariance of the observations is not positive definite.

    >>> gp = GaussianProcess.from_values(lengthscales=[1.0], signal_variance=1.0, noise_variance=1.0)
    >>> bool(np.isclose(nll(gp, [[0.0]], [2.0]), 0.5 * (4.0 / 2.0 + np.log(2.0) + np.log(2.0 * np.pi))))
    True
    """
    return mean_nll(gp, [(x, y)])


@double_precision
def mean_nll(
    gp: GaussianProcess,
    tasks: Sequence[tuple[ArrayLike, ArrayLike]],
    task_weights: Sequence[float] | None = None,
) -> float:
    r"""NLL averaged over tasks, Eq. 13 (nll); with weights, Eq. 12 (pre-nll-weight).

    .. math:: \sum_i w_i \, \mathrm{NLL}_i \Big/ \sum_i w_i

    Args:
      gp: model.
      tasks: inputs and observations of each task, as `nll` takes them; they may differ in length.
      task_weights: w_i, not negative and not all 0; None: all equal.

    Returns:
      The average in nats, computed in float64 whatever the default precision of JAX.

    Raises:
      InvalidInputError: there is no task, one has no observation, arrays do not fit each other, a value is
        not finite, or the weights are not those of an average.
      NumericalError: the covariance of the observations of a task is not positive definite.

    >>> gp = GaussianProcess.from_values(lengthscales=[1.0])
    >>> one, two = ([[0.0], [0.5]], [0.1, 0.4]), ([[0.3]], [-0.2])
    >>> bool(np.isclose(mean_nll(gp, [one, two]), (nll(gp, *one) + nll(gp, *two)) / 2))
    True
    """
    padded = padded_arrays(gp, tasks)
    weights = normalised_weights(task_weights, len(tasks))
    values, jitters = _task_nlls(gp, *map(jnp.asarray, (padded.x, padded.y, padded.mask)))
    check_factorised(np.asarray(values), float(np.max(jitters)))
    return float(weights @ np.asarray(values))


_task_nlls = jax.jit(jax.vmap(task_nll, in_axes=(None, 0, 0, 0)))


def padded_arrays(gp: GaussianProcess, tasks: Sequence[tuple[ArrayLike, ArrayLike]]) -> PaddedTasks:
    """Plain arrays of tasks of a process, checked and stacked.

    Raises:
      InvalidInputError: there is no task, one has no observation, or its arrays do not fit each other.
    """
    if not tasks:
        raise InvalidInputError("there is no task", fix="give inputs and observations of at least one")
    pairs = [as_observations(gp, x, y) for x, y in tasks]
    for number, (x, y) in enumerate(pairs):
        columns, first_columns = x.shape[1], pairs[0][0].shape[1]
        if not len(y):
            raise InvalidInputError(f"task {number} has no observation", fix="leave this task out")
        if columns != first_columns:
            raise InvalidInputError(
                f"x has {columns} columns, task 0 has {first_columns}",
                where=f"task {number}",
                fix="give inputs of the same dimension for all tasks",
            )
    return pad_pairs(pairs)


def normalised_weights(weights: Sequence[float] | None, count: int) -> Float64[np.ndarray, " t"]:
    """Weights of an average over `count` tasks, with the sum 1.

    Raises:
      InvalidInputError: their number is another, one is negative or not finite, or all are 0.
    """
    given = np.ones(count) if weights is None else np.asarray(weights, np.float64)
    if given.shape != (count,) or not np.isfinite(given).all() or (given < 0.0).any() or not given.any():
        raise InvalidInputError(
            f"task weights {given.tolist()} for {count} tasks",
            fix="give one per task, none negative, not all 0, all finite",
        )
    return given / given.sum()
