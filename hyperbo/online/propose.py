"""The next trials of many runs of a method, as one compiled program."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, UInt32

from hyperbo.gp.numerics import double_precision
from hyperbo.online.protocol import Observations, OnlineMethod, Proposal, capacity_for, observations_of
from hyperbo.parallel import batched, pad_batch


class History(NamedTuple):
    """What one run has observed, and what its random numbers depend on.

    Attributes:
      task: name of the task.
      seed: of the run.
      x: inputs in the unit cube, in the order in which they were tried.
      y: warped objective, NaN where the trial was infeasible.
    """

    task: str
    seed: int
    x: Float64[np.ndarray, "n d"]
    y: Float64[np.ndarray, " n"]


class Proposals(NamedTuple):
    """What runs try next, a row for each.

    Attributes:
      x: points of the unit cube.
      score: of the acquisition function there; of a run that failed NaN or infinite.
    """

    x: Float64[np.ndarray, "runs d"]
    score: Float64[np.ndarray, " runs"]


@double_precision
def propose(method: OnlineMethod, fitted: Sequence[Any], histories: Sequence[History]) -> Proposals:
    """What runs of one method try next.

    A program is compiled for each capacity that the number of observations calls for (`capacity_for`), and
    serves every later call with as many runs. Random numbers depend on seed, task and number of observations.

    Args:
      method: of all runs.
      fitted: what it has learned, for each run.
      histories: what each run has observed.
    """
    capacity = capacity_for(max(len(history.y) for history in histories))
    observations = [observations_of(history.x, history.y, capacity) for history in histories]
    # A stream of random numbers for every seed and task: tasks must not share their draws.
    streams = [[history.seed, zlib.crc32(history.task.encode())] for history in histories]
    stacked = (_stacked(fitted), _stacked(observations), np.array(streams, np.uint32))
    found = _program(method)(*pad_batch(stacked))
    runs = len(histories)
    return Proposals(np.asarray(found.x)[:runs], np.asarray(found.score)[:runs])


@cache
def _program(method: OnlineMethod) -> Callable[..., Any]:
    """Compiled once per method and shapes."""

    def of_run(fitted: Any, observations: Observations, stream: UInt32[Array, " 2"]) -> Proposal:
        seed, task = stream
        key = jax.random.fold_in(jax.random.key(seed), task)
        return method.propose(fitted, observations, jax.random.fold_in(key, observations.count))

    return batched(of_run)


def _stacked(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)
