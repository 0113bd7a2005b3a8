"""Acquisition functions: where to observe next, given a posterior; on finite sets and in the unit cube."""

from hyperbo.acquisition.functions import (
    OFFLINE_UCB_COEFFICIENT,
    ONLINE_UCB_COEFFICIENT,
    PI_THRESHOLD,
    best_candidate,
    incumbent,
    log_expected_improvement,
    max_value_probability_of_improvement,
    pi_target,
    probability_of_improvement,
    random_scores,
    upper_confidence_bound,
)
from hyperbo.acquisition.improvement import log_improvement
from hyperbo.acquisition.max_value import estimated_max_value
from hyperbo.acquisition.maximise import Maximum, climb, maximise

__all__ = [
    "OFFLINE_UCB_COEFFICIENT",
    "ONLINE_UCB_COEFFICIENT",
    "PI_THRESHOLD",
    "Maximum",
    "best_candidate",
    "climb",
    "estimated_max_value",
    "incumbent",
    "log_expected_improvement",
    "log_improvement",
    "max_value_probability_of_improvement",
    "maximise",
    "pi_target",
    "probability_of_improvement",
    "random_scores",
    "upper_confidence_bound",
]
