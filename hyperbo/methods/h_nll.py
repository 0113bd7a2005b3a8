"""H-NLL: HyperBO with a Gaussian process pre-trained by NLL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hyperbo.gp.gaussian_process import Architecture
from hyperbo.pretrain import Job, NLLTraining, Pretrained, Progress, no_progress, pretrain_nll


@dataclass(frozen=True)
class HNLL:
    """Settings of H-NLL, section "Description of All Compared Methods"."""

    architecture: Architecture = field(default_factory=Architecture)
    training: NLLTraining = field(default_factory=NLLTraining)

    def pretrain(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[Pretrained]:
        """Pre-train one prior per job."""
        return pretrain_nll(jobs, self.architecture, self.training, progress)
