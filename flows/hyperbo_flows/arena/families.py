"""Families of functions on the unit cube of three dimensions: what tasks of one family have in common.

A classic test function gets a random shift, scale and offset for each task. A Gaussian process gives each
task a draw of its own, by random Fourier features (Rahimi and Recht, "Random features for large-scale kernel
machines", NIPS 2007): w are standard normal, b uniform, and frequencies are those of the kernel,

    f(x) = m(x) + sqrt(2 / F) sum_i w_i cos(omega_i . x + b_i).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from jaxtyping import Float64

Inputs = Float64[np.ndarray, "n 3"]
Values = Float64[np.ndarray, " n"]
DIMENSION = 3

_FEATURES = 512
# A task's optimum is moved by up to this share of the cube in every direction.
_LARGEST_SHIFT = 0.1
# Of Hartmann's function of three dimensions; Surjanovic and Bingham, "Virtual Library of Simulation
# Experiments", has all of these functions with their usual constants.
_HARTMANN_A = np.array([[3.0, 10.0, 30.0], [0.1, 10.0, 35.0], [3.0, 10.0, 30.0], [0.1, 10.0, 35.0]])
_HARTMANN_P = np.array(
    [
        [0.3689, 0.1170, 0.2673],
        [0.4699, 0.4387, 0.7470],
        [0.1091, 0.8732, 0.5547],
        [0.0381, 0.5743, 0.8828],
    ]
)
_HARTMANN_C = np.array([1.0, 1.2, 3.0, 3.2])


def _ackley(x: Inputs) -> Values:
    z = 8.0 * (x - 0.5)
    return (
        20.0 * np.exp(-0.2 * np.sqrt(np.mean(z**2, axis=1)))
        + np.exp(np.mean(np.cos(2 * np.pi * z), axis=1))
        - 20.0
        - np.e
    )


def _branin(x: Inputs) -> Values:
    # The third parameter does nothing.
    u, v = 15.0 * x[:, 0] - 5.0, 15.0 * x[:, 1]
    square = (v - 5.1 / (4 * np.pi**2) * u**2 + 5 / np.pi * u - 6) ** 2
    return -(square + 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10)


def _hartmann(x: Inputs) -> Values:
    squares = np.sum(_HARTMANN_A * (x[:, None, :] - _HARTMANN_P) ** 2, axis=2)
    return np.exp(-squares) @ _HARTMANN_C


def _levy(x: Inputs) -> Values:
    w = 1 + (20.0 * (x - 0.4) - 1) / 4
    inner = np.sum((w[:, :-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:, :-1] + 1) ** 2), axis=1)
    last = (w[:, -1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[:, -1]) ** 2)
    return -(np.sin(np.pi * w[:, 0]) ** 2 + inner + last)


def _rastrigin(x: Inputs) -> Values:
    z = 3.0 * (x - 0.5)
    return -(10 * x.shape[1] + np.sum(z**2 - 10 * np.cos(2 * np.pi * z), axis=1))


def _rosenbrock(x: Inputs) -> Values:
    z = 3.0 * x - 1.0
    valley = np.sum(100 * (z[:, 1:] - z[:, :-1] ** 2) ** 2 + (1 - z[:, :-1]) ** 2, axis=1)
    return -np.log1p(valley)


def _sphere(x: Inputs) -> Values:
    return -np.sum((x - 0.5) ** 2, axis=1)


def _styblinski_tang(x: Inputs) -> Values:
    z = 10.0 * x - 5.0
    return -0.5 * np.sum(z**4 - 16 * z**2 + 5 * z, axis=1)


def _classic(function: Callable[[Inputs], Values], x: Inputs, random: np.random.Generator) -> Values:
    shift = random.uniform(-_LARGEST_SHIFT, _LARGEST_SHIFT, size=DIMENSION)
    scale, offset = np.exp(random.normal(0.0, 0.2)), random.normal(0.0, 0.2)
    y = function(x - shift)
    return scale * (y - y.mean()) / y.std() + offset


def _frequencies(
    degrees: float, lengthscales: tuple[float, ...], random: np.random.Generator
) -> Float64[np.ndarray, "features 3"]:
    """Frequencies of a Matern kernel: Student's t of 2 nu degrees; of infinitely many, those of SE."""
    normal = random.normal(size=(_FEATURES, DIMENSION))
    if np.isfinite(degrees):
        normal *= np.sqrt(degrees / random.chisquare(degrees, size=(_FEATURES, 1)))
    return normal / np.array(lengthscales)


def _draw(
    degrees: float,
    lengthscales: tuple[float, ...],
    mean: Callable[[Inputs], Values] | None,
    x: Inputs,
    random: np.random.Generator,
) -> Values:
    omega = _frequencies(degrees, lengthscales, random)
    phases = random.uniform(0, 2 * np.pi, size=_FEATURES)
    drawn = np.sqrt(2 / _FEATURES) * np.cos(x @ omega.T + phases) @ random.normal(size=_FEATURES)
    return drawn if mean is None else 0.5 * drawn + mean(x)


def _bump(x: Inputs) -> Values:
    return 2.0 * np.exp(-4.0 * np.sum((x - np.array([0.7, 0.3, 0.5])) ** 2, axis=1))


# From inputs and random numbers to the values of one task, of spread about 1.
FAMILIES: Mapping[str, Callable[[Inputs, np.random.Generator], Values]] = {
    "ackley": partial(_classic, _ackley),
    "branin": partial(_classic, _branin),
    "hartmann": partial(_classic, _hartmann),
    "levy": partial(_classic, _levy),
    "rastrigin": partial(_classic, _rastrigin),
    "rosenbrock": partial(_classic, _rosenbrock),
    "sphere": partial(_classic, _sphere),
    "styblinski-tang": partial(_classic, _styblinski_tang),
    "gp-smooth": partial(_draw, np.inf, (0.4, 0.4, 0.4), None),
    "gp-rough": partial(_draw, 3.0, (0.3, 0.3, 0.3), None),
    "gp-one-matters": partial(_draw, 5.0, (0.2, 1.0, 5.0), None),
    "gp-mean": partial(_draw, 5.0, (0.3, 0.3, 0.3), _bump),
}
