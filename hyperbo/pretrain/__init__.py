"""Pre-training: minimise NLL, EKL or a weighted sum over the tasks of many training sets at once."""

from hyperbo.gp.estimate import matched_estimate
from hyperbo.pretrain.ekl import EKLTraining, pretrain_ekl, training_blocks
from hyperbo.pretrain.jobs import (
    Job,
    Pretrained,
    Progress,
    TrainingError,
    all_trained,
    no_progress,
    outcomes_of,
)
from hyperbo.pretrain.nll import NLLTraining, pretrain_nll
from hyperbo.pretrain.task_gp import TaskGP
from hyperbo.pretrain.weighted_sum import SumTraining, pretrain_sum, weighted_objective

__all__ = [
    "EKLTraining",
    "Job",
    "NLLTraining",
    "Pretrained",
    "Progress",
    "SumTraining",
    "TaskGP",
    "TrainingError",
    "all_trained",
    "matched_estimate",
    "no_progress",
    "outcomes_of",
    "pretrain_ekl",
    "pretrain_nll",
    "pretrain_sum",
    "training_blocks",
    "weighted_objective",
]
