"""MAF: an acquisition function that is learned by reinforcement learning."""

from hyperbo.methods.maf.method import MAF, TrainedAcquisition
from hyperbo.methods.maf.policy_gradient import PolicyGradient
from hyperbo.methods.maf.training import MAFTraining

__all__ = ["MAF", "MAFTraining", "PolicyGradient", "TrainedAcquisition"]
