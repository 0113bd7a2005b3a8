"""The training step of H-NLL in PyTorch and in GPyTorch: a batch of tasks, drawn points, Adam."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hyperbo.data.tuning_data import TuningData


def _network(dimension: int, hidden: tuple[int, int]) -> Any:
    from torch import nn

    return nn.Sequential(
        nn.Linear(dimension, hidden[0]), nn.Tanh(), nn.Linear(hidden[0], hidden[1]), nn.Tanh()
    )


def _minibatches(data: TuningData, points: int, kind: Any) -> Callable[[], tuple[Any, Any]]:
    import torch

    x = torch.tensor(np.stack([task.x for task in data.tasks]), dtype=kind)
    y = torch.tensor(np.stack([task.y for task in data.tasks]), dtype=kind)
    rows = torch.arange(len(x))[:, None]

    def draw() -> tuple[Any, Any]:
        drawn = torch.rand(x.shape[:2]).topk(points, dim=1, sorted=False).indices
        return x[rows, drawn], y[rows, drawn]

    return draw


def torch_step(data: TuningData, points: int, hidden: tuple[int, int], dtype: str) -> Callable[[], None]:
    """One step in plain PyTorch."""
    import torch

    kind = getattr(torch, dtype)
    torch.manual_seed(0)
    draw = _minibatches(data, points, kind)
    layers = _network(data.search_space.dimension, hidden).to(kind)
    mean = torch.nn.Parameter(torch.randn(hidden[-1], dtype=kind) / hidden[-1] ** 0.5)
    raw = torch.nn.Parameter(torch.zeros(hidden[-1] + 2, dtype=kind))
    optimizer = torch.optim.Adam([*layers.parameters(), mean, raw], lr=1e-3)
    identity = torch.eye(points, dtype=kind)

    def step() -> None:
        x, y = draw()
        positive = torch.nn.functional.softplus(raw)
        lengthscales, signal, noise = positive[:-2], positive[-2], positive[-1]
        features = layers(x)
        scaled = (5.0**0.5) * torch.cdist(features / lengthscales, features / lengthscales)
        kernel = signal * (1 + scaled + scaled**2 / 3) * torch.exp(-scaled)
        factor = torch.linalg.cholesky(kernel + (noise + 1e-6) * identity)
        residual = (y - features @ mean)[..., None]
        whitened = torch.linalg.solve_triangular(factor, residual, upper=False)
        log_determinant = 2 * torch.diagonal(factor, dim1=1, dim2=2).log().sum()
        loss = 0.5 * ((whitened**2).sum() + log_determinant)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def gpytorch_step(data: TuningData, points: int, hidden: tuple[int, int], dtype: str) -> Callable[[], None]:
    """One step of an exact GPyTorch model on features; the tasks share its parameters."""
    import gpytorch
    import torch

    kind = getattr(torch, dtype)
    torch.manual_seed(0)
    draw = _minibatches(data, points, kind)

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x: Any, y: Any, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.features = _network(data.search_space.dimension, hidden)
            self.mean = gpytorch.means.LinearMean(hidden[-1], bias=False)
            self.kernel = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=hidden[-1])
            )

        def forward(self, x: Any) -> Any:
            features = self.features(x)
            return gpytorch.distributions.MultivariateNormal(self.mean(features), self.kernel(features))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(*draw(), likelihood).to(kind)
    likelihood.to(kind)
    likelihood_of_all = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        x, y = draw()
        model.set_train_data(x, y, strict=False)
        loss = -points * likelihood_of_all(model(x), y).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
