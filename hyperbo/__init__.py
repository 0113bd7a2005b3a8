"""Pre-training of Gaussian-process priors for Bayesian optimization, and the words of the domain.

`load_prior` and `Tuner` are what one needs to tune a model with a published prior.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyperbo.published import load_prior
    from hyperbo.tuner import Tuner

__version__ = "0.1.0"
__all__ = ["Tuner", "__version__", "load_prior"]


def __getattr__(name: str) -> Any:
    # Imported when they are used: most of the package needs neither JAX's start-up time nor Optuna.
    if name == "load_prior":
        from hyperbo.published import load_prior

        return load_prior
    if name == "Tuner":
        from hyperbo.tuner import Tuner

        return Tuner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
