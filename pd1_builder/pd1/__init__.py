"""PD1: tuning trials of neural networks, in the layout of the official release. Its card is README.md."""

from pd1_builder.pd1.recipe import CONFIGURATIONS, pd1_recipe

__all__ = ["CONFIGURATIONS", "pd1_recipe"]
