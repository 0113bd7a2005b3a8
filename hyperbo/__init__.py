"""Pre-training of Gaussian-process priors for Bayesian optimization, and the words of the domain."""

__version__ = "0.1.0"
