"""Small models and data for tests, and the Gaussian-process formulas once more, in plain NumPy and SciPy."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import multivariate_normal

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.data.tuning_data import MatchedBlock, Provenance, Task, TuningData
from hyperbo.gp.gaussian_process import MLP, Architecture, GaussianProcess, initialise
from hyperbo.gp.kernels import Stationary
from hyperbo.gp.means import Linear

Values = np.ndarray[Any, np.dtype[np.float64]]
SPACE = SearchSpace((Parameter("a", 0.0, 1.0), Parameter("b", 0.0, 1.0)))


def random_gp(
    seed: int, hidden: tuple[int, ...] = (3, 4), raw_noise_variance: float = -2.0
) -> GaussianProcess:
    """A model with no two parameters equal; call it under 64-bit JAX."""
    random = np.random.default_rng(seed)
    sizes = (SPACE.dimension, *hidden)
    return GaussianProcess(
        MLP(
            tuple(jnp.asarray(random.normal(size=shape)) for shape in itertools.pairwise(sizes)),
            tuple(jnp.asarray(random.normal(scale=0.3, size=size)) for size in hidden),
        ),
        Linear(jnp.asarray(random.normal(size=hidden[-1]))),
        Stationary(
            jnp.asarray(random.normal()), jnp.asarray(random.normal(size=hidden[-1])), correlation="matern52"
        ),
        jnp.asarray(np.float64(raw_noise_variance)),
    )


def softplus(raw: Any) -> Any:
    return np.logaddexp(0.0, np.asarray(raw))


def matern52(a: Values, b: Values, lengthscales: Values, variance: float) -> Values:
    """By explicit distances."""
    distance = np.sqrt((((a[:, None, :] - b[None, :, :]) / lengthscales) ** 2).sum(axis=2))
    scaled = np.sqrt(5.0) * distance
    return variance * (1.0 + scaled + 5.0 / 3.0 * distance**2) * np.exp(-scaled)


def features(gp: GaussianProcess, x: Values) -> Values:
    for weight, bias in zip(gp.features.weights, gp.features.biases, strict=True):
        x = np.tanh(x @ np.asarray(weight) + np.asarray(bias))
    return x


def covariance(gp: GaussianProcess, a: Values, b: Values) -> Values:
    variance = float(softplus(gp.kernel.raw_signal_variance))
    return matern52(features(gp, a), features(gp, b), softplus(gp.kernel.raw_lengthscales), variance)


def mean(gp: GaussianProcess, x: Values) -> Values:
    return features(gp, x) @ np.asarray(gp.mean.weight)


def noise_variance(gp: GaussianProcess) -> float:
    return float(softplus(gp.raw_noise_variance))


def noisy_covariance(gp: GaussianProcess, x: Values) -> Values:
    return covariance(gp, x, x) + noise_variance(gp) * np.eye(len(x))


def nll(gp: GaussianProcess, x: Values, y: Values) -> float:
    return -float(multivariate_normal(mean(gp, x), noisy_covariance(gp, x)).logpdf(y))


def posterior(gp: GaussianProcess, x: Values, y: Values, at: Values) -> tuple[Values, Values]:
    """Mean and variance of the function by one dense solve; the prior where nothing was observed."""
    prior_variance = np.diag(covariance(gp, at, at))
    if len(x) == 0:
        return mean(gp, at), prior_variance
    cross = covariance(gp, x, at)
    solved = np.linalg.solve(noisy_covariance(gp, x), cross)
    return mean(gp, at) + solved.T @ (y - mean(gp, x)), prior_variance - (cross * solved).sum(axis=0)


def random_structure(seed: int, architecture: Architecture) -> GaussianProcess:
    """A model of any structure with no two parameters equal; call it under 64-bit JAX."""
    random = np.random.default_rng(seed)
    gp = initialise(jax.random.key(seed), SPACE.dimension, architecture)
    return jax.tree.map(lambda leaf: leaf + jnp.asarray(0.5 * random.normal(size=leaf.shape)), gp)


def kernel_matrix(name: str, parameters: list[Values], a: Values, b: Values) -> Values:
    """Any kernel, from its raw parameters in the order of its fields, one pair of rows at a time."""
    positive = [softplus(raw) for raw in parameters]

    def at_pair(x: Values, z: Values) -> float:
        if name == "linear":
            return float(positive[0] ** 2 + sum(x * z) / positive[1] ** 2)
        if name == "dot_product":
            return float(sum(x * z / positive[0] ** 2))
        distance = np.sqrt(sum(((x - z) / positive[1]) ** 2))
        correlation = {
            "squared_exponential": np.exp(-0.5 * distance**2),
            "matern32": (1.0 + np.sqrt(3.0) * distance) * np.exp(-np.sqrt(3.0) * distance),
            "matern52": (1.0 + np.sqrt(5.0) * distance + 5.0 * distance**2 / 3.0)
            * np.exp(-np.sqrt(5.0) * distance),
        }
        return float(positive[0] * correlation[name])

    return np.array([[at_pair(x, z) for z in b] for x in a])


def structure_moments(
    architecture: Architecture, gp: GaussianProcess, a: Values, b: Values
) -> tuple[Values, Values]:
    """Prior mean at a, and covariance between a and b, of any structure."""
    phi = features(gp, a)
    parameters = [np.asarray(leaf) for leaf in jax.tree.leaves(gp.kernel)]
    covariance = kernel_matrix(architecture.kernel, parameters, phi, features(gp, b))
    of_mean = [np.asarray(leaf) for leaf in jax.tree.leaves(gp.mean)]
    expected = {
        "zero": lambda: np.zeros(len(a)),
        "constant": lambda: np.full(len(a), of_mean[0]),
        "linear": lambda: phi @ of_mean[0],
        "affine": lambda: phi @ of_mean[0] + of_mean[1],
    }
    return expected[architecture.mean](), covariance


def make_task(name: str, dataset: str, x: Values, y: Values) -> Task:
    return Task(name, dataset, x, y, np.exp(-y), tuple(f"{name}/{row}" for row in range(len(y))))


def tuning_data(sizes: tuple[int, ...] = (3, 12, 7), seed: int = 0) -> TuningData:
    """Tasks `t0`, `t1`, ... of datasets `d0`, `d1`, ..., of unequal sizes, without matched blocks."""
    random = np.random.default_rng(seed)
    tasks = []
    for number, size in enumerate(sizes):
        x = random.random((size, SPACE.dimension))
        y = np.sin(4.0 * x[:, 0] + number) + x[:, 1] + 0.1 * random.normal(size=size)
        tasks.append(make_task(f"t{number}", f"d{number}", x, y))
    return TuningData(SPACE, tuple(tasks), (), Provenance("case/tiny:1.0.0", "hash", "paper"))


def with_blocks(data: TuningData, *blocks: MatchedBlock) -> TuningData:
    return replace(data, blocks=blocks)


def matched_block(tasks: tuple[str, ...], inputs: int, seed: int) -> MatchedBlock:
    random = np.random.default_rng(seed)
    x = random.random((inputs, SPACE.dimension))
    return MatchedBlock(tasks, x, np.sin(3.0 * x[:, :1]) + 0.5 * random.normal(size=(inputs, len(tasks))))
