"""HPO-B: evaluated hyperparameters of machine-learning methods on OpenML tasks. Its card is README.md."""

from pd1_builder.hpob.recipe import CONFIGURATIONS, hpob_recipe

__all__ = ["CONFIGURATIONS", "hpob_recipe"]
