"""Bayesian-optimization runs: the trials that evaluations observed. The card is README.md."""

from pd1_builder.bo_runs.recipe import bo_runs_recipe, record_runs

__all__ = ["bo_runs_recipe", "record_runs"]
