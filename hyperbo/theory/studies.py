"""The paper's synthetic studies on five inputs: Figures 3 (my_label), 4 (posterior) and 5 (posterior_50)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from hyperbo.errors import InvalidInputError
from hyperbo.gp.numerics import cholesky
from hyperbo.objectives.ekl import ekl
from hyperbo.theory.bounds import variance_bias
from hyperbo.theory.gaussian import condition, mean_nll

MODELS = ("ground truth", "MLE", "unbiased", "pre-trained")
PARAMETERS = ("constant", "lengthscale", "amplitude")
SMALLEST_LENGTHSCALE, LARGEST_LENGTHSCALE = 0.1, 5.0
GRID, REFINEMENTS = 100, 7  # each round leaves 2 / 99 of the interval


class FiniteDomainStudy(NamedTuple):
    """Posteriors of four models as a test function on {1, .., 5} is observed from left to right.

    Attributes:
      x: the inputs.
      training: training functions, one per row.
      test: the test function.
      mean: of each model of `MODELS`, after 0 .. 4 observations, at each input.
      variance: likewise; 0 at observed inputs, since there is no noise.
      lengthscale: of the pre-trained model; 1 is the truth.
      signal_variance: of the pre-trained model; 1 is the truth.
    """

    x: Float64[np.ndarray, " m"]
    training: Float64[np.ndarray, "n m"]
    test: Float64[np.ndarray, " m"]
    mean: Float64[np.ndarray, "4 m m"]
    variance: Float64[np.ndarray, "4 m m"]
    lengthscale: float
    signal_variance: float


def finite_domain_study(training_functions: int, seed: int) -> FiniteDomainStudy:
    """Figures 4 (posterior, 10 training functions) and 5 (posterior_50, 50).

    The ground truth has zero mean, the squared exponential kernel with lengthscale and variance 1, and no
    noise. MLE is Eq. 4 (estimate_mean_cov); "unbiased" multiplies its posterior variance by N / (N - t); the
    pre-trained model minimises EKL, Eq. 7 (nondegenerate), over the two parameters of the kernel.

    Args:
      training_functions: N, at least 7: more than T + 1, with T = 5.
      seed: of all draws.

    Raises:
      InvalidInputError: there are too few training functions.

    >>> study = finite_domain_study(50, seed=0)
    >>> study.variance[:, 0, 0].round(2).tolist()
    [1.0, 0.61, 0.63, 1.03]
    """
    x = np.arange(1.0, 6.0)
    if training_functions <= len(x) + 1:
        raise InvalidInputError(
            f"{training_functions} training functions on {len(x)} inputs",
            where="finite_domain_study",
            fix=f"use at least {len(x) + 2}",
        )
    covariance = _squared_exponential(x, 1.0)
    drawn = np.random.default_rng(seed).standard_normal((training_functions + 1, len(x)))
    functions = drawn @ cholesky(covariance, "the covariance of the ground truth").T
    training, test = functions[:-1], functions[-1]
    mle = training.mean(axis=0), np.cov(training.T, bias=True)
    lengthscale, signal_variance = _pre_train(x, *mle)
    zero, pre_trained = np.zeros(len(x)), signal_variance * _squared_exponential(x, lengthscale)
    mean, variance = (np.zeros((len(MODELS), len(x), len(x))) for _ in range(2))
    for model, moments in enumerate([(zero, covariance), mle, mle, (zero, pre_trained)]):
        for observations in range(len(x)):
            seen = np.arange(observations)
            mean[model, observations], variance[model, observations] = condition(
                *moments, 0.0, seen, test[seen]
            )
            variance[model, observations, seen] = 0.0  # not what rounding left
            if MODELS[model] == "unbiased":
                variance[model, observations] /= variance_bias(training_functions, observations + 1)
    return FiniteDomainStudy(x, training, test, mean, variance, lengthscale, signal_variance)


class LossLandscapes(NamedTuple):
    """EKL and NLL along each parameter of a model, the other two at 0, 1 and 1.

    Attributes:
      x: the inputs.
      training: training functions, one per row.
      values: of each parameter of `PARAMETERS`.
      ekl: Eq. 6 (degenerate) at each of these values.
      nll: Eq. 13 (nll) there, the mean over training functions.
    """

    x: Float64[np.ndarray, " m"]
    training: Float64[np.ndarray, "n m"]
    values: Float64[np.ndarray, "3 g"]
    ekl: Float64[np.ndarray, "3 g"]
    nll: Float64[np.ndarray, "3 g"]


def loss_landscapes(seed: int, resolution: int = 50) -> LossLandscapes:
    """Figure 3 (my_label): where the estimated covariance is degenerate, EKL and NLL have other minima.

    Three functions on five standard normal inputs are drawn from a Matern 5/2 kernel with amplitude and
    lengthscale 1. The model has a constant mean and a squared exponential kernel; an amplitude is a standard
    deviation.

    Args:
      seed: of all draws.
      resolution: number of values of each parameter.

    Raises:
      NumericalError: two of the inputs drawn are so close that a covariance cannot be factorised.
    """
    random = np.random.default_rng(seed)
    x = random.standard_normal(5)
    scaled = np.sqrt(5.0) * np.abs(np.subtract.outer(x, x))
    covariance = (1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled)
    factor = cholesky(covariance, "the covariance of the ground truth")
    training = random.standard_normal((3, len(x))) @ factor.T
    values = np.stack(
        [
            np.linspace(-4.0, 4.0, resolution),
            np.geomspace(0.2, 2.0, resolution),
            np.geomspace(0.1, 10.0, resolution),
        ]
    )
    losses = np.zeros((2, len(PARAMETERS), resolution))
    for parameter, place in np.ndindex(len(PARAMETERS), resolution):
        setting = np.array([0.0, 1.0, 1.0])
        setting[parameter] = values[parameter, place]
        constant, lengthscale, amplitude = setting
        model = np.full(len(x), constant), amplitude**2 * _squared_exponential(x, lengthscale)
        losses[:, parameter, place] = ekl(*model, training.T), mean_nll(*model, training)
    return LossLandscapes(x, training, values, *losses)


def _squared_exponential(x: Float64[np.ndarray, " m"], lengthscale: float) -> Float64[np.ndarray, "m m"]:
    return np.exp(-0.5 * (np.subtract.outer(x, x) / lengthscale) ** 2)


def _pre_train(
    x: Float64[np.ndarray, " m"],
    mean: Float64[np.ndarray, " m"],
    covariance: Float64[np.ndarray, "m m"],
) -> tuple[float, float]:
    """Lengthscale and signal variance of smallest EKL: a search on a line, as the best variance is explicit.

    For a correlation C the minimum over s of tr(S / (s C)) + ln|s C| is at s = tr(C^-1 S) / M, with S the
    second moment about the model's mean, 0.
    """
    moment = covariance + np.outer(mean, mean)

    def correlations(lengthscales: Float64[np.ndarray, " g"]) -> Float64[np.ndarray, "g m m"]:
        return np.stack([_squared_exponential(x, lengthscale) for lengthscale in lengthscales])

    def best_variances(lengthscales: Float64[np.ndarray, " g"]) -> Float64[np.ndarray, " g"]:
        solved = np.linalg.solve(correlations(lengthscales), moment[None])
        return np.trace(solved, axis1=1, axis2=2) / len(x)

    low, high = np.log(SMALLEST_LENGTHSCALE), np.log(LARGEST_LENGTHSCALE)
    for _ in range(REFINEMENTS):
        grid = np.linspace(low, high, GRID)
        lengthscales = np.exp(grid)
        _, log_determinants = np.linalg.slogdet(correlations(lengthscales))
        losses = len(x) * np.log(best_variances(lengthscales)) + log_determinants
        nearest = int(np.argmin(losses))
        low, high = grid[max(nearest - 1, 0)], grid[min(nearest + 1, GRID - 1)]
    best = np.exp(0.5 * np.array([low + high]))
    return float(best[0]), float(best_variances(best)[0])
