"""Pre-training of Gaussian-process priors for Bayesian optimization.

`load_prior` and `Tuner` are all that is needed to tune a model with a pre-trained prior.
"""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from hyperbo.priors.names import load_prior
    from hyperbo.tuning.tuner import Tuner

__version__ = "0.1.0"
__all__ = ["Tuner", "__version__", "load_prior"]
# Imported when they are used: most of the package needs neither JAX nor Optuna.
__getattr__, __dir__, _ = lazy_loader.attach(
    __name__, submod_attrs={"priors.names": ["load_prior"], "tuning.tuner": ["Tuner"]}
)
