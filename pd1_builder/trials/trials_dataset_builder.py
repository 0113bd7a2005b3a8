"""TFDS builder of users' own trials. Users name its configurations."""

from __future__ import annotations

from pathlib import Path

from pd1_builder.builder.curated_builder import CuratedBuilder
from pd1_builder.builder.recipe import Recipe
from pd1_builder.trials.recipe import raw_in, trials_recipe


class Builder(CuratedBuilder):
    """Tuning trials as a TFDS dataset with the split `trials`."""

    @classmethod
    def recipe_of(cls, config: str, raw: Path) -> Recipe:
        """The recipe for a folder of files and their `space.toml`."""
        del config  # Chosen by the user.
        return trials_recipe(*raw_in(raw))
