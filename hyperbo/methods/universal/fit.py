r"""Fitting the hyper-prior: empirical Bayes by expectation maximisation, with Laplace's approximation.

Task t has the parameters :math:`\theta_t` (logarithms of length scales and of the noise) and the evidence
:math:`p(z_t \mid \theta)`, the scale and the weights of the effects integrated out. In each round

.. math:: \hat\theta_t = \arg\max_\theta \; \ln p(z_t \mid \theta) + \ln p(\theta), \qquad
          C_t = \left(-\nabla^2 \ln [p(z_t \mid \theta) \, p(\theta)]\right)^{-1}_{\theta = \hat\theta_t},

and the moments of each group r become, the tasks of a space having one vote together,
:math:`\sum_t a_t = F_r` the number of spaces that have such a column and k the shrinkage,

.. math:: \mu_r = \frac{k \mu + \sum_t a_t \hat\theta_t}{k + F_r}, \qquad
          \sigma_r^2 = \frac{k \sigma^2 + \sum_t a_t [(\hat\theta_t - \mu_r)^2 + C_t]}{k + F_r}

with the moments :math:`\mu, \sigma` of all columns of the kind. The weights of the effects are normal given
:math:`\hat\theta_t`, and get moments in the same way; what a kind expects of a linear effect is 0, since
which end of a range is better says nothing of another role. Dempster, Laird and Rubin, "Maximum Likelihood
from Incomplete Data via the EM Algorithm", 1977; Tierney and Kadane, "Accurate Approximations for Posterior
Moments and Marginal Densities", 1986.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Float64
from scipy.optimize import minimize

from hyperbo.data.tuning_data import Task, TuningData
from hyperbo.errors import InvalidInputError, require_positive
from hyperbo.gp.numerics import double_precision, factorise
from hyperbo.methods.mixture.scale import log_student, variance_factor
from hyperbo.methods.universal.columns import KINDS, Column, columns_of
from hyperbo.methods.universal.effects import effects
from hyperbo.methods.universal.hyperprior import (
    Group,
    HyperPrior,
    Moments,
    Source,
    process,
    stretch_of,
)
from hyperbo.methods.universal.values import normal_scores

# Before the first round: length scales of a side, noise of a tenth of the deviation, within a factor of e.
_START = HyperPrior(
    {kind: Group((0.0, 1.0), (0.0, 0.0), (0.25, 0.25)) for kind in KINDS}, (math.log(0.1), 1.0)
)
# No group is surer than this of a logarithm, however alike its few columns were.
_SMALLEST_DEVIATION = 0.3
_SMALLEST_VARIANCE = 1e-3
# Where a task's logarithms are looked for: length scales, then noise.
_LENGTHSCALES, _NOISE = (-4.0, 5.0), (-6.0, 1.0)
_ITERATIONS = 30
# On the diagonal, relative to the variance of g: noise of e^-6 alone is 6e-6.
_JITTER = 1e-8
# Of the differences that the second derivatives are taken from.
_STEP = 1e-4


@dataclass(frozen=True)
class HyperPriorFit:
    """Settings of the fit.

    Attributes:
      points: trials of each task, drawn at random.
      tasks: of each space at most, drawn at random.
      rounds: of expectation maximisation.
      shrinkage: k, in spaces: how much a role resembles all columns of its kind.
      linear_shrinkage: the same of linear effects, towards 0.
      seed: of the draws.
    """

    points: int = 48
    tasks: int = 10
    rounds: int = 5
    shrinkage: float = 1.0
    linear_shrinkage: float = 3.0
    seed: int = 0

    def __post_init__(self) -> None:
        require_positive(self, "points", "tasks", "rounds", "shrinkage", "linear_shrinkage")


class _Seen(NamedTuple):
    """Some trials of a task, padded, and their normal scores."""

    x: Float[Array, "n d"]
    z: Float[Array, " n"]
    mask: Bool[Array, " n"]


class _Learned(NamedTuple):
    """What one task says of one column, or of the noise.

    Attributes:
      space: the space that it belongs to.
      share: of the space's vote.
      parameter: of its logarithm: value and variance.
      weight: of its effects: expected weights, their variances, and the scale that these are relative to.
    """

    column: Column
    space: str
    share: float
    parameter: tuple[float, float]
    weight: tuple[np.ndarray, np.ndarray, float]


@double_precision
def fit_hyperprior(histories: Mapping[str, TuningData], settings: HyperPriorFit | None = None) -> HyperPrior:
    """Learn a hyper-prior from tasks of several spaces.

    Args:
      histories: by the name of the space; all tasks of one are maximised.
      settings: of the fit; None: the defaults.

    Raises:
      InvalidInputError: there is no history.
    """
    if not histories:
        raise InvalidInputError("no history to fit a hyper-prior to")
    settings = settings or HyperPriorFit()
    random = np.random.default_rng(settings.seed)
    seen = {name: _drawn(data, settings, random) for name, data in histories.items()}
    columns = {name: columns_of(data.search_space) for name, data in histories.items()}
    found: dict[tuple[str, int], np.ndarray] = {}
    learned = _START
    for _ in range(settings.rounds):
        of_columns, of_noise = [], []
        for name, tasks in seen.items():
            moments = learned.moments(columns[name])
            for number, task in enumerate(tasks):
                start = found.get((name, number), moments.mean)
                at, spread = _most_likely(task, moments, start)
                found[name, number] = at
                expected, variance, scale = _weights(task, moments, at)
                share, count = 1.0 / len(tasks), len(columns[name])
                for place, column in enumerate(columns[name]):
                    both = [place, count + place]
                    weight = expected[both], variance[both], scale
                    logarithm = float(at[place]) - stretch_of(count), float(spread[place])
                    of_columns.append(_Learned(column, name, share, logarithm, weight))
                of_noise.append((share, float(at[-1]), float(spread[-1])))
        learned = HyperPrior(_groups(of_columns, settings), _moments(*np.array(of_noise).T))
    return learned


def source_of(data: TuningData) -> Source:
    """The description of tasks that a hyper-prior is fitted to."""
    provenance = data.provenance
    return Source(provenance.dataset, provenance.manifest_hash, data.search_space.names, len(data.tasks))


def _drawn(data: TuningData, settings: HyperPriorFit, random: np.random.Generator) -> list[_Seen]:
    """The trials that are used, of the tasks that are used."""
    tasks: Sequence[Task] = data.tasks
    if len(tasks) > settings.tasks:
        tasks = [tasks[each] for each in sorted(random.choice(len(tasks), settings.tasks, replace=False))]
    drawn = []
    for task in tasks:
        rows = random.permutation(len(task.y))[: settings.points]
        short = settings.points - len(rows)
        x = jnp.asarray(np.pad(task.x[rows], ((0, short), (0, 0))))
        mask = jnp.arange(settings.points) < len(rows)
        drawn.append(_Seen(x, normal_scores(jnp.asarray(np.pad(task.y[rows], (0, short))), mask), mask))
    return drawn


def _objective(
    parameters: Float[Array, " p"], seen: _Seen, moments: tuple[Array, Array, Array, Array]
) -> Float[Array, ""]:
    """Minus the logarithm of evidence times hyper-prior; `log_evidence` cannot be differentiated."""
    mean, deviation, weights, variances = moments
    log_prior = -0.5 * jnp.sum(((parameters - mean) / deviation) ** 2)
    expected, covariance = process(parameters, weights, variances).noisy_moments(seen.x)
    both = seen.mask[:, None] & seen.mask
    eye = jnp.eye(len(seen.z), dtype=covariance.dtype)
    factor = jnp.linalg.cholesky(jnp.where(both, covariance, 0.0) + jnp.where(both, _JITTER, 1.0) * eye)
    error = jnp.where(seen.mask, seen.z - expected, 0.0)
    whitened = solve_triangular(factor, error, lower=True)
    half_log_determinant = jnp.sum(jnp.log(jnp.diagonal(factor)))
    count = jnp.sum(seen.mask, dtype=covariance.dtype)
    return -log_student(whitened @ whitened, half_log_determinant, count) - log_prior


_value_and_gradient = jax.jit(jax.value_and_grad(_objective))
_gradients = jax.jit(jax.vmap(jax.grad(_objective), (0, None, None)))


def _most_likely(
    seen: _Seen, moments: Moments, start: Float64[np.ndarray, " p"]
) -> tuple[Float64[np.ndarray, " p"], Float64[np.ndarray, " p"]]:
    """The parameters of a task a posteriori, and their variances by Laplace's approximation."""
    arrays = moments.mean, moments.deviation, moments.effect_mean, moments.effect_variance

    def objective(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _value_and_gradient(parameters, seen, arrays)
        return float(value), np.asarray(gradient)

    bounds = [*[_LENGTHSCALES] * (len(start) - 1), _NOISE]
    at = minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _ITERATIONS}
    ).x
    # Central differences: the derivative of the Matern kernel at distance 0 has none of its own in JAX.
    steps = _STEP * np.eye(len(at))
    changes = np.asarray(_gradients(np.concatenate([at + steps, at - steps]), seen, arrays))
    hessian = (changes[: len(at)] - changes[len(at) :]) / (2.0 * _STEP)
    curvature, axes = np.linalg.eigh(0.5 * (hessian + hessian.T))
    # At a bound, or where the climb has not ended, the curvature may be negative: the data says nothing.
    inverse = 1.0 / np.maximum(curvature, 0.5 / np.max(moments.deviation) ** 2)
    return at, np.minimum(axes**2 @ inverse, moments.deviation**2)


@jax.jit
def _conditioned(
    parameters: Float[Array, " p"], seen: _Seen, weights: Float[Array, " e"], variances: Float[Array, " e"]
) -> tuple[Float[Array, " e"], Float[Array, " e"], Float[Array, ""]]:
    mean, covariance = process(parameters, weights, variances).noisy_moments(seen.x)
    inverse_factor = factorise(covariance, seen.mask).inverse_factor
    basis = jnp.where(seen.mask[:, None], effects(seen.x), 0.0)
    whitened = inverse_factor @ jnp.where(seen.mask, seen.z - mean, 0.0)
    crossed = inverse_factor @ (basis * variances)
    count = jnp.sum(seen.mask, dtype=whitened.dtype)
    return (
        weights + crossed.T @ whitened,
        variances - jnp.sum(crossed**2, axis=0),
        variance_factor(whitened @ whitened, count),
    )


def _weights(
    seen: _Seen, moments: Moments, at: Float64[np.ndarray, " p"]
) -> tuple[np.ndarray, np.ndarray, float]:
    """The weights of a task's effects: posterior mean, variance at the scale 1, and the expected scale."""
    expected, variance, scale = _conditioned(at, seen, moments.effect_mean, moments.effect_variance)
    return np.asarray(expected), np.asarray(variance), float(scale)


def _groups(learned: Sequence[_Learned], settings: HyperPriorFit) -> dict[str, Group]:
    """The moments of all kinds, and of all roles in them."""
    groups = dict(_START.groups)
    for kind in KINDS:
        of_kind = [each for each in learned if each.column.kind == kind]
        if not of_kind:
            continue
        groups[kind] = whole = _group(of_kind, None, settings)
        for role in sorted({each.column.role for each in of_kind}):
            of_role = [each for each in of_kind if each.column.role == role]
            groups[f"{kind}/{role}"] = _group(of_role, whole, settings)
    return groups


def _group(learned: Sequence[_Learned], whole: Group | None, settings: HyperPriorFit) -> Group:
    """The moments of some columns, shrunk to those of the whole kind."""
    spaces = len({each.space for each in learned})
    shares = np.array([each.share for each in learned])
    shares *= spaces / shares.sum()
    parameters, variances = np.array([each.parameter for each in learned]).T
    expected, spread = (np.array([each.weight[part] for each in learned]) for part in (0, 1))
    scales = np.array([each.weight[2] for each in learned])[:, None]
    if whole is None:
        lengthscale, means = _moments(shares, parameters, variances), shares @ expected / spaces
        deviations = shares @ ((expected - means) ** 2 / scales + spread) / spaces
        means = means * np.array([0.0, 1.0])
    else:
        k, (mean, deviation) = settings.shrinkage, whole.lengthscale
        centre = (k * mean + shares @ parameters) / (k + spaces)
        variance = (k * deviation**2 + shares @ ((parameters - centre) ** 2 + variances)) / (k + spaces)
        lengthscale = float(centre), max(math.sqrt(variance), _SMALLEST_DEVIATION)
        strength = np.array([settings.linear_shrinkage, k])
        means = (k * np.array(whole.effect_mean) + shares @ expected) / (strength + spaces)
        around = shares @ ((expected - means) ** 2 / scales + spread)
        deviations = (k * np.array(whole.effect_variance) + around) / (k + spaces)
    if learned[0].column.kind != "number":
        # Which of two levels comes first is a matter of the alphabet.
        means = np.zeros(2)
    linear, quadratic = np.maximum(deviations, _SMALLEST_VARIANCE).tolist()
    return Group(lengthscale, (float(means[0]), float(means[1])), (linear, quadratic))


def _moments(shares: np.ndarray, values: np.ndarray, variances: np.ndarray) -> tuple[float, float]:
    """Weighted mean, and the deviation that holds the uncertainty of each value."""
    mean = shares @ values / shares.sum()
    variance = shares @ ((values - mean) ** 2 + variances) / shares.sum()
    return float(mean), max(math.sqrt(variance), _SMALLEST_DEVIATION)
