"""A prior as GPyTorch's mean, kernel and likelihood, and as a model of BoTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from hyperbo.errors import InvalidInputError
from hyperbo.gp.moments import as_observations
from hyperbo.priors.export.units import loaded
from hyperbo.priors.file import Prior
from hyperbo.storage.installation import require_extras


class GPyTorchPrior(NamedTuple):
    """What a Gaussian process of GPyTorch is made of; all in float64, its parameters fixed.

    Attributes:
      mean: a `gpytorch.means.Mean` of inputs in the unit cube.
      kernel: a `gpytorch.kernels.Kernel` of the same.
      likelihood: a `gpytorch.likelihoods.GaussianLikelihood` with the noise of the prior.
    """

    mean: Any
    kernel: Any
    likelihood: Any


def to_gpytorch(prior: Prior | str | Path) -> GPyTorchPrior:
    """Mean, kernel and noise of a prior as modules of GPyTorch, for a model of one's own.

    The parameters are fixed: a prior is conditioned, not fitted. After `module.requires_grad_(True)` they can
    be trained further. Mean and kernel share the features.

    Args:
      prior: a prior, its folder or its name.

    Raises:
      MissingExtraError: GPyTorch is not installed.
      NotAvailableError: there is no such prior.
    """
    modules = _modules()
    values = loaded(prior).gp.values()
    features = modules.tanh_layers(values["layers"])
    parts = GPyTorchPrior(
        modules.FeatureMean(features, modules.mean_module(values["constant"], values["weights"])),
        modules.FeatureKernel(
            features,
            modules.kernel_module(values["kernel"], values["lengthscales"], values["signal_variance"]),
        ),
        modules.likelihood_module(values["noise_variance"]),
    )
    for part in parts:
        part.requires_grad_(False)
    return parts


def to_botorch(prior: Prior | str | Path, x: ArrayLike, y: ArrayLike) -> Any:
    """A prior, conditioned on observations, as a `botorch.models.SingleTaskGP` to be maximised.

    Nothing has to be fitted. The values are not standardised: the prior has a unit of its own.

    Args:
      prior: a prior, its folder or its name.
      x: observed inputs in the unit cube, one per row, as `inputs_of` gives them.
      y: observed values, as `values_of` gives them. At least one.

    Returns:
      The model in float64, on the CPU, in evaluation mode.

    Raises:
      InvalidInputError: the arrays do not fit each other, or there is no observation.
      MissingExtraError: BoTorch is not installed.
      NotAvailableError: there is no such prior.
    """
    prior = loaded(prior)
    inputs, values = as_observations(prior.gp, x, y)
    if not len(values):
        raise InvalidInputError(
            "there is no observation",
            where="to_botorch",
            fix="choose the first trials by to_gpytorch(prior).mean",
        )
    mean, kernel, likelihood = to_gpytorch(prior)
    import torch  # pyright: ignore[reportMissingImports]
    from botorch.models import SingleTaskGP  # pyright: ignore[reportMissingImports]
    from botorch.settings import validate_input_scaling  # pyright: ignore[reportMissingImports]

    # BoTorch would warn that the values are not standardised; the prior's unit is another.
    with validate_input_scaling(False):
        model = SingleTaskGP(
            torch.tensor(inputs),
            torch.tensor(values)[:, None],
            likelihood=likelihood,
            covar_module=kernel,
            mean_module=mean,
            outcome_transform=None,
        )
    return model.eval()


def _modules() -> Any:
    """The modules that need PyTorch."""
    require_extras("botorch", purpose="a prior for GPyTorch or BoTorch")
    from hyperbo.priors.export import torch_modules

    return torch_modules
