"""Trials: users' own tuning trials, described by a space file. The card is README.md."""

from pd1_builder.trials.recipe import trials_recipe

__all__ = ["trials_recipe"]
