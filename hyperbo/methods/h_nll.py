"""H-NLL: HyperBO with a Gaussian process pre-trained by NLL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hyperbo.checkpoints import CheckpointFolder
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods.decision import Decision
from hyperbo.methods.pretrained import PretrainedMethod
from hyperbo.pretrain import Job, NLLTraining, Pretrained, Progress, no_progress, pretrain_nll


@dataclass(frozen=True)
class HNLL(PretrainedMethod):
    """Settings of H-NLL, section "Description of All Compared Methods".

    Attributes:
      architecture: an MLP (32, 32) under a linear mean and a Matern 5/2 kernel.
      training: Adam, 1e-3, 50,000 steps, 50 points of every task.
      decision: thresholded PI.
      refit_iterations: none.
    """

    architecture: Architecture = field(default_factory=Architecture)
    training: NLLTraining = field(default_factory=NLLTraining)
    decision: Decision = field(default_factory=Decision)
    refit_iterations: int = 0

    def pretrain(
        self,
        jobs: Sequence[Job],
        progress: Progress = no_progress,
        checkpoint: CheckpointFolder | None = None,
    ) -> list[Pretrained]:
        """Pre-train one prior per job."""
        return pretrain_nll(jobs, self.architecture, self.training, progress, checkpoint)
