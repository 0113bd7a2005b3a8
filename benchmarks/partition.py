"""EKL on unmatched data through a partition of the input space, beside NLL and matched EKL, on PD1 mini.

Run by `python -m benchmarks.partition`. For every task dataset held out, each method trains on the others;
then the test tasks' NLL per observation, on 50 trials drawn alike for all, and the regret of thresholded PI
are averaged over test tasks; the table has their mean and standard deviation over seeds. Partitioned EKL and
H-NLL see the same trials: those outside matched blocks. Matched EKL sees the matched blocks. A percentage is
the share of tasks that must have seen a cell.

Runs under the same settings on the same machine are equal to the last bit. Another number of devices, or
another instruction set, rounds otherwise; L-BFGS, which ends before it converges, multiplies that: the test
NLL of one model was seen to move by 10 %. Differences within the standard deviation are no finding.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import numpy as np
import rich
from rich.console import Console
from rich.table import Table

import pd1_builder
from hyperbo.bayesopt.offline import Run, simulate
from hyperbo.data.partition import all_inputs, covering_tree, kmeans, partitioned_blocks
from hyperbo.data.tuning_data import Task, TuningData
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.gp.numerics import double_precision
from hyperbo.methods import GPPolicy, prior_in_use
from hyperbo.objectives.nll import task_nll
from hyperbo.pretrain import EKLTraining, Job, NLLTraining, Pretrained, pretrain_ekl, pretrain_nll

TEST_POINTS = 50
ITERATIONS = (5, 10, 20)


def unmatched(data: TuningData) -> TuningData:
    """The data without the trials at inputs of matched blocks."""
    matched = {row.tobytes() for block in data.blocks for row in block.x}

    def outside(task: Task) -> Task | None:
        kept = np.array([row.tobytes() not in matched for row in task.x])
        if not kept.any():
            return None
        ids = tuple(name for name, keep in zip(task.trial_ids, kept, strict=True) if keep)
        return replace(task, x=task.x[kept], y=task.y[kept], objective=task.objective[kept], trial_ids=ids)

    tasks = tuple(task for task in map(outside, data.tasks) if task is not None)
    return replace(data, tasks=tasks, blocks=())


def by_kmeans(cells: int, minimum_tasks: float) -> Callable[[TuningData], TuningData]:
    def partition(data: TuningData) -> TuningData:
        found = kmeans(all_inputs(data.tasks), cells, seed=0)
        needed = round(minimum_tasks * len(data.tasks))
        return replace(data, blocks=partitioned_blocks(data, found, needed))

    return partition


def by_covering_tree(radius: float, minimum_tasks: float) -> Callable[[TuningData], TuningData]:
    def partition(data: TuningData) -> TuningData:
        found = covering_tree(all_inputs(data.tasks), radius).partition(radius)
        needed = round(minimum_tasks * len(data.tasks))
        return replace(data, blocks=partitioned_blocks(data, found, needed))

    return partition


_task_nll = jax.jit(task_nll)


@double_precision
def test_nll(model: Pretrained, task: Task, seed: int) -> float:
    """NLL per observation on a subset of the task that does not depend on the method."""
    # By name, not by position: a version of the data that orders its records otherwise has the same subset.
    by_name = np.argsort(np.array(task.trial_ids))
    rows = by_name[np.random.default_rng(seed).permutation(len(task.y))[:TEST_POINTS]]
    value, _ = _task_nll(model.gp, task.x[rows], task.y[rows], np.ones(len(rows), bool))
    return float(value) / len(rows)


def evaluate(models: dict[tuple[str, int], Pretrained], data: TuningData) -> np.ndarray:
    """A row per seed: mean and median test NLL per observation, mean regret after each of `ITERATIONS`."""
    seeds = sorted({seed for _, seed in models})
    pairs = [(models[task.dataset, seed], task, seed) for seed in seeds for task in data.tasks]
    nll = np.array([test_nll(*pair) for pair in pairs]).reshape(len(seeds), -1)
    # The number of training tasks takes no part in thresholded PI.
    runs = [Run(GPPolicy(prior_in_use(model.gp, 1)), task, seed) for model, task, seed in pairs]
    choices = simulate(runs, max(ITERATIONS), repeats=True).require_usable().choices
    regrets = np.array(
        [
            [task.y.max() - task.y[row[:count]].max() for count in ITERATIONS]
            for (_, task, _), row in zip(pairs, choices, strict=True)
        ]
    ).reshape(len(seeds), len(data.tasks), len(ITERATIONS))
    return np.column_stack([nll.mean(axis=1), np.median(nll, axis=1), regrets.mean(axis=1)])


def blocks_in_words(training: dict[str, TuningData]) -> str:
    blocks = next(iter(training.values())).complete_blocks
    if not blocks:
        return "-"
    return f"{sum(len(block.x) for block in blocks)} in {len(blocks)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--nll-steps", type=int, default=2000)
    parser.add_argument("--ekl-iterations", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pd1_builder.build("pd1/mini", "1.0.0", data_dir=Path(folder))
        data = pd1_builder.load("pd1/mini:1.0.0", data_dir=Path(folder))
    generic = unmatched(data)
    sizes = sorted(len(task.y) for task in generic.tasks)
    rich.print(
        f"{len(data.tasks)} tasks; {len(generic.tasks)} with unmatched trials, {sizes[0]} to {sizes[-1]} each"
    )
    nll = partial(
        pretrain_nll,
        architecture=Architecture(),
        training=NLLTraining(options.nll_steps, steps_per_call=options.nll_steps),
    )
    ekl = partial(pretrain_ekl, architecture=Architecture(), training=EKLTraining(options.ekl_iterations))
    methods = {
        "H-NLL, unmatched": (generic, lambda data: data, nll),
        "H-EKL, matched": (data, lambda data: data, ekl),
        **{
            f"H-EKL, {cells} k-means cells, {share:.0%}": (generic, by_kmeans(cells, share), ekl)
            for cells, share in ((16, 1.0), (32, 1.0), (64, 1.0), (64, 0.8), (128, 0.8))
        },
        **{
            f"H-EKL, covering tree, radius {radius}, {share:.0%}": (
                generic,
                by_covering_tree(radius, share),
                ekl,
            )
            for radius, share in ((0.5, 1.0), (0.4, 1.0), (0.3, 1.0), (0.3, 0.8))
        },
    }
    columns = (
        "method",
        "inputs in blocks",
        "mean test NLL",
        "median",
        *(f"regret at {n}" for n in ITERATIONS),
        "seconds",
    )
    table = Table(*columns, title=f"PD1 mini, held-out related, {options.seeds} seeds")
    for name, (source, partition, train) in methods.items():
        started = time.perf_counter()
        try:
            sets = {held_out: partition(source.hold_out(held_out)) for held_out in data.task_datasets}
        except InvalidInputError as error:
            table.add_row(name, str(error), *("-",) * (3 + len(ITERATIONS)))
            continue
        keys = [(held_out, seed) for held_out in data.task_datasets for seed in range(options.seeds)]
        jobs = [Job(sets[held_out], seed) for held_out, seed in keys]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # jitter
            trained = train(jobs)
        values = evaluate(dict(zip(keys, trained, strict=True)), data)
        spread = values.std(axis=0, ddof=1) if options.seeds > 1 else np.full(values.shape[1], np.nan)
        cells = (f"{mean:.3f} ± {std:.3f}" for mean, std in zip(values.mean(axis=0), spread, strict=True))
        seconds = f"{time.perf_counter() - started:.0f}"
        table.add_row(name, blocks_in_words(sets), *cells, seconds)
    Console(width=160).print(table)
    rich.print(f"{jax.device_count()} x {jax.devices()[0].device_kind}")


if __name__ == "__main__":
    main()
