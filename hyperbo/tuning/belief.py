"""What a tuner believes before any trial: a prior, the universal prior, or a prior extended by it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Parameter
from hyperbo.data.search_space import SearchSpace
from hyperbo.data.warping import OutputWarping, output_warping
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.methods.universal.columns import columns_of
from hyperbo.methods.universal.extended import extended_mixture
from hyperbo.methods.universal.file import read_hyperprior
from hyperbo.methods.universal.hyperprior import HyperPrior
from hyperbo.methods.universal.space_mixture import SpaceMixture, universal_mixture
from hyperbo.priors.file import Prior
from hyperbo.priors.names import SHIPPED

_FILE = SHIPPED / "universal.json"
_WARPINGS = {"minimize": "negative", "maximize": "identity"}


@dataclass(frozen=True)
class Belief:
    """A prior on a whole space to tune.

    Attributes:
      gp: the process, or the mixture of processes.
      space: of its inputs.
      warping: of its outputs.
      is_mapped: whether it sees values mapped to [-2, 2].
      identity: 16 hexadecimal digits that tell it from others.
      names: of the parameters that a prior of their own knows.
      extended_by: identity of the universal prior, where it extends a prior; else empty.
      objective_range: lowest and highest raw objective of the tasks that it was trained on, where known.
    """

    gp: GaussianProcess | SpaceMixture
    space: SearchSpace
    warping: OutputWarping
    is_mapped: bool
    identity: str
    names: tuple[str, ...]
    extended_by: str = ""
    objective_range: tuple[float, float] | None = None

    @property
    def can_be_turned(self) -> bool:
        """Whether its objective may be rates, such as error rates, so that 1 - rate is one, too."""
        return self.warping.name == "negative_log" and (self.objective_range or (0.0, 1.0))[1] <= 1.0


def prior_belief(prior: Prior, direction: str | None = None) -> Belief:
    """A prior, on its own space.

    Args:
      prior: the prior.
      direction: of the objective that is told; None: that of the prior. A prior of error rates can be told
        accuracies, to be maximised: `y` is then the warped 1 - accuracy.

    Raises:
      InvalidInputError: there is no such direction, or the prior is not of rates and has another one.
    """
    said = prior.description
    warping = output_warping(said.output_warping)
    belief = Belief(
        prior.gp,
        said.search_space,
        warping,
        said.is_mapped,
        prior.identity,
        said.search_space.names,
        objective_range=said.objective_range,
    )
    if direction in (None, warping.direction):
        return belief
    _require_direction(direction, "the prior")
    if not belief.can_be_turned:
        raise InvalidInputError(
            f"direction = {direction!r}, but the objective of the prior is to {warping.direction}",
            fix="leave the direction out, and tell the objective's negative",
        )
    lowest, highest = belief.objective_range or (0.0, 1.0)
    return replace(belief, warping=RATE, objective_range=(1.0 - highest, 1.0 - lowest))


def _of_rate(rate: Any) -> Any:
    return output_warping("negative_log").warp(1.0 - rate)


def _inverse_of_rate(y: Any) -> Any:
    return 1.0 - output_warping("negative_log").unwarp(y)


# Of a rate to be maximised, such as an accuracy, for a prior of error rates.
RATE = OutputWarping("negative_log of 1 - rate", "maximize", _of_rate, _inverse_of_rate)


def _require_direction(direction: Any, where: str) -> None:
    if direction not in _WARPINGS:
        raise InvalidInputError(
            f"direction = {direction!r}", where=where, fix="give 'minimize' or 'maximize'"
        )


def universal_prior(space: SearchSpace, direction: str | None) -> Belief:
    """The universal prior on any search space, for a `Tuner` or a sampler.

    Args:
      space: what is tuned. Roles that it declares count before those that names tell.
      direction: `minimize` or `maximize`.

    Raises:
      InvalidInputError: there is no such direction.
    """
    _require_direction(direction, "the universal prior")
    mixture = universal_mixture(columns_of(space), _learned())
    return Belief(mixture, space, output_warping(_WARPINGS[str(direction)]), False, _identity(), ())


def extended(belief: Belief, others: Sequence[Parameter | Choice], prior_weight: float) -> Belief:
    """A prior extended to further parameters, which it does not know, by the universal one.

    Args:
      belief: from `prior_belief`.
      others: the further parameters; without a condition.
      prior_weight: of the prior before any trial.
    """
    if not others or isinstance(belief.gp, SpaceMixture):
        return belief
    space = SearchSpace((*belief.space.parameters, *others))
    places = range(belief.space.dimension)
    mixture = extended_mixture(belief.gp, places, columns_of(space), _learned(), prior_weight)
    return replace(belief, gp=mixture, space=space, extended_by=_identity())


@cache
def _learned() -> HyperPrior:
    return read_hyperprior(_FILE)


@cache
def _identity() -> str:
    return hashlib.sha256(_FILE.read_bytes()).hexdigest()[:16]
