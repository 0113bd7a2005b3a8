"""A Gaussian process of one task alone, by type-II maximum likelihood on points of that task."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int64

from hyperbo.compute.optimizers import minimise_lbfgs
from hyperbo.data.tuning_data import Task
from hyperbo.errors import InvalidInputError, NumericalError, require_positive
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.gp.numerics import inverse_softplus
from hyperbo.objectives.nll import task_nll

# Of the prior variance. Noiseless values drive the noise to zero, where a repeated candidate has no pivot;
# equal values drive the prior variance there too: it counts as no less than this.
SMALLEST_NOISE = 1e-8


def _on_inputs() -> Architecture:
    return Architecture(hidden=(), kernel="squared_exponential", mean="constant")


@dataclass(frozen=True)
class TaskGP:
    """How the hyperparameters of a task's Gaussian process are found.

    Attributes:
      architecture: squared exponential kernel with a lengthscale per input, as in the published code. Its
        prior mean is the mean of the observations so far; ours is a constant fitted with the rest.
      points: of the task, drawn uniformly; 100, as in the published code.
      iterations: of L-BFGS; 100, our choice.
    """

    architecture: Architecture = field(default_factory=_on_inputs)
    points: int = 100
    iterations: int = 100

    def __post_init__(self) -> None:
        require_positive(self, "points", "iterations")
        if self.architecture.hidden:
            raise InvalidInputError(
                f"hidden = {self.architecture.hidden}: a task alone has no features",
                where="TaskGP",
                fix="use hidden=()",
            )

    def rows(self, count: int) -> Int64[np.ndarray, " rows"]:
        """Draw the rows of a task of `count` points that are fitted to; the same ones every time."""
        return np.random.default_rng(0).permutation(count)[: self.points]

    def fit(self, task: Task) -> GaussianProcess:
        """Minimise the negative log marginal likelihood, Eq. 14 (singleml), of points of one task.

        Raises:
          NumericalError: a parameter is not finite.
        """
        rows = self.rows(len(task.y))
        x, y = np.zeros((self.points, task.x.shape[1])), np.zeros(self.points)
        x[: len(rows)], y[: len(rows)] = task.x[rows], task.y[rows]
        gp = _fit(self, jnp.asarray(x), jnp.asarray(y), jnp.arange(self.points) < len(rows))
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gp)):
            raise NumericalError(
                f"the Gaussian process of task {task.name!r} has parameters that are not finite; "
                "look for extreme y values"
            )
        return gp


@partial(jax.jit, static_argnums=0)
def _fit(
    settings: TaskGP, x: Float[Array, "n d"], y: Float[Array, " n"], mask: Bool[Array, " n"]
) -> GaussianProcess:
    # Without features and weights nothing is drawn: the key is a formality.
    start = initialise(jax.random.key(0), x.shape[1], settings.architecture)
    gp, _ = minimise_lbfgs(lambda gp: task_nll(gp, x, y, mask)[0], start, settings.iterations)
    prior_variance = jnp.mean(gp.kernel.diagonal(gp.features(x)))
    smallest = inverse_softplus(SMALLEST_NOISE * jnp.maximum(prior_variance, SMALLEST_NOISE))
    return replace(gp, raw_noise_variance=jnp.maximum(gp.raw_noise_variance, smallest))
