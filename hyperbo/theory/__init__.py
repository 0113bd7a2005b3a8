"""The paper's theorems: bounds, information gain, simulations of what they state, and synthetic studies.

All of it returns numbers and arrays; no figure is drawn. Labels of equations and theorems are the paper's.
"""

# Example: docs/examples/theory_bounds.py.

from hyperbo.theory.augmentation import (
    AUGMENTATION_MODELS,
    METRICS,
    AugmentationStudy,
    augmentation_study,
)
from hyperbo.theory.bounds import (
    PosteriorBound,
    RegretSetting,
    alternative_regret_bound,
    mean_error_variance,
    pi_regret_bound,
    posterior_bound,
    regret_rate,
    ucb_coefficient,
    ucb_regret_bound,
    variance_bias,
)
from hyperbo.theory.gaussian import InformationGain, greedy_information_gain, information_gain
from hyperbo.theory.simulations import (
    PosteriorSimulation,
    RegretSimulation,
    simulate_posteriors,
    simulate_regret,
    within_posterior_bound,
)
from hyperbo.theory.studies import (
    MODELS,
    PARAMETERS,
    FiniteDomainStudy,
    LossLandscapes,
    finite_domain_study,
    loss_landscapes,
)

__all__ = [
    "AUGMENTATION_MODELS",
    "METRICS",
    "MODELS",
    "PARAMETERS",
    "AugmentationStudy",
    "FiniteDomainStudy",
    "InformationGain",
    "LossLandscapes",
    "PosteriorBound",
    "PosteriorSimulation",
    "RegretSetting",
    "RegretSimulation",
    "alternative_regret_bound",
    "augmentation_study",
    "finite_domain_study",
    "greedy_information_gain",
    "information_gain",
    "loss_landscapes",
    "mean_error_variance",
    "pi_regret_bound",
    "posterior_bound",
    "regret_rate",
    "simulate_posteriors",
    "simulate_regret",
    "ucb_coefficient",
    "ucb_regret_bound",
    "variance_bias",
    "within_posterior_bound",
]
