"""FSBO: few-shot Bayesian optimization (Wistuba and Grabocka, ICLR 2021), as the paper compares it."""

from __future__ import annotations

from dataclasses import dataclass, field

from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods.h_nll import HNLL


@dataclass(frozen=True)
class FSBO(HNLL):
    """Settings of FSBO, section "Description of All Compared Methods": H-NLL with a zero mean.

    Attributes:
      architecture: H-NLL's kernel on the same features, mean zero.
    """

    architecture: Architecture = field(default_factory=lambda: Architecture(mean="zero"))
