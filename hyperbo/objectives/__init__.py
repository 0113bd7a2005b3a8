"""What pre-training minimises and what it reports, kept apart by name.

Minimised, in compiled code: `task_nll`, `ekl_minimised`, `squared_euclidean`, `squared_wasserstein`.
Reported, on arrays: `ekl`, `mean_ekl`, `euclidean`, `wasserstein`; the NLL is its own report.
"""

from hyperbo.gp.estimate import Estimator
from hyperbo.objectives.distances import euclidean, squared_euclidean, squared_wasserstein, wasserstein
from hyperbo.objectives.ekl import RANK_TOLERANCE, ekl, ekl_minimised, mean_ekl
from hyperbo.objectives.estimate import MatchedEstimate, matched_estimate
from hyperbo.objectives.nll import task_nll

__all__ = [
    "RANK_TOLERANCE",
    "Estimator",
    "MatchedEstimate",
    "ekl",
    "ekl_minimised",
    "euclidean",
    "matched_estimate",
    "mean_ekl",
    "squared_euclidean",
    "squared_wasserstein",
    "task_nll",
    "wasserstein",
]
