"""H-Sum: HyperBO with a Gaussian process pre-trained by a weighted sum of objectives, EKL + 0.1 NLL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hyperbo.checkpoints import CheckpointFolder
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods.decision import Decision
from hyperbo.methods.pretrained import PretrainedMethod
from hyperbo.pretrain import Job, Pretrained, Progress, SumTraining, no_progress, pretrain_sum


@dataclass(frozen=True)
class HSum(PretrainedMethod):
    """Settings of H-Sum: the objective of the paper's online experiments, EKL + 0.1 NLL.

    Section "Results on the PD1 Online Hyperparameter Tuning Tasks".

    Attributes:
      architecture: that of H-NLL; online the paper takes one hidden layer of 8.
      training: 100 iterations of L-BFGS on all matched inputs and all points.
      decision: thresholded PI.
      refit_iterations: none.
    """

    architecture: Architecture = field(default_factory=Architecture)
    training: SumTraining = field(default_factory=SumTraining)
    decision: Decision = field(default_factory=Decision)
    refit_iterations: int = 0

    def pretrain(
        self,
        jobs: Sequence[Job],
        progress: Progress = no_progress,
        checkpoint: CheckpointFolder | None = None,
    ) -> list[Pretrained]:
        """Pre-train one prior per job."""
        return pretrain_sum(jobs, self.architecture, self.training, progress, checkpoint)
