"""Methods of other publications that transfer what the training tasks have shown to a test task."""

from hyperbo.methods.transfer.copula import CGP, CTS
from hyperbo.methods.transfer.egp import EGP
from hyperbo.methods.transfer.quantiles import QuantileTraining
from hyperbo.methods.transfer.rgpe import RGPE
from hyperbo.methods.transfer.scaml_gp import ScaMLGP

__all__ = ["CGP", "CTS", "EGP", "RGPE", "QuantileTraining", "ScaMLGP"]
