"""What pre-training minimises and what it reports, kept apart by name.

Reported, on plain arrays in float64: `nll`, `mean_nll`, `ekl`, `ekl_parts`, `mean_ekl`, `euclidean`,
`wasserstein`. Minimised, in compiled code, on padded arrays: `nll.task_nll`, `ekl.ekl_minimised`,
`distances.squared_euclidean`, `distances.squared_wasserstein`, in the modules of these names. The weighted
sum of objectives is `hyperbo.pretrain.weighted_objective`.
"""

from hyperbo.gp.estimate import Estimator
from hyperbo.objectives.distances import euclidean, wasserstein
from hyperbo.objectives.ekl import RANK_TOLERANCE, EKLParts, ekl, ekl_parts, mean_ekl
from hyperbo.objectives.nll import mean_nll, nll

__all__ = [
    "RANK_TOLERANCE",
    "EKLParts",
    "Estimator",
    "ekl",
    "ekl_parts",
    "euclidean",
    "mean_ekl",
    "mean_nll",
    "nll",
    "wasserstein",
]
