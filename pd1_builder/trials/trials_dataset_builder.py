"""TFDS builder of anyone's own trials: a configuration for each name that somebody gave."""

from __future__ import annotations

from pathlib import Path

from pd1_builder.curated_builder import CuratedBuilder
from pd1_builder.recipe import Recipe
from pd1_builder.trials.recipe import raw_in, trials_recipe


class Builder(CuratedBuilder):
    """Tuning trials as a TFDS dataset, split `trials`."""

    @classmethod
    def recipe_of(cls, config: str, raw: Path) -> Recipe:
        """What makes the records from a folder of files and their `space.toml`."""
        del config  # The user's own name.
        return trials_recipe(*raw_in(raw))
