"""Default-Rand: a default configuration, then random ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from hyperbo.compute.pytree import pytree
from hyperbo.data.search_space import SearchSpace
from hyperbo.data.tuning_data import Task
from hyperbo.errors import InvalidInputError
from hyperbo.gp.numerics import double_precision
from hyperbo.methods.baselines.in_order import InOrder
from hyperbo.pretrain.jobs import Job, Progress, no_progress


@pytree
class DefaultRandPolicy(InOrder):
    """The candidate nearest to the default goes first."""

    default: Float[Array, " d"]

    def priority(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"]) -> Float[Array, " c"]:
        """1 for the candidate nearest to the default, 0 for all others."""
        squares = jnp.sum((candidates - self.default) ** 2, axis=1)
        nearest = jnp.argmin(jnp.where(mask, squares, jnp.inf))
        return jnp.zeros_like(squares).at[nearest].set(1.0)


@dataclass(frozen=True)
class DefaultRand:
    """Settings of Default-Rand: what somebody does who trusts a default and then tries at random.

    Random search is that of Bergstra and Bengio, "Random search for hyper-parameter optimization", JMLR 2012.

    Attributes:
      default: the raw value of every parameter by its name; None: the centre of the search space, as it is
        scaled. Where the candidates are recorded trials, the one nearest to it in the unit cube is tried.
    """

    default: dict[str, float | int | str | bool] | None = None

    @double_precision
    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[Float[Array, " d"]]:
        """The default in the unit cube; no training task is looked at.

        Raises:
          InvalidInputError: the default does not name the parameters of the search space, or a value is
            outside its range.
        """
        return [jnp.asarray(self._in_unit_cube(job.training.search_space)) for job in jobs]

    def _in_unit_cube(self, space: SearchSpace) -> np.ndarray:
        if self.default is None:
            return space.to_unit(space.from_unit(np.full((1, space.dimension), 0.5)))[0]
        active = {name for name in space.names if space.is_active(name, self.default)}
        if not active <= set(self.default) <= set(space.names):
            raise InvalidInputError(
                f"default has the parameters {', '.join(self.default) or 'none'}",
                where="Default-Rand",
                fix=f"give a value for each of {', '.join(space.names)}",
            )
        return space.to_unit(space.codes([self.default]))[0]

    def policy(self, fitted: Float[Array, " d"], task: Task) -> DefaultRandPolicy:
        """The same for every test task: its values are not looked at."""
        return DefaultRandPolicy(fitted)
