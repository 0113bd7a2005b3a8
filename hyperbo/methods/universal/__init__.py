"""One prior for any search space: what a column is for tells how a task depends on it."""

from hyperbo.methods.universal.columns import Column, columns_of
from hyperbo.methods.universal.fit import HyperPriorFit, fit_hyperprior, source_of
from hyperbo.methods.universal.hyperprior import Group, HyperPrior, Source
from hyperbo.methods.universal.policy import UniversalPolicy
from hyperbo.methods.universal.roles import ROLES, role_of

__all__ = [
    "ROLES",
    "Column",
    "Group",
    "HyperPrior",
    "HyperPriorFit",
    "Source",
    "UniversalPolicy",
    "columns_of",
    "fit_hyperprior",
    "role_of",
    "source_of",
]
