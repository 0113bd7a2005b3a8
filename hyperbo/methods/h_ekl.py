"""H-EKL: HyperBO with a Gaussian process pre-trained by the empirical KL divergence on matched data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hyperbo.checkpoints import CheckpointFolder
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods.decision import Decision
from hyperbo.methods.pretrained import PretrainedMethod
from hyperbo.pretrain import EKLTraining, Job, Pretrained, Progress, no_progress, pretrain_ekl


@dataclass(frozen=True)
class HEKL(PretrainedMethod):
    """Settings of H-EKL, section "Description of All Compared Methods".

    Attributes:
      architecture: that of H-NLL.
      training: 100 iterations of L-BFGS on the matched data.
      decision: thresholded PI.
      refit_iterations: none.
    """

    architecture: Architecture = field(default_factory=Architecture)
    training: EKLTraining = field(default_factory=EKLTraining)
    decision: Decision = field(default_factory=Decision)
    refit_iterations: int = 0

    def pretrain(
        self,
        jobs: Sequence[Job],
        progress: Progress = no_progress,
        checkpoint: CheckpointFolder | None = None,
    ) -> list[Pretrained]:
        """Pre-train one prior per job."""
        return pretrain_ekl(jobs, self.architecture, self.training, progress, checkpoint)
