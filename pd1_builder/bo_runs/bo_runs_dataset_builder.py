"""TFDS builder of Bayesian-optimization runs: a configuration for each name that somebody gave."""

from __future__ import annotations

from pathlib import Path

from pd1_builder.bo_runs.recipe import bo_runs_recipe, evaluations_in
from pd1_builder.curated_builder import CuratedBuilder
from pd1_builder.recipe import Recipe


class Builder(CuratedBuilder):
    """What evaluations observed as a TFDS dataset, split `runs`."""

    @classmethod
    def recipe_of(cls, config: str, raw: Path) -> Recipe:
        """What makes the records from a folder of evaluations.

        The dataset versions that they observed are looked for in `catalog.default_data_dir`.
        """
        del config  # The user's own name.
        return bo_runs_recipe(evaluations_in(raw))
