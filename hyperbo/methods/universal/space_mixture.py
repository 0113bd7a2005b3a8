"""A mixture over processes on one search space: what a tuner has in place of one prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperbo.compute.pytree import pytree
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.methods.universal.columns import Column
from hyperbo.methods.universal.hyperprior import COMPONENTS, HyperPrior


@pytree
class SpaceMixture:
    """Processes of one structure with their weights.

    Attributes:
      processes: stacked along a leading axis.
      log_weights: the logarithms of their weights before any trial.
      is_scored: whether they see normal scores (`hyperbo.methods.universal.values`); else the values of the
        prior that they extend.
    """

    processes: GaussianProcess
    log_weights: Float[Array, " m"]
    is_scored: bool = field(metadata={"static": True})


@double_precision
def universal_mixture(columns: Sequence[Column], learned: HyperPrior) -> SpaceMixture:
    """The universal prior on a space: drawn processes of equal weight.

    Args:
      columns: of the space, from `columns_of`.
      learned: the universal prior.
    """
    weights = jnp.full(COMPONENTS, -jnp.log(jnp.float64(COMPONENTS)))
    return SpaceMixture(learned.components(columns), weights, is_scored=True)
