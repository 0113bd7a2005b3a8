r"""A prior that knows some columns of a space, extended to all of them by the universal prior.

The prior of mean mu and kernel k_0 is a function of the columns that it knows, x_0. In the unit s of its
values an extended process is

.. math:: f(x) = \mu(x_0) + f_0(x_0) + s \, \Bigl[\sum_{j \text{ new}} w_j^\top \phi_j(x) + a \, g(x)\Bigr],

with f_0 of the kernel k_0, the effects of the new columns and a Gaussian process g on all columns as the
universal prior has them (`hyperbo.methods.universal.hyperprior`). So a new column may shift the values and
may change how the known ones act; the share a says by how much, and is drawn with the length scales. In the
mixture the extended processes have the prior's weight. Processes of the universal prior alone, around the
centre of the prior's values, have the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, Float, Int

from hyperbo.compute.pytree import pytree
from hyperbo.gp.gaussian_process import MLP, GaussianProcess
from hyperbo.gp.kernels import Stationary
from hyperbo.gp.numerics import double_precision, inverse_softplus
from hyperbo.methods.mixture.uninformed import even_points
from hyperbo.methods.universal.columns import Column
from hyperbo.methods.universal.effects import EffectsMean, PlusEffects
from hyperbo.methods.universal.hyperprior import CONSTANT_VARIANCE, HyperPrior
from hyperbo.methods.universal.space_mixture import SpaceMixture

# Number of extended processes, and of those of the universal prior alone.
EXTENDED = 16
# Range of the share a, uniform in its logarithm.
SHARES = (0.1, 1.0)
# Number of points at which the unit of the prior's values is found.
_UNIT_POINTS = 256


@pytree
class ExtendedMean:
    """The prior's mean at the columns that it knows, or a constant; and the effects.

    Attributes:
      prior: the prior.
      places: of its columns among all.
      known: 1 of an extended process, 0 of one without the prior.
      centre: the constant.
      effects: what new columns are expected to add.
    """

    prior: GaussianProcess
    places: Int[Array, " k"]
    known: Float[Array, ""]
    centre: Float[Array, ""]
    effects: EffectsMean

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Prior mean at inputs."""
        mean = self.prior.mean(self.prior.features(x[:, self.places]))
        return self.known * mean + (1.0 - self.known) * self.centre + self.effects(x)


@pytree
class ExtendedKernel:
    """The prior's kernel on the columns that it knows, times `known`, and a kernel on all columns."""

    prior: GaussianProcess
    places: Int[Array, " k"]
    known: Float[Array, ""]
    rest: PlusEffects

    @property
    def raw_lengthscales(self) -> Float[Array, "*m d"]:
        """Those of the kernel on all columns."""
        return self.rest.raw_lengthscales

    def __call__(self, a: Float[Array, "n d"], b: Float[Array, "m d"]) -> Float[Array, "n m"]:
        """Covariance between two sets of inputs."""
        features = self.prior.features(a[:, self.places]), self.prior.features(b[:, self.places])
        return self.known * self.prior.kernel(*features) + self.rest(a, b)

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Variance at each row."""
        of_prior = self.prior.kernel.diagonal(self.prior.features(x[:, self.places]))
        return self.known * of_prior + self.rest.diagonal(x)


@double_precision
def extended_mixture(
    prior: GaussianProcess,
    places: Sequence[int],
    columns: Sequence[Column],
    learned: HyperPrior,
    prior_weight: float,
) -> SpaceMixture:
    """The mixture of extended processes and of those of the universal prior alone.

    Args:
      prior: of the known columns.
      places: of the prior's columns, in its order, among all.
      columns: all columns of the space.
      learned: the universal prior.
      prior_weight: of the extended processes together, before any trial.
    """
    prior = jax.tree.map(jnp.asarray, prior)
    at = jnp.asarray(places)
    centre, unit = unit_of_prior(prior, len(places))
    moments = learned.moments(columns)
    drawn = even_points(EXTENDED, len(columns) + 2)
    parameters = moments.mean + moments.deviation * ndtri(jnp.asarray(drawn[:, 1:]))
    low, high = np.log(SHARES)
    shares = jnp.exp(low + (high - low) * jnp.asarray(drawn[:, 0]))
    is_new = jnp.asarray(~np.isin(np.arange(len(columns)), places), jnp.float64)

    def process(known: Array, row: Array, share: Array) -> GaussianProcess:
        counts = jnp.tile(1.0 - known * (1.0 - is_new), 2)
        scale = unit**2 * (known * share**2 + 1.0 - known)
        own_noise = scale * jnp.exp(2.0 * row[-1])
        inner = Stationary(inverse_softplus(scale), inverse_softplus(jnp.exp(row[:-1])), "matern52")
        constant = (1.0 - known) * unit**2 * CONSTANT_VARIANCE
        weights, variances = jnp.asarray(moments.effect_mean), jnp.asarray(moments.effect_variance)
        rest = PlusEffects(inner, unit**2 * counts * variances, constant)
        expected = EffectsMean(unit * counts * weights)
        return GaussianProcess(
            MLP((), ()),
            ExtendedMean(prior, at, known, centre, expected),
            ExtendedKernel(prior, at, known, rest),
            inverse_softplus(known * prior.noise_variance + (1.0 - known) * own_noise),
        )

    known = jnp.repeat(jnp.array([1.0, 0.0]), EXTENDED)
    both = jax.vmap(process)(known, jnp.tile(parameters, (2, 1)), jnp.tile(shares, 2))
    weights = jnp.where(
        known > 0.0, math.log(prior_weight / EXTENDED), math.log((1 - prior_weight) / EXTENDED)
    )
    return SpaceMixture(both, weights, is_scored=False)


def unit_of_prior(gp: GaussianProcess, dimension: int) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Centre and spread of the values that a prior expects, over the unit cube."""
    mean, covariance = gp.noisy_moments(jnp.asarray(even_points(_UNIT_POINTS, dimension)))
    return jnp.mean(mean), jnp.sqrt(jnp.var(mean) + jnp.mean(jnp.diagonal(covariance)))
