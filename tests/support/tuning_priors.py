"""Small untrained priors of any search space, for tests of tuning."""

from __future__ import annotations

import jax

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.gp.gaussian_process import Architecture, initialise
from hyperbo.gp.numerics import double_precision
from hyperbo.priors.file import Prior, PriorDescription

UNIT = SearchSpace((Parameter("x", 0.0, 1.0), Parameter("y", 0.0, 1.0)))


@double_precision
def prior_over(
    space: SearchSpace = UNIT, *, warping: str = "negative", preparation: str = "online", seed: int = 0
) -> Prior:
    """A prior as its seed drew it: smooth functions around a random mean."""
    architecture = Architecture(hidden=(4,), kernel="matern32")
    description = PriorDescription(
        method="H-NLL",
        search_space=space,
        output_warping=warping,
        architecture=architecture,
        training={},
        dataset="trials/none:1.0.0",
        manifest_hash="none",
        preparation=preparation,
        training_tasks=("one",),
        held_out="",
        seed=seed,
        losses=(),
        largest_jitter=0.0,
        seconds=0.0,
        code_version="none",
    )
    return Prior(initialise(jax.random.key(seed), space.dimension, architecture), description)
