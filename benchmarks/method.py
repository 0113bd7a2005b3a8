"""Pre-training at the size of PD1: time per step of H-NLL and of H-EKL, beside PyTorch: `make bench-method`.

Compiling is separated from running by the time of each call of a training's compiled loop. PyTorch and
GPyTorch are not dependencies: if one is not installed, its rows say so.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from hyperbo_flows.process.environment import prepare_jax
from rich.table import Table

from benchmarks.recording import add_record_option, recorded
from benchmarks.torch_peers import gpytorch_step, torch_step

prepare_jax()
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"

import jax  # noqa: E402 - after the devices have been made

from hyperbo.data.search_space import Parameter, SearchSpace  # noqa: E402
from hyperbo.data.tuning_data import MatchedBlock, Provenance, Task, TuningData  # noqa: E402
from hyperbo.gp.gaussian_process import Architecture  # noqa: E402
from hyperbo.pretrain import EKLTraining, Job, NLLTraining, pretrain_ekl, pretrain_nll  # noqa: E402

TASKS, TRIALS, MATCHED, DIMENSION, POINTS = 24, 1_400, 242, 4, 50
HIDDEN = (32, 32)
STUDY_MODELS, STUDY_STEPS = 23 * 5, 50_000
ARCHITECTURE = Architecture(hidden=HIDDEN)
TRAINING = NLLTraining(points_per_task=POINTS)


def tuning_data(tasks: int = TASKS, trials: int = TRIALS) -> TuningData:
    """Smooth functions with noise, by default as many and with as many points as PD1's tasks."""
    draw = np.random.default_rng(0)
    names = tuple(f"task{number:04d}" for number in range(tasks))
    slopes = draw.normal(size=(tasks, DIMENSION))

    def values(x: np.ndarray, task: int) -> np.ndarray:
        return np.sin(3.0 * x @ slopes[task]) + 0.1 * draw.normal(size=len(x))

    inputs = draw.uniform(size=(MATCHED, DIMENSION))
    matched = np.stack([values(inputs, task) for task in range(tasks)], axis=1)
    made = []
    for number, name in enumerate(names):
        x = draw.uniform(size=(trials, DIMENSION))
        y = values(x, number)
        made.append(Task(name, name, x, y, -y, tuple(f"{name}/{i}" for i in range(trials))))
    space = SearchSpace(tuple(Parameter(f"x{i}", 0.0, 1.0) for i in range(DIMENSION)))
    provenance = Provenance("synthetic/pd1_sized:1.0.0", "none", "none")
    return TuningData(space, tuple(made), (MatchedBlock(names, inputs, matched),), provenance)


class Timing(NamedTuple):
    """Median seconds of one call of a compiled loop, and seconds of everything else: compiling."""

    call: float
    compiling: float


def timed(train: Callable[[Callable[[int, int], None]], Any]) -> Timing:
    """Time a training by its progress reports, one before each call and one at the end."""
    ticks = [time.perf_counter()]
    train(lambda done, total: ticks.append(time.perf_counter()))
    seconds = np.diff(ticks)
    call = statistics.median(seconds[2:-1])  # the others use the compiled program
    return Timing(call, ticks[-1] - ticks[0] - (len(seconds) - 1) * call)


def time_nll(data: TuningData, calls: int, models: int = 1, training: NLLTraining = TRAINING) -> Timing:
    """Seconds of one step of all models, and of compiling."""
    jobs = [Job(data, seed) for seed in range(models)]
    training = replace(training, steps=calls * training.steps_per_call)
    timing = timed(lambda progress: pretrain_nll(jobs, ARCHITECTURE, training, progress))
    return Timing(timing.call / training.steps_per_call, timing.compiling)


def per_step(step: Callable[[], None]) -> float:
    """Seconds of a step called from Python: median of five times 50 steps, after 50 steps."""
    seconds = []
    for _ in range(6):
        started = time.perf_counter()
        for _ in range(50):
            step()
        seconds.append((time.perf_counter() - started) / 50)
    return statistics.median(seconds[1:])


def bench_steps(calls: int) -> Table:
    """Time of a step: in both precisions, for a batch of models, and for the peers."""
    data, devices = tuning_data(), jax.device_count()
    table = Table("what", "ms", "to H-NLL", "compiling, s", title="Pre-training at PD1's size")
    double = time_nll(data, calls)

    def add(name: str, seconds: float, compiling: float | None = None) -> None:
        compiled = "" if compiling is None else f"{compiling:.1f}"
        table.add_row(name, f"{1e3 * seconds:.2f}", f"{seconds / double.call:.2f}", compiled)

    add("H-NLL, a step, float64", *double)
    add("H-NLL, a step, float32", *time_nll(data, calls, training=replace(TRAINING, precision="float32")))
    models = 2 * devices
    several = time_nll(data, calls, models)
    add(
        f"H-NLL, a step of each of {models} models on {devices} devices",
        several.call / models,
        several.compiling,
    )
    ekl = timed(lambda progress: pretrain_ekl([Job(data, 0)], ARCHITECTURE, EKLTraining(100), progress))
    share = 100 / EKLTraining.iterations_per_call
    table.add_row(
        f"H-EKL, 100 L-BFGS iterations, {MATCHED} inputs",
        f"{1e3 * share * ekl.call:.0f}",
        "",
        f"{ekl.compiling:.1f}",
    )
    for library, name, make in [("torch", "PyTorch", torch_step), ("gpytorch", "GPyTorch", gpytorch_step)]:
        for dtype in ("float32", "float64"):
            label = f"{name}, the same step of H-NLL, {dtype}"
            if importlib.util.find_spec(library) is None:
                table.add_row(label, "not installed", "", "")
            else:
                add(label, per_step(make(data, POINTS, HIDDEN, dtype)))
    return table


def bench_precision(steps: int) -> Table:
    """Accuracy of float32: the same training in both precisions."""
    table = Table("steps", "loss, float64", "loss, float32", "relative difference", title="float32")
    data = tuning_data()
    losses = [
        pretrain_nll([Job(data, 0)], ARCHITECTURE, replace(TRAINING, steps=steps, precision=precision))[
            0
        ].losses
        for precision in ("float64", "float32")
    ]
    for call, (double, single) in enumerate(zip(*losses, strict=True)):
        done = f"{call * TRAINING.steps_per_call + 1}..{(call + 1) * TRAINING.steps_per_call}"
        table.add_row(done, f"{double:.3f}", f"{single:.3f}", f"{abs(single / double - 1):.1e}")
    return table


def bench_tasks(calls: int) -> Table:
    """Time of a step with more tasks: with all of them, and with 24 drawn ones."""
    table = Table(
        "tasks", "in a step", "ms", "to 24 tasks", title="Number of tasks, 200 trials each, float64"
    )
    for drawn, numbers in [(None, (24, 96, 384)), (TASKS, (24, 384, 3_072))]:
        first = 0.0
        for tasks in numbers:
            training = replace(TRAINING, tasks_per_step=drawn, steps_per_call=50)
            seconds = time_nll(tuning_data(tasks, 200), calls, training=training).call
            first = first or seconds
            in_step = "all" if drawn is None else str(drawn)
            table.add_row(str(tasks), in_step, f"{1e3 * seconds:.2f}", f"{seconds / first:.1f}")
    return table


def bench_memory(steps: Sequence[int]) -> Table:
    """Peak memory of trainings of several lengths, each in a process of its own."""
    table = Table("steps", "peak memory, MB", title="Memory of one training")
    for count in steps:
        command = [sys.executable, "-m", "benchmarks.method", "--memory-of", str(count)]
        peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        table.add_row(str(count), peak.strip())
    return table


def bench_study(calls: int) -> Table:
    """All models of the paper's PD1 study at once, for a few steps."""
    training = replace(TRAINING, steps_per_call=20)
    table = Table("precision", "ms a step of a model", "compiling, s", "extrapolated to the whole study, h")
    for precision in ("float64", "float32"):
        step, compiling = time_nll(tuning_data(), calls, STUDY_MODELS, replace(training, precision=precision))
        hours = step * STUDY_STEPS / 3600
        table.add_row(precision, f"{1e3 * step / STUDY_MODELS:.2f}", f"{compiling:.1f}", f"{hours:.2f}")
    table.title = f"{STUDY_MODELS} models: 23 held-out tasks x 5 seeds, {STUDY_STEPS} steps each"
    return table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=8, help="calls of the compiled loop in a training, >= 3")
    parser.add_argument("--study", action="store_true", help=f"also {STUDY_MODELS} models at once")
    parser.add_argument("--memory-of", type=int, help="only train for so many steps, print the peak memory")
    add_record_option(parser)
    options = parser.parse_args()
    if options.memory_of:
        pretrain_nll([Job(tuning_data(), 0)], ARCHITECTURE, replace(TRAINING, steps=options.memory_of))
        print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")
        return
    with recorded("Pre-training at PD1's size", options.record) as show:
        show(
            f"{jax.device_count()} {jax.default_backend()} devices; {TASKS} tasks of {TRIALS} trials, "
            f"{POINTS} points of each a step"
        )
        show(bench_steps(options.calls))
        show(bench_precision(steps=4 * TRAINING.steps_per_call))
        show(bench_tasks(options.calls))
        show(bench_memory((500, 5_000)))
        if options.study:
            show(bench_study(options.calls))


if __name__ == "__main__":
    main()
