"""TFDS builder of HPO-B, with a configuration for each search space and one for all."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorflow_datasets as tfds

from pd1_builder.builder.curated_builder import CuratedBuilder
from pd1_builder.hpob.recipe import CONFIGURATIONS, hpob_recipe


class Builder(CuratedBuilder):
    """HPO-B as a TFDS dataset with the splits `train`, `validation` and `test`."""

    BUILDER_CONFIGS: ClassVar[list[Any]] = [
        tfds.core.BuilderConfig(name=name, description=f"Search space {name}, or all of them.")
        for name in CONFIGURATIONS
    ]

    recipe_of = staticmethod(hpob_recipe)
