"""A Bayesian mixture over Gaussian processes: as the prior says, until the observations say otherwise."""

from hyperbo.methods.mixture.method import HMix, Mix
from hyperbo.methods.mixture.policy import Mixture, MixturePolicy

__all__ = ["HMix", "Mix", "Mixture", "MixturePolicy"]
