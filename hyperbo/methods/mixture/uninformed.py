"""Uninformed components of a mixture: Gaussian processes on the inputs, their parameters drawn once."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hyperbo.data.tuning_data import TuningData
from hyperbo.gp.gaussian_process import MLP, GaussianProcess
from hyperbo.gp.kernels import PlusConstant, Stationary
from hyperbo.gp.means import Constant
from hyperbo.gp.numerics import double_precision, inverse_softplus

# How many there are, unless someone says otherwise.
UNINFORMED = 48
# Ranges of the log-uniform priors. Length scales are in sides of the unit cube, one for each input; the
# standard deviation of the noise is in that of the function, which is integrated out.
LENGTHSCALES = (0.1, 3.0)
NOISE_DEVIATIONS = (0.01, 0.5)
# Standard deviation of the normal prior on the constant mean, in that of the function; it is integrated out.
MEAN_DEVIATION = 2.0


@double_precision
def uninformed_processes(
    count: int, dimension: int, centre: float | Float[Array, ""], spread: float | Float[Array, ""]
) -> GaussianProcess:
    """Processes with a constant mean and an ARD Matern 5/2 kernel, stacked along a leading axis.

    Their parameters are the same for every seed and task: the first points of a sequence that fills the box
    of the logarithms evenly.

    Args:
      count: how many.
      dimension: d of the inputs.
      centre: where the constant mean is expected, in units of y.
      spread: standard deviation of the function at the scale 1, in units of y.
    """
    low, high = np.log([NOISE_DEVIATIONS, *[LENGTHSCALES] * dimension]).T
    drawn = np.exp(low + (high - low) * even_points(count, dimension + 1))
    signal = jnp.asarray(spread, jnp.float64) ** 2

    def process(row: Float[Array, " p"]) -> GaussianProcess:
        noise, mean_variance = signal * row[0] ** 2, signal * MEAN_DEVIATION**2
        return GaussianProcess(
            MLP((), ()),
            Constant(jnp.asarray(centre, row.dtype)),
            PlusConstant(
                Stationary(inverse_softplus(signal), inverse_softplus(row[1:]), "matern52"),
                inverse_softplus(mean_variance),
            ),
            inverse_softplus(noise),
        )

    return jax.vmap(process)(jnp.asarray(drawn))


def even_points(count: int, dimension: int) -> np.ndarray:
    r"""The first points of an additive recurrence in the unit cube: every part of it gets its share.

    .. math:: \left(\tfrac12 + n \phi_d^{-j}\right) \bmod 1, \qquad \phi_d^{d + 1} = \phi_d + 1

    The R-sequence of Roberts, "The Unreasonable Effectiveness of Quasirandom Sequences", 2018.

    >>> even_points(2, 1).round(3).tolist()
    [[0.118], [0.736]]
    """
    base = 2.0
    for _ in range(64):  # a fixed point; each round divides the error by more than two
        base = (1.0 + base) ** (1.0 / (dimension + 1))
    steps = base ** -np.arange(1.0, dimension + 1)
    return np.mod(0.5 + np.arange(1, count + 1)[:, None] * steps, 1.0)


def unit_of(training: TuningData) -> tuple[float, float]:
    """Centre and spread of y over training tasks, each task of equal weight; a spread of 0 becomes 1.

    The spread holds what tasks differ by: tasks of constant values still have a unit.
    """
    means = np.array([task.y.mean() for task in training.tasks])
    variance = np.mean([task.y.var() for task in training.tasks]) + means.var()
    return float(means.mean()), float(np.sqrt(variance)) or 1.0
