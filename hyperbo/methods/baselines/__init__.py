"""Simple uses of the training tasks: what a method with a model has to be ahead of."""

from hyperbo.methods.baselines.best_average import BestAverage
from hyperbo.methods.baselines.box_rand import BoxRand
from hyperbo.methods.baselines.default_rand import DefaultRand
from hyperbo.methods.baselines.portfolio import Portfolio
from hyperbo.methods.baselines.table import Table

__all__ = ["BestAverage", "BoxRand", "DefaultRand", "Portfolio", "Table"]
