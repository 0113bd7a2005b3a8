"""Acquisition functions: where to observe next, given a posterior; on finite sets and in the unit cube.

On plain arrays, in float64 whatever the default precision of JAX: `acquisition_values`, `maximise`. For
compiled code, in the precision of the arrays given: `climb`, and the functions of
`hyperbo.acquisition.functions`.
"""

from hyperbo.acquisition.by_name import ACQUISITIONS, acquisition_values
from hyperbo.acquisition.functions import (
    OFFLINE_UCB_COEFFICIENT,
    ONLINE_UCB_COEFFICIENT,
    PI_THRESHOLD,
)
from hyperbo.acquisition.maximise import Maximum, climb, climb_each, maximise

__all__ = [
    "ACQUISITIONS",
    "OFFLINE_UCB_COEFFICIENT",
    "ONLINE_UCB_COEFFICIENT",
    "PI_THRESHOLD",
    "Maximum",
    "acquisition_values",
    "climb",
    "climb_each",
    "maximise",
]
