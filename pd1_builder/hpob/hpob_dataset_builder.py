"""TFDS builder of HPO-B: a configuration for each search space, and one for all."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import tensorflow_datasets as tfds

from pd1_builder.curated_builder import CuratedBuilder
from pd1_builder.hpob.recipe import CONFIGURATIONS, hpob_recipe
from pd1_builder.recipe import Recipe


class Builder(CuratedBuilder):
    """HPO-B as a TFDS dataset, splits `train`, `validation` and `test`."""

    BUILDER_CONFIGS: ClassVar[list[Any]] = [
        tfds.core.BuilderConfig(name=name, description=f"Search space {name}, or all of them.")
        for name in CONFIGURATIONS
    ]

    @classmethod
    def recipe_of(cls, config: str, raw: Path) -> Recipe:
        """What makes the records of a configuration from a folder of HPO-B's files."""
        return hpob_recipe(config, raw)
