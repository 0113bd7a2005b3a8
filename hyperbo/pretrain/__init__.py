"""Pre-training: minimise NLL, EKL or a weighted sum over the tasks of many training sets at once."""

from hyperbo.objectives import matched_estimate
from hyperbo.pretrain.ekl import EKLTraining, pretrain_ekl
from hyperbo.pretrain.jobs import Job, Pretrained, Progress, no_progress
from hyperbo.pretrain.matched import training_blocks
from hyperbo.pretrain.nll import pretrain_nll
from hyperbo.pretrain.nll_steps import NLLTraining
from hyperbo.pretrain.outcomes import TrainingError, all_trained, outcomes_of
from hyperbo.pretrain.weighted_sum import SumTraining, pretrain_sum

__all__ = [
    "EKLTraining",
    "Job",
    "NLLTraining",
    "Pretrained",
    "Progress",
    "SumTraining",
    "TrainingError",
    "all_trained",
    "matched_estimate",
    "no_progress",
    "outcomes_of",
    "pretrain_ekl",
    "pretrain_nll",
    "pretrain_sum",
    "training_blocks",
]
