"""ABLR: adaptive Bayesian linear regression (Perrone et al., NeurIPS 2018), as the paper compares it."""

from __future__ import annotations

from dataclasses import dataclass, field

from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods.h_nll import HNLL


@dataclass(frozen=True)
class ABLR(HNLL):
    """Settings of ABLR, section "Description of All Compared Methods": zero mean, linear kernel.

    Attributes:
      architecture: k(x, x') = b^2 + phi(x) . phi(x') / s^2 with phi of H-NLL, mean zero.
    """

    architecture: Architecture = field(default_factory=lambda: Architecture(kernel="linear", mean="zero"))
