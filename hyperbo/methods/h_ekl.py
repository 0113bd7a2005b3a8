"""H-EKL: HyperBO with a Gaussian process pre-trained by the empirical KL divergence on matched data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hyperbo.gp.gaussian_process import Architecture
from hyperbo.pretrain import EKLTraining, Job, Pretrained, Progress, no_progress, pretrain_ekl


@dataclass(frozen=True)
class HEKL:
    """Settings of H-EKL, section "Description of All Compared Methods"."""

    architecture: Architecture = field(default_factory=Architecture)
    training: EKLTraining = field(default_factory=EKLTraining)

    def pretrain(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[Pretrained]:
        """Pre-train one prior per job."""
        return pretrain_ekl(jobs, self.architecture, self.training, progress)
