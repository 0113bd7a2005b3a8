"""Pre-training at the size of PD1: time per step of H-NLL and of H-EKL, beside PyTorch: `make bench-method`.

Compiling is told apart from running by the difference of two lengths of training, each compiled anew.
PyTorch is no dependency: where it is not installed, its rows say so.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import rich
from rich.table import Table

from flows.environment import prepare_jax

prepare_jax()
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"

import jax  # noqa: E402 - after the devices have been made

from hyperbo.gp.gaussian_process import Architecture  # noqa: E402
from hyperbo.pretrain import EKLTraining, Job, NLLTraining, pretrain_ekl, pretrain_nll  # noqa: E402
from hyperbo.search_space import Parameter, SearchSpace  # noqa: E402
from hyperbo.tuning_data import MatchedBlock, Provenance, Task, TuningData  # noqa: E402

TASKS, TRIALS, MATCHED, DIMENSION, POINTS = 24, 1_400, 242, 4, 50
HIDDEN = (32, 32)


def tuning_data(seed: int = 0) -> TuningData:
    """Tasks of PD1's number and size: smooth functions of their inputs with noise."""
    draw = np.random.default_rng(seed)
    names = tuple(f"task{number:02d}" for number in range(TASKS))
    slopes = draw.normal(size=(TASKS, DIMENSION))

    def values(x: np.ndarray, task: int) -> np.ndarray:
        return np.sin(3.0 * x @ slopes[task]) + 0.1 * draw.normal(size=len(x))

    inputs = draw.uniform(size=(MATCHED, DIMENSION))
    matched = np.stack([values(inputs, task) for task in range(TASKS)], axis=1)
    tasks = []
    for number, name in enumerate(names):
        x = draw.uniform(size=(TRIALS, DIMENSION))
        y = values(x, number)
        tasks.append(Task(name, name, x, y, -y, tuple(f"{name}/{i}" for i in range(TRIALS))))
    space = SearchSpace(tuple(Parameter(f"x{i}", 0.0, 1.0) for i in range(DIMENSION)))
    provenance = Provenance("synthetic/pd1_sized:1.0.0", "none", "none")
    return TuningData(space, tuple(tasks), (MatchedBlock(names, inputs, matched),), provenance)


def per_unit(run: Callable[[int], Any], short: int, long: int, repeats: int) -> tuple[float, float]:
    """Seconds for one unit of work, and seconds to compile: medians, from a short and a long run."""
    units, compiling = [], []
    for _ in range(repeats):
        seconds = []
        for length in (short, long):
            started = time.perf_counter()
            run(length)
            seconds.append(time.perf_counter() - started)
        units.append((seconds[1] - seconds[0]) / (long - short))
        compiling.append(seconds[0] - short * units[-1])
    return statistics.median(units), statistics.median(compiling)


def torch_steps(data: TuningData, dtype: str) -> Callable[[int], None]:
    """The same step in plain PyTorch: tasks as a batch, drawing the points and Adam included."""
    import torch

    kind = getattr(torch, dtype)
    torch.manual_seed(0)
    x_all = torch.tensor(np.stack([task.x for task in data.tasks]), dtype=kind)
    y_all = torch.tensor(np.stack([task.y for task in data.tasks]), dtype=kind)
    layers = torch.nn.Sequential(
        torch.nn.Linear(DIMENSION, HIDDEN[0]), torch.nn.Tanh(), torch.nn.Linear(*HIDDEN), torch.nn.Tanh()
    ).to(kind)
    mean = torch.nn.Parameter(torch.randn(HIDDEN[-1], dtype=kind) / HIDDEN[-1] ** 0.5)
    raw = torch.nn.Parameter(torch.zeros(HIDDEN[-1] + 2, dtype=kind))
    optimizer = torch.optim.Adam([*layers.parameters(), mean, raw], lr=1e-3)
    rows = torch.arange(TASKS)[:, None]
    identity = torch.eye(POINTS, dtype=kind)

    def step() -> None:
        points = torch.rand(TASKS, TRIALS).argsort(dim=1)[:, :POINTS]
        x, y = x_all[rows, points], y_all[rows, points]
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

    def run(steps: int) -> None:
        for _ in range(steps):
            step()

    return run


def bench(repeats: int, steps: Sequence[int]) -> Table:
    """All rows of the table."""
    data = tuning_data()
    table = Table("what", "ms", "to H-NLL", "compiling, s", title="Pre-training at PD1's size")
    architecture = Architecture(hidden=HIDDEN)
    devices = jax.device_count()

    def nll(models: int) -> Callable[[int], Any]:
        jobs = [Job(data, seed) for seed in range(models)]
        return lambda length: pretrain_nll(
            jobs, architecture, NLLTraining(steps=length, steps_per_call=steps[0])
        )

    first, compiling = per_unit(nll(1), *steps, repeats)
    table.add_row("H-NLL, a step, float64", f"{1e3 * first:.2f}", "1", f"{compiling:.1f}")
    several, compiling = per_unit(nll(2 * devices), *steps, repeats)
    each = several / (2 * devices)
    name = f"H-NLL, a step of each of {2 * devices} models on {devices} devices"
    table.add_row(name, f"{1e3 * each:.2f}", f"{each / first:.2f}", f"{compiling:.1f}")

    def ekl(iterations: int) -> Any:
        return pretrain_ekl([Job(data, 0)], architecture, EKLTraining(iterations=iterations))

    iteration, compiling = per_unit(ekl, 100, 900, repeats)
    table.add_row(
        "H-EKL, 100 L-BFGS iterations, 242 inputs", f"{1e5 * iteration:.0f}", "", f"{compiling:.1f}"
    )
    for dtype in ("float32", "float64"):
        label = f"PyTorch, the same step of H-NLL, {dtype}"
        if importlib.util.find_spec("torch") is None:
            table.add_row(label, "not installed", "", "")
            continue
        seconds, _ = per_unit(torch_steps(data, dtype), 50, 250, repeats)
        table.add_row(label, f"{1e3 * seconds:.2f}", f"{seconds / first:.2f}", "")
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="medians are over so many runs")
    parser.add_argument(
        "--steps", type=int, nargs=2, default=[500, 2500], help="of the short and the long run"
    )
    options = parser.parse_args()
    rich.print(
        f"{os.cpu_count()} cores, {platform.machine()}, JAX {jax.__version__} on {jax.device_count()} "
        f"{jax.default_backend()} devices; {TASKS} tasks of {TRIALS} trials, {POINTS} points of each a step"
    )
    rich.print(bench(options.repeats, options.steps))


if __name__ == "__main__":
    main()
