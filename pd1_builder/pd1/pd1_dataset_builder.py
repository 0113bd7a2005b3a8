"""TFDS builder of PD1: the official release, and PD1 mini, which this project collected."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorflow_datasets as tfds

from pd1_builder.builder.curated_builder import CuratedBuilder
from pd1_builder.pd1.recipe import CONFIGURATIONS, pd1_recipe


class Builder(CuratedBuilder):
    """PD1 as a TFDS dataset with the splits `matched` and `unmatched`."""

    BUILDER_CONFIGS: ClassVar[list[Any]] = [
        tfds.core.BuilderConfig(name=name, description=configuration.description)
        for name, configuration in CONFIGURATIONS.items()
    ]

    recipe_of = staticmethod(pd1_recipe)
