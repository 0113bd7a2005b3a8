"""TFDS builder of Bayesian-optimization runs. Users name its configurations."""

from __future__ import annotations

from pathlib import Path

from pd1_builder.bo_runs.recipe import bo_runs_recipe, evaluations_in
from pd1_builder.builder.curated_builder import CuratedBuilder
from pd1_builder.builder.recipe import Recipe


class Builder(CuratedBuilder):
    """Trials that evaluations observed, as a TFDS dataset with the split `runs`."""

    @classmethod
    def recipe_of(cls, config: str, raw: Path) -> Recipe:
        """The recipe for a folder of evaluations.

        The dataset versions that they observed must be in `catalog.default_data_dir`.
        """
        del config  # Chosen by the user.
        return bo_runs_recipe(evaluations_in(raw))
