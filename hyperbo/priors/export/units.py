"""From hyperparameters and objective to what a prior speaks: points of the unit cube, values to maximise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from hyperbo.data.parameter import Value
from hyperbo.data.warping import online_map, output_warping
from hyperbo.errors import InvalidInputError
from hyperbo.gp.numerics import plain_array
from hyperbo.priors.file import Prior
from hyperbo.priors.names import load_prior


def loaded(prior: Prior | str | Path) -> Prior:
    """A prior that is given, or by what `hyperbo.load_prior` takes."""
    return prior if isinstance(prior, Prior) else load_prior(prior)


def inputs_of(prior: Prior | str | Path, points: Sequence[Mapping[str, Value]]) -> Float64[np.ndarray, "n d"]:
    """Inputs of a prior: hyperparameters as points of the unit cube, by the prior's ranges and scalings.

    A choice has one column for each level, a condition one more; `SearchSpace.columns` names them.

    Args:
      prior: a prior, its folder or its name.
      points: hyperparameters by name; an inactive parameter may be left out.

    Raises:
      InvalidInputError: a name, a value or a level is not of the prior's search space.
      NotAvailableError: there is no such prior.

    >>> inputs_of("pd1-mini/h-ekl", [
    ...     {"learning_rate": 0.01, "power": 1.05, "momentum": 0.0, "decay_steps_factor": 0.5}
    ... ]).round(6).tolist()
    [[0.5, 0.5, 0.0, 0.5]]
    """
    space = loaded(prior).description.search_space
    return space.to_unit(space.codes(points))


def points_of(prior: Prior | str | Path, x: ArrayLike) -> list[dict[str, Value]]:
    """Hyperparameters at inputs of a prior: the points of its search space next to them.

    Integers are rounded, of the columns of a choice the largest counts, and inactive parameters are left out.

    Args:
      prior: a prior, its folder or its name.
      x: inputs in the unit cube, one per row: an array, or a tensor on the CPU.

    Raises:
      InvalidInputError: x has another shape, or a value outside of [0, 1].
      NotAvailableError: there is no such prior.

    >>> points_of("pd1-mini/h-ekl", [[0.5, 0.0, 0.0, 1.0]])[0]["decay_steps_factor"]
    0.99
    """
    space = loaded(prior).description.search_space
    return space.values(space.from_unit(plain_array("x", x, axes=2)))


def values_of(prior: Prior | str | Path, objective: ArrayLike) -> Float64[np.ndarray, " n"]:
    """Values that a prior is conditioned on: of the objective of all trials so far, to be maximised.

    A prior of the preparation `online`, as those that ship, was trained on values that are mapped to [-2, 2]
    by the median and the maximum of the trials. Each new trial can change them all: map all of them again.

    Args:
      prior: a prior, its folder or its name.
      objective: of each trial in the prior's unit, such as an error rate; NaN where it is infeasible.

    Returns:
      One value per trial. An infeasible trial has -2; or, of another preparation, the worst value so far.

    Raises:
      InvalidInputError: a number is none of this objective, such as a negative error rate; or no trial has a
        value, and the preparation has none for an infeasible trial.
      NotAvailableError: there is no such prior.

    >>> values_of("pd1-mini/h-ekl", [0.5, 0.1, float("nan")]).round(3).tolist()
    [-0.741, 2.0, -2.0]
    """
    said = loaded(prior).description
    given = np.asarray(objective, np.float64)
    if given.ndim != 1:
        raise InvalidInputError(
            f"the objective has the shape {given.shape}", where="values_of", fix="give one number per trial"
        )
    feasible = np.isfinite(given)
    with np.errstate(invalid="ignore", divide="ignore"):
        y = output_warping(said.output_warping).warp(np.where(feasible, given, 1.0))
    if not np.isfinite(y).all():
        raise InvalidInputError(
            f"{given[~np.isfinite(y)][0]} is no value of an objective with the warping {said.output_warping}",
            where="values_of",
            fix="give the unit of `hyperbo prior info`, such as an error rate, and NaN for infeasible trials",
        )
    if said.is_mapped:
        return online_map(y, feasible)
    if not feasible.any():
        raise InvalidInputError(
            "no trial has a value", where="values_of", fix="leave infeasible trials out until one has"
        )
    return np.where(feasible, y, y[feasible].min())
