"""Offline Bayesian optimization at the size of PD1, all runs of a method: `make bench-simulate`.

Each measurement is a process of its own. Seconds include compiling and everything from the data in memory to
the last choice; memory is the peak of the process. The peers make one run after another, as a simple program
would: dense posteriors by SciPy, refits by SciPy's L-BFGS-B with gradients compiled by JAX. They are timed on
a few runs and scaled up to all runs; the table says so.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hyperbo_flows.process.environment import prepare_jax
from rich.table import Table

from benchmarks.recording import add_record_option, recorded

prepare_jax()
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"

import jax  # noqa: E402 - after the devices have been made
import jax.numpy as jnp  # noqa: E402
import scipy.linalg  # noqa: E402
import scipy.optimize  # noqa: E402
from jax.flatten_util import ravel_pytree  # noqa: E402

from hyperbo.bayesopt.offline import Run, simulate  # noqa: E402
from hyperbo.data.tuning_data import Provenance, Task, TuningData  # noqa: E402
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise  # noqa: E402
from hyperbo.methods import HNLL, STBO, prior_in_use  # noqa: E402
from hyperbo.objectives.nll import task_nll  # noqa: E402
from hyperbo.pretrain import Job  # noqa: E402

TASKS, SEEDS, CANDIDATES, DIMENSION, ITERATIONS = 23, 5, 1_400, 4, 100
PEER_RUNS = 2


def tuning_data() -> TuningData:
    """Test tasks of PD1's number and size: smooth functions with noise, each with its own optimum."""
    from hyperbo.data.search_space import Parameter, SearchSpace

    draw = np.random.default_rng(0)
    tasks = []
    for number in range(TASKS):
        x = draw.uniform(size=(CANDIDATES, DIMENSION))
        y = -np.sum((x - draw.uniform(size=DIMENSION)) ** 2, axis=1) + 0.05 * draw.normal(size=CANDIDATES)
        name = f"task{number:02d}"
        tasks.append(Task(name, name, x, y, -y, tuple(f"{name}/{i}" for i in range(CANDIDATES))))
    space = SearchSpace(tuple(Parameter(f"x{i}", 0.0, 1.0) for i in range(DIMENSION)))
    return TuningData(space, tuple(tasks), (), Provenance("synthetic/pd1_sized:1.0.0", "none", "none"))


def prior(seed: int) -> GaussianProcess:
    """A prior of the paper's structure; its training does not affect the cost."""
    with jax.enable_x64(True):
        gp = initialise(jax.random.key(seed), DIMENSION, Architecture())
        return jax.tree.map(np.asarray, gp)


def pretrained(data: TuningData) -> list[Run]:
    """The runs of a method whose prior is fixed."""
    method = HNLL()
    return [
        Run(method.policy(prior_in_use(prior(seed), TASKS), task), task, seed)
        for seed in range(SEEDS)
        for task in data.tasks
    ]


def single_task(data: TuningData) -> list[Run]:
    """The runs of a method that refits its model before each choice."""
    method = STBO()
    fitted = method.fit([Job(data, seed) for seed in range(SEEDS)])
    return [
        Run(method.policy(fitted[seed], task), task, seed) for seed in range(SEEDS) for task in data.tasks
    ]


def _choose(gp: GaussianProcess, task: Task, rows: Sequence[int]) -> int:
    """Thresholded PI from a dense posterior."""
    with jax.enable_x64(True):
        return _choice(gp, task, rows)


def _choice(gp: GaussianProcess, task: Task, rows: Sequence[int]) -> int:
    features, kernel = _FEATURES(gp, task.x), gp.kernel
    mean, variance = np.asarray(gp.mean(features)), np.asarray(kernel.diagonal(features))
    noise = float(gp.noise_variance)
    target = 0.0
    if rows:
        observed = features[np.array(rows)]
        # A refit may end with zero noise, and a candidate may be observed twice.
        covariance = np.asarray(kernel(observed, observed)) + (noise + 1e-6) * np.eye(len(rows))
        cross = np.asarray(kernel(observed, features))
        factor = scipy.linalg.cho_factor(covariance, lower=True)
        solved = scipy.linalg.cho_solve(factor, cross)
        mean = mean + (task.y[np.array(rows)] - mean[np.array(rows)]) @ solved
        variance = np.maximum(variance - np.sum(cross * solved, axis=0), 0.0)
        target = task.y[np.array(rows)].max() + 0.1
    return int(np.argmax((mean - target) / np.sqrt(variance + noise)))


_FEATURES = jax.jit(lambda gp, x: gp.features(jnp.asarray(x)))


def plain_pretrained(data: TuningData) -> None:
    """Some runs with a fixed prior; every iteration computes a dense posterior."""
    for task in data.tasks[:PEER_RUNS]:
        rows: list[int] = []
        for _ in range(ITERATIONS):
            rows.append(_choose(prior(0), task, rows))


def plain_single_task(data: TuningData) -> None:
    """Some runs with refits by SciPy's L-BFGS-B, gradients compiled for the full number of rows."""
    method = STBO()
    with jax.enable_x64(True):
        start = jax.tree.map(jnp.asarray, prior(0))
        flat, unflatten = ravel_pytree(start)
        mask = jnp.arange(ITERATIONS)

        @jax.jit
        @jax.value_and_grad
        def objective(flat: Any, x: Any, y: Any, count: Any) -> Any:
            gp = unflatten(flat)
            return task_nll(gp, x, y, mask < count)[0] + method.penalty(gp)

        for task in data.tasks[:PEER_RUNS]:
            rows: list[int] = []
            for count in range(ITERATIONS):
                gp = start
                if count:
                    x, y = np.zeros((ITERATIONS, DIMENSION)), np.zeros(ITERATIONS)
                    x[:count], y[:count] = task.x[rows], task.y[rows]
                    found = scipy.optimize.minimize(
                        lambda flat, x=x, y=y, count=count: objective(flat, x, y, count),
                        flat,
                        jac=True,
                        method="L-BFGS-B",
                        options={"maxiter": method.iterations},
                    )
                    gp = unflatten(jnp.asarray(found.x))
                rows.append(_choice(gp, task, rows))


def ours(make: Callable[[TuningData], list[Run]]) -> Callable[[TuningData], None]:
    def run(data: TuningData) -> None:
        simulate(make(data), ITERATIONS, repeats=True).require_usable()

    return run


# The measurements: the work, and how many of the 115 runs it makes.
MEASUREMENTS: dict[str, tuple[Callable[[TuningData], None], int]] = {
    "pre-trained": (ours(pretrained), TASKS * SEEDS),
    "pre-trained, plain": (plain_pretrained, PEER_RUNS),
    "STBO": (ours(single_task), TASKS * SEEDS),
    "STBO, plain": (plain_single_task, PEER_RUNS),
}


def measure(name: str) -> dict[str, float]:
    """Seconds and peak megabytes of one measurement, in this process."""
    data = tuning_data()
    started = time.perf_counter()
    MEASUREMENTS[name][0](data)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def in_a_process(name: str) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.simulate", "--measure", name]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def bench_runs(repeats: int) -> Table:
    """Time and memory of all runs, beside plain loops."""
    runs = TASKS * SEEDS
    table = Table("what", f"s for {runs} runs", "to ours", "peak MB", title="Offline Bayesian optimization")
    reference = 1.0
    for name, (_, done) in MEASUREMENTS.items():
        found = [in_a_process(name) for _ in range(repeats)]
        seconds = statistics.median(each["seconds"] for each in found) * runs / done
        reference = seconds if done == runs else reference
        scaled = "" if done == runs else f" (from {done} runs)"
        megabytes = statistics.median(each["megabytes"] for each in found)
        table.add_row(name, f"{seconds:.1f}{scaled}", f"{seconds / reference:.2f}", f"{megabytes:.0f}")
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="medians are over so many processes")
    parser.add_argument("--measure", choices=MEASUREMENTS, help="one measurement, as JSON")
    add_record_option(parser)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    with recorded("Offline Bayesian optimization at PD1's size", options.record) as show:
        show(
            f"{jax.device_count()} {jax.default_backend()} devices; {TASKS} tasks x {SEEDS} seeds x "
            f"{ITERATIONS} iterations, {CANDIDATES} candidates"
        )
        show(bench_runs(options.repeats))


if __name__ == "__main__":
    main()
