"""Simulations that confirm the theorems: table priors estimated from functions drawn from a known truth."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Float64, Int

from hyperbo.errors import InvalidInputError
from hyperbo.gp.numerics import cholesky
from hyperbo.theory.bounds import RegretSetting, posterior_bound, ucb_coefficient, variance_bias

Rule = Literal["ucb", "alternative_ucb", "pi"]

# Share of the smallest eigenvalue of the estimate that may be called noise, so that a kernel remains.
NOISE_SHARE = 0.5


class PosteriorSimulation(NamedTuple):
    """Pre-trained posteriors beside that of the ground truth, at t = 1 .. M: input t given those before it.

    Attributes:
      mean_errors: pre-trained mean less true mean, in true predictive standard deviations.
      variance_ratios: pre-trained over true predictive variance, without correction.
      observation_errors: the next observation less its true mean, in true predictive standard deviations.
      surprises: q, squared Mahalanobis distance of the observations so far from their true prior mean.
    """

    mean_errors: Float64[np.ndarray, "s m"]
    variance_ratios: Float64[np.ndarray, "s m"]
    observation_errors: Float64[np.ndarray, "s m"]
    surprises: Float64[np.ndarray, "s m"]


def simulate_posteriors(
    mean: Float64[np.ndarray, " m"],
    noisy_covariance: Float64[np.ndarray, "m m"],
    training_functions: int,
    simulations: int,
    seed: int,
) -> PosteriorSimulation:
    """Pre-train by Proposition 4 (gpexist) and condition on a test function, many times.

    Row t of a Cholesky factor conditions input t on those before it: its diagonal is the predictive standard
    deviation, and the whitened observation times it the observation less its predictive mean.

    Args:
      mean: ground truth mu* at the M inputs.
      noisy_covariance: ground truth covariance of observations there, noise included.
      training_functions: N, more than M; the mean errors at t = M have a variance only for N > M + 1.
      simulations: how many times training functions and a test function are drawn.
      seed: of all draws.

    Raises:
      InvalidInputError: training functions are not more than inputs, as Assumption 3 (finite) asks.
      NumericalError: the covariance is not positive definite.
    """
    inputs = len(mean)
    _check_functions(training_functions, inputs)
    random = np.random.default_rng(seed)
    factor = cholesky(noisy_covariance, "the covariance of the ground truth")
    estimated_mean, estimated_covariance = _estimates(
        mean + random.standard_normal((simulations, training_functions, inputs)) @ factor.T
    )
    white = random.standard_normal((simulations, inputs))
    observations = mean + white @ factor.T
    estimated_factor = cholesky(estimated_covariance, "an estimated covariance")
    residuals = (observations - estimated_mean)[..., None]
    estimated_white = np.linalg.solve(estimated_factor, residuals)[..., 0]
    deviations, estimated_deviations = np.diag(factor), np.diagonal(estimated_factor, axis1=1, axis2=2)
    squares = white**2
    return PosteriorSimulation(
        white - estimated_white * estimated_deviations / deviations,
        (estimated_deviations / deviations) ** 2,
        white,
        np.cumsum(squares, axis=1) - squares,
    )


def within_posterior_bound(
    simulation: PosteriorSimulation, training_functions: int, delta: float
) -> tuple[Bool[np.ndarray, "s m"], Bool[np.ndarray, "s m"]]:
    """Where the statements of Theorem 5 (posterior_bound) on mean and on variance came true.

    Args:
      simulation: what happened.
      training_functions: N, more than M + 1.
      delta: probability with which the statements may fail, together.

    Raises:
      InvalidInputError: N is at most M + 1, or delta is no probability between 0 and 1.
    """
    iterations = range(1, simulation.mean_errors.shape[1] + 1)
    bounds = [posterior_bound(training_functions, t, delta) for t in iterations]
    a, _, lower, upper = np.array(bounds).T
    biases = np.array([variance_bias(training_functions, t) for t in iterations])
    corrected = simulation.variance_ratios / biases
    return np.abs(simulation.mean_errors) < a, (lower < corrected) & (corrected < upper)


class RegretSimulation(NamedTuple):
    """Runs of Bayesian optimization with table priors, and what the regret bounds are made of.

    Attributes:
      regret: max f less f at the input of the largest observation.
      chosen: the input of each iteration.
      information_gain: of the inputs chosen, under the ground truth; at most rho_T of multisets.
      estimated_information_gain: of the inputs chosen, under the pre-trained model.
      smallest_variance: the smallest true posterior variance that an input had when it was chosen.
      standardised_target: max f less the true posterior mean at x*, over the true predictive standard
        deviation there, in the iteration of that smallest variance.
      estimated_noise_variance: of the pre-trained model.
      estimated_largest_variance: of the pre-trained model without noise, over inputs.
    """

    regret: Float64[np.ndarray, " s"]
    chosen: Int[np.ndarray, "s t"]
    information_gain: Float64[np.ndarray, " s"]
    estimated_information_gain: Float64[np.ndarray, " s"]
    smallest_variance: Float64[np.ndarray, " s"]
    standardised_target: Float64[np.ndarray, " s"]
    estimated_noise_variance: Float64[np.ndarray, " s"]
    estimated_largest_variance: Float64[np.ndarray, " s"]


def simulate_regret(
    rule: Rule,
    mean: Float64[np.ndarray, " m"],
    covariance: Float64[np.ndarray, "m m"],
    noise_variance: float,
    setting: RegretSetting,
    simulations: int,
    seed: int,
) -> RegretSimulation:
    """Algorithm 1 (hyperbo) on functions drawn from the ground truth, with priors pre-trained on others.

    The paper leaves open how the estimated covariance divides into kernel and noise; here the noise is the
    true one, or half the smallest eigenvalue where that is less, so that the kernel stays positive definite.
    An input may be chosen again.

    Args:
      rule: GP-UCB of Eq. 21 (acfun-ucb) or Eq. 33 (alternative_ucb) with the coefficient of their theorems,
        or max-value PI with the function's true maximum as its target.
      mean: ground truth mu* at the inputs.
      covariance: k* there, without noise.
      noise_variance: sigma*^2.
      setting: N, T and delta; delta is that of the coefficient.
      simulations: how many runs.
      seed: of all draws.

    Raises:
      InvalidInputError: training functions are not more than inputs, as Assumption 3 (finite) asks, or are
        too few for the coefficient; or the rule is unknown.
      NumericalError: the covariance is not positive definite without noise; nothing is added to it, since the
        functions would be draws of another truth.
    """
    if rule not in get_args(Rule):
        raise InvalidInputError(f"unknown rule {rule!r}", fix=f"use {', '.join(get_args(Rule))}")
    inputs, (functions, iterations, _) = len(mean), setting
    _check_functions(functions, inputs)
    beta = ucb_coefficient(setting)
    random = np.random.default_rng(seed)
    noisy = covariance + noise_variance * np.eye(inputs)
    noisy_factor, factor = (
        cholesky(matrix, "the covariance of the ground truth") for matrix in (noisy, covariance)
    )
    drawn = random.standard_normal((simulations, functions, inputs)) @ noisy_factor.T
    estimated_mean, estimated_covariance = _estimates(mean + drawn)
    smallest = np.linalg.eigvalsh(estimated_covariance)[:, 0]
    estimated_noise = np.minimum(noise_variance, NOISE_SHARE * smallest)
    estimated_kernel = estimated_covariance - estimated_noise[:, None, None] * np.eye(inputs)
    f = mean + random.standard_normal((simulations, inputs)) @ factor.T
    maxima, best_inputs, runs = f.max(axis=1), f.argmax(axis=1), np.arange(simulations)

    truth = _Belief(
        np.tile(mean, (simulations, 1)),
        np.tile(covariance, (simulations, 1, 1)),
        np.full(simulations, noise_variance),
    )
    model = _Belief(estimated_mean, estimated_kernel, estimated_noise)
    chosen = np.zeros((simulations, iterations), np.int64)
    observed, variances, estimated_variances, targets = (
        np.zeros((simulations, iterations)) for _ in range(4)
    )
    for step in range(iterations):
        extra = 0.0 if rule == "alternative_ucb" else estimated_noise[:, None]
        deviation = np.sqrt(model.variances() + extra)
        scores = (model.mean - maxima[:, None]) / deviation if rule == "pi" else model.mean + beta * deviation
        chosen[:, step] = places = scores.argmax(axis=1)
        observed[:, step] = y = f[runs, places] + np.sqrt(noise_variance) * random.standard_normal(
            simulations
        )
        variances[:, step] = truth.variances()[runs, places]
        estimated_variances[:, step] = model.variances()[runs, places]
        at_best = np.sqrt(truth.variances()[runs, best_inputs] + noise_variance)
        targets[:, step] = (maxima - truth.mean[runs, best_inputs]) / at_best
        truth, model = truth.observe(places, y), model.observe(places, y)
    recommended = chosen[runs, observed.argmax(axis=1)]
    smallest_at = variances.argmin(axis=1)
    return RegretSimulation(
        regret=maxima - f[runs, recommended],
        chosen=chosen,
        information_gain=0.5 * np.log1p(variances / noise_variance).sum(axis=1),
        estimated_information_gain=0.5 * np.log1p(estimated_variances / estimated_noise[:, None]).sum(axis=1),
        smallest_variance=variances.min(axis=1),
        standardised_target=targets[runs, smallest_at],
        estimated_noise_variance=estimated_noise,
        estimated_largest_variance=np.diagonal(estimated_kernel, axis1=1, axis2=2).max(axis=1),
    )


class _Belief(NamedTuple):
    """Gaussian beliefs about the function at all inputs, one per run."""

    mean: Float64[np.ndarray, "s m"]
    covariance: Float64[np.ndarray, "s m m"]
    noise_variance: Float64[np.ndarray, " s"]

    def variances(self) -> Float64[np.ndarray, "s m"]:
        return np.maximum(np.diagonal(self.covariance, axis1=1, axis2=2), 0.0)

    def observe(self, places: Int[np.ndarray, " s"], y: Float64[np.ndarray, " s"]) -> _Belief:
        runs = np.arange(len(places))
        column = self.covariance[runs, places]
        pivot = column[runs, places] + self.noise_variance
        gain = column / pivot[:, None]
        mean = self.mean + gain * (y - self.mean[runs, places])[:, None]
        return _Belief(mean, self.covariance - gain[:, :, None] * column[:, None, :], self.noise_variance)


def _estimates(
    observations: Float64[np.ndarray, "s n m"],
) -> tuple[Float64[np.ndarray, "s m"], Float64[np.ndarray, "s m m"]]:
    """Maximum-likelihood mean and covariance of each set of functions, Eq. 4 (estimate_mean_cov)."""
    mean = observations.mean(axis=1)
    centred = observations - mean[:, None, :]
    return mean, centred.transpose(0, 2, 1) @ centred / observations.shape[1]


def _check_functions(training_functions: int, inputs: int) -> None:
    if training_functions <= inputs:
        raise InvalidInputError(
            f"{training_functions} training functions for {inputs} inputs",
            where="simulation",
            fix="Assumption 3 (finite) asks for more functions than inputs",
        )
