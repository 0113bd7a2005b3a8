"""Mean and kernel of a prior as modules of GPyTorch, made of the library's own ones on features."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import ConstantKernel, Kernel, LinearKernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean, LinearMean, Mean, ZeroMean


class FeatureMean(Mean):
    """A mean function of features of the inputs."""

    def __init__(self, features: torch.nn.Module, on_features: Mean) -> None:
        super().__init__()
        self.features, self.on_features = features, on_features

    def forward(self, x: Any) -> Any:
        """Mean at inputs, one per row."""
        return self.on_features(self.features(x))


class FeatureKernel(Kernel):
    """A covariance of features of the inputs."""

    def __init__(self, features: torch.nn.Module, on_features: Kernel) -> None:
        super().__init__()
        self.features, self.on_features = features, on_features

    def forward(self, x1: Any, x2: Any, diag: bool = False, **params: Any) -> Any:
        """Covariance between two sets of inputs, or its diagonal."""
        return self.on_features.forward(self.features(x1), self.features(x2), diag=diag, **params)


def tanh_layers(layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> torch.nn.Sequential:
    """Dense layers, each followed by tanh; without a layer, the identity.

    Args:
      layers: weights, one column per unit, and biases of each.
    """
    modules = []
    for weights, biases in layers:
        dense = torch.nn.Linear(*weights.shape, dtype=torch.float64)
        dense.weight.data, dense.bias.data = _tensor(weights.T), _tensor(biases)
        modules += [dense, torch.nn.Tanh()]
    return torch.nn.Sequential(*modules)


def mean_module(constant: float | None, weights: np.ndarray | None) -> Mean:
    """The mean c, w . phi, both together, or zero."""
    if weights is None:
        # `initialize` would round a plain number to float32.
        return (
            ZeroMean() if constant is None else ConstantMean().double().initialize(constant=_tensor(constant))
        )
    mean = LinearMean(len(weights), bias=constant is not None).double()
    mean.weights.data = _tensor(weights)[:, None]
    return mean if constant is None else mean.initialize(bias=_tensor(constant))


def kernel_module(name: str, lengthscales: np.ndarray, signal_variance: float) -> Kernel:
    """A kernel by its name in `hyperbo.gp.KERNELS`, with the values of `GaussianProcess.values`."""
    scales, variance = _tensor(lengthscales), _tensor(signal_variance)
    if name in ("linear", "dot_product"):
        # GPyTorch's variances are the inverse squared length scales; a single one is that of all features.
        dot = LinearKernel(
            ard_num_dims=len(scales) if len(scales) > 1 else None, variance_constraint=_positive()
        )
        dot = dot.double().initialize(variance=scales**-2)
        if name == "dot_product":
            return dot
        bias = ConstantKernel(constant_constraint=_positive()).double()
        return bias.initialize(constant=variance) + dot
    settings = {"ard_num_dims": len(scales), "lengthscale_constraint": _positive()}
    made = {
        "squared_exponential": lambda: RBFKernel(**settings),
        "matern32": lambda: MaternKernel(nu=1.5, **settings),
        "matern52": lambda: MaternKernel(nu=2.5, **settings),
    }[name]()
    shape = made.double().initialize(lengthscale=scales)
    scaled = ScaleKernel(shape, outputscale_constraint=_positive())
    return scaled.double().initialize(outputscale=variance)


def likelihood_module(noise_variance: float) -> GaussianLikelihood:
    """The noise of observations. GPyTorch's own lower bound of 1e-4 would change a smaller one."""
    likelihood = GaussianLikelihood(noise_constraint=_positive()).double()
    return likelihood.initialize(noise=_tensor(noise_variance))


def _positive() -> Positive:
    """Exact at all scales. The softplus of PyTorch is the identity above 20, so wrong by 2e-9."""
    return Positive(transform=torch.exp, inv_transform=torch.log)


def _tensor(values: np.ndarray | float) -> torch.Tensor:
    # Row by row: optimisers of further training flatten the parameters.
    return torch.tensor(np.array(values, order="C"), dtype=torch.float64)
