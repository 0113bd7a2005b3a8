"""Small untrained priors of any search space, for tests of tuning."""

from __future__ import annotations

from dataclasses import replace

import jax
from prior_files import DESCRIPTION

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.gp.gaussian_process import Architecture, initialise
from hyperbo.gp.numerics import double_precision
from hyperbo.priors.file import Prior

UNIT = SearchSpace((Parameter("x", 0.0, 1.0), Parameter("y", 0.0, 1.0)))


@double_precision
def prior_over(
    space: SearchSpace = UNIT, *, warping: str = "negative", preparation: str = "online", seed: int = 0
) -> Prior:
    """A prior as its seed drew it: smooth functions around a random mean."""
    architecture = Architecture(hidden=(4,), kernel="matern32")
    description = replace(
        DESCRIPTION,
        search_space=space,
        output_warping=warping,
        architecture=architecture,
        dataset="trials/none:1.0.0",
        training_tasks=("one",),
        preparation=preparation,
    )
    return Prior(initialise(jax.random.key(seed), space.dimension, architecture), description)
