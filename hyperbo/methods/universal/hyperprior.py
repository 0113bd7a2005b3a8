r"""A prior over Gaussian processes on any search space, by what each of its columns is.

A column j of kind and role r has

.. math:: \ln \ell_j \sim \mathcal N(\mu_r + \tfrac12 \ln(d / 5), \sigma_r^2), \qquad
          w_j \sim \mathcal N(m_r, \mathrm{diag}(s_r)),

the length scale of the Matern 5/2 kernel of g in a space of d columns and the weights of its effects
(`hyperbo.methods.universal.effects`). Distances grow with the root of d, so length scales do (Hvarfner,
Hellsten and Nardi, "Vanilla Bayesian Optimization Performs Great in High Dimensions", ICML 2024). The noise
has :math:`\ln \eta \sim \mathcal N(\mu_\eta, \sigma_\eta^2)`, relative to the deviation of g. What multiplies
all of them, the scale of the values, is integrated out (`hyperbo.methods.mixture.scale`).

The numbers of all roles are learned from tasks of other spaces, as in Fan, Han and Wang, "Transfer Learning
for Bayesian Optimization on Heterogeneous Search Spaces", TMLR 2024 (MPHD): a hierarchical model whose
processes have parameters that depend on descriptions of the inputs. There a network maps descriptions to
parameters and one process is used. Here the roles have moments, and the parameters are integrated out by a
mixture of drawn processes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, Float, Float64

from hyperbo.gp.gaussian_process import MLP, GaussianProcess
from hyperbo.gp.kernels import Stationary
from hyperbo.gp.numerics import double_precision, inverse_softplus
from hyperbo.methods.mixture.uninformed import even_points
from hyperbo.methods.universal.columns import Column
from hyperbo.methods.universal.effects import EffectsMean, PlusEffects

# Number of processes that stand for the hyper-prior.
COMPONENTS = 32
# Variance of the constant, in that of g.
CONSTANT_VARIANCE = 4.0


@dataclass(frozen=True)
class Group:
    """What is known of the columns of one kind, or of one kind and role.

    Attributes:
      lengthscale: mean and standard deviation of the logarithm of the length scale, in sides of the unit
        cube of a space of 5 columns.
      effect_mean: of the weights of the linear and the quadratic effect.
      effect_variance: of these weights.
    """

    lengthscale: tuple[float, float]
    effect_mean: tuple[float, float] = (0.0, 0.0)
    effect_variance: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class Source:
    """Tasks that a hyper-prior was fitted to.

    Attributes:
      name: dataset and version, or file of histories and its model.
      sha256: of the content.
      parameters: names of the parameters of its space.
      tasks: number of tasks.
    """

    name: str
    sha256: str
    parameters: tuple[str, ...]
    tasks: int


@dataclass(frozen=True)
class HyperPrior:
    """The learned numbers.

    Attributes:
      groups: by kind, such as `number`, and by kind and role, such as `number/learning_rate`.
      noise: mean and standard deviation of the logarithm of the noise's deviation.
      sources: what they were learned from.
    """

    groups: Mapping[str, Group]
    noise: tuple[float, float]
    sources: tuple[Source, ...] = ()

    def group(self, column: Column) -> Group:
        """That of the column's kind and role; that of its kind where the role is new."""
        return self.groups.get(f"{column.kind}/{column.role}", self.groups[column.kind])

    def moments(self, columns: Sequence[Column]) -> Moments:
        """The hyper-prior of one space, as arrays."""
        groups = [self.group(column) for column in columns]
        of_effects = [[*each.effect_mean, *each.effect_variance] for each in groups]
        linear, quadratic, linear_variance, quadratic_variance = np.array(of_effects, np.float64).T
        # A column of two values has no curvature: its square is the same at both.
        is_number = np.array([column.kind == "number" for column in columns])
        stretch = stretch_of(len(columns))
        return Moments(
            np.array([*(each.lengthscale[0] + stretch for each in groups), self.noise[0]]),
            np.array([*(each.lengthscale[1] for each in groups), self.noise[1]]),
            np.concatenate([linear, quadratic * is_number]),
            np.concatenate([linear_variance, quadratic_variance * is_number]),
        )

    @double_precision
    def components(self, columns: Sequence[Column], count: int = COMPONENTS) -> GaussianProcess:
        """Processes whose parameters are spread over the hyper-prior, stacked along a leading axis.

        Args:
          columns: of the search space, from `columns_of`.
          count: how many; they are of equal weight.
        """
        moments = self.moments(columns)
        normal = ndtri(jnp.asarray(even_points(count, len(columns) + 1)))
        parameters = moments.mean + moments.deviation * normal
        weights, variances = jnp.asarray(moments.effect_mean), jnp.asarray(moments.effect_variance)
        return jax.vmap(lambda row: process(row, weights, variances))(parameters)


@dataclass(frozen=True)
class Moments:
    """A hyper-prior on the columns of one space.

    Attributes:
      mean: of the logarithms of the length scales, then of the noise's deviation.
      deviation: of the same.
      effect_mean: of the weights of the linear effects, then of the quadratic ones.
      effect_variance: of the same.
    """

    mean: Float64[np.ndarray, " p"]
    deviation: Float64[np.ndarray, " p"]
    effect_mean: Float64[np.ndarray, " e"]
    effect_variance: Float64[np.ndarray, " e"]


def stretch_of(dimension: int) -> float:
    """What a space's number of columns adds to the logarithms of the length scales; 0 for 5."""
    return 0.5 * math.log(dimension / 5.0)


def process(
    parameters: Float[Array, " p"], weights: Float[Array, " e"], variances: Float[Array, " e"]
) -> GaussianProcess:
    """The Gaussian process with some parameters, at the scale 1.

    Args:
      parameters: logarithms of the length scales, then of the noise's deviation.
      weights: expected weights of the effects.
      variances: of these weights.
    """
    one = jnp.ones((), parameters.dtype)
    inner = Stationary(inverse_softplus(one), inverse_softplus(jnp.exp(parameters[:-1])), "matern52")
    return GaussianProcess(
        MLP((), ()),
        EffectsMean(weights),
        PlusEffects(inner, variances, CONSTANT_VARIANCE * one),
        inverse_softplus(jnp.exp(2.0 * parameters[-1])),
    )
