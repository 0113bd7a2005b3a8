"""Priors for other libraries: mean, kernel and noise for GPyTorch, models of BoTorch (extra `botorch`).

A prior speaks of inputs in the unit cube and of values to be maximised. `inputs_of`, `points_of` and
`values_of` translate from and to hyperparameters and objective; they need no PyTorch.
"""

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from hyperbo.priors.export.models import GPyTorchPrior, to_botorch, to_gpytorch
    from hyperbo.priors.export.units import inputs_of, points_of, values_of

__all__ = ["GPyTorchPrior", "inputs_of", "points_of", "to_botorch", "to_gpytorch", "values_of"]
# Imported when they are used: the units need no PyTorch.
__getattr__, __dir__ = attach(
    __name__,
    {
        "models": ["GPyTorchPrior", "to_botorch", "to_gpytorch"],
        "units": ["inputs_of", "points_of", "values_of"],
    },
)
