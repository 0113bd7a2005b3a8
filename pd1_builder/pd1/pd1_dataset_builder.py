"""TFDS builder of PD1: the release itself, and PD1 mini, which this project collected."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import tensorflow_datasets as tfds

from pd1_builder.curated_builder import CuratedBuilder
from pd1_builder.pd1.recipe import CONFIGURATIONS, pd1_recipe
from pd1_builder.recipe import Recipe


class Builder(CuratedBuilder):
    """PD1 as a TFDS dataset, splits `matched` and `unmatched`."""

    BUILDER_CONFIGS: ClassVar[list[Any]] = [
        tfds.core.BuilderConfig(name=name, description=configuration.description)
        for name, configuration in CONFIGURATIONS.items()
    ]

    @classmethod
    def recipe_of(cls, config: str, raw: Path) -> Recipe:
        """What makes the records of a configuration from files of the release's layout."""
        return pd1_recipe(config, raw)
