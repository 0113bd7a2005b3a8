"""Pre-training of Gaussian-process priors for Bayesian optimization.

`load_prior`, `Tuner` and `Infeasible` are all that is needed to tune a model with a pre-trained prior.
"""

import sys
from typing import TYPE_CHECKING

if not (3, 11) <= sys.version_info < (3, 13):
    raise ImportError(
        f"Python 3.11 or 3.12 is needed, and this is {sys.version.split()[0]}; install it with one of these"
    )

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from hyperbo.priors.names import load_prior
    from hyperbo.tuning.trial import Infeasible
    from hyperbo.tuning.tuner import Tuner

__version__ = "0.1.0"
__all__ = ["Infeasible", "Tuner", "__version__", "load_prior"]
# Imported when they are used: most of the package needs neither JAX nor Optuna.
__getattr__, __dir__ = attach(
    __name__,
    {"priors.names": ["load_prior"], "tuning.trial": ["Infeasible"], "tuning.tuner": ["Tuner"]},
)
