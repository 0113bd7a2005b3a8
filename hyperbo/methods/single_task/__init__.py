"""Methods that fit a Gaussian process to the test task alone, before each choice."""

from hyperbo.methods.single_task.refit_policy import FineTuning, Refit, RefitPolicy
from hyperbo.methods.single_task.stbo import STBO
from hyperbo.methods.single_task.stboh import STBOH

__all__ = ["STBO", "STBOH", "FineTuning", "Refit", "RefitPolicy"]
