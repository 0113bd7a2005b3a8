"""Pre-training by L-BFGS on all the data of a job: what EKL and weighted sums share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.optimizers import minimise_from_starts, minimise_lbfgs
from hyperbo.parallel import batched, pad_batch
from hyperbo.pretrain.jobs import Job, Pretrained, Progress, collect

# Of a model, data shared by all jobs and a job's own: the objective, and the largest jitter it needed.
Objective = Callable[[GaussianProcess, Any, Any], tuple[Array, Array]]


@dataclass(frozen=True)
class LBFGSTraining:
    """Settings of a training by L-BFGS.

    Attributes:
      iterations: from every start; the paper uses 100.
      restarts: how many starts; the best end counts.
      tolerance: stop once an iteration lowers the objective by no more than this share; None: never.
    """

    iterations: int = 100
    restarts: int = 1
    tolerance: float | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        for setting in ("iterations", "restarts"):
            if getattr(self, setting) < 1:
                raise InvalidInputError(f"{setting} = {getattr(self, setting)} is not positive", where=name)
        if self.tolerance is not None and not self.tolerance >= 0.0:
            raise InvalidInputError(f"tolerance = {self.tolerance} is negative", where=name, fix="or None")


def pretrain_lbfgs(
    jobs: Sequence[Job],
    architecture: Architecture,
    settings: LBFGSTraining,
    objective: Objective,
    shared: Any,
    own: Any,
    started: float,
    progress: Progress,
) -> list[Pretrained]:
    """Pre-train one model per job, all in one compiled program spread over the devices.

    Args:
      jobs: training sets and seeds.
      architecture: structure of every model.
      settings: of the optimiser.
      objective: what is minimised.
      shared: data of all jobs, a pytree.
      own: data of each job, a pytree whose leaves carry a leading axis of jobs.
      started: `time.perf_counter` when the training began.
      progress: called before and after with iterations done and in all.

    Raises:
      NumericalError: a model's loss or parameters are not finite at the end.
    """
    progress(0, settings.iterations)
    dimension = jobs[0].training.search_space.dimension

    def train(shared: Any, own: Any, seed: Array) -> tuple[GaussianProcess, Array, Array]:
        def value(gp: GaussianProcess) -> Array:
            return objective(gp, shared, own)[0]

        weight_key, _ = jax.random.split(jax.random.key(seed))
        gp = initialise(weight_key, dimension, architecture)
        if settings.restarts == 1:
            gp, losses = minimise_lbfgs(value, gp, settings.iterations, settings.tolerance)
        else:
            # The first start is that of a training without restarts.
            others = [jax.random.fold_in(weight_key, number) for number in range(1, settings.restarts)]
            drawn = [gp, *(initialise(key, dimension, architecture) for key in others)]
            starts = jax.tree.map(lambda *leaves: jnp.stack(leaves), *drawn)
            gp, losses = minimise_from_starts(value, starts, settings.iterations, settings.tolerance)
        last, jitter = objective(gp, shared, own)
        return gp, jnp.append(losses, last), jitter

    split = pad_batch((own, np.array([job.seed for job in jobs])))
    gp, losses, jitter = jax.block_until_ready(batched(train, shared=1)(shared, *split))
    progress(settings.iterations, settings.iterations)
    return collect(jobs, gp, np.asarray(losses), np.asarray(jitter), started)
