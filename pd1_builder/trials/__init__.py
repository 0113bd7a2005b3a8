"""Trials: users' own tuning trials, described by a space file. The card is README.md."""

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from pd1_builder.trials.recipe import trials_recipe

__all__ = ["trials_recipe"]
# Imported when it is used: it needs the extra `build`.
__getattr__, __dir__ = attach(__name__, {"recipe": ["trials_recipe"]})
