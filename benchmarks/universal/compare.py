"""Regret on spaces that are left out whole, beside TPE and methods that learn from the task alone."""

from __future__ import annotations

import argparse
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import numpy as np
import optuna
import pandas as pd
from scipy.stats import rankdata
from scipy.stats import t as student

from benchmarks.universal.histories import CHOICE, VERSIONS, collected, family, thinned, version
from hyperbo.bayesopt.offline import Run, simulate
from hyperbo.data.tuning_data import Task, TuningData
from hyperbo.data.warping import output_warping
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.gp.numerics import double_precision
from hyperbo.methods import STBO, STBOH, Rand
from hyperbo.methods.mixture.uninformed import uninformed_processes
from hyperbo.methods.protocol import Policy
from hyperbo.methods.universal import UniversalPolicy, columns_of, fit_hyperprior
from hyperbo.methods.universal.hyperprior import COMPONENTS, HyperPrior
from hyperbo.pretrain.jobs import Job
from hyperbo.tuning.optuna.recorded import sampler_rows

ITERATIONS, ROWS = 50, 250
TRIALS = (1, 5, 10, 20, 50)
TESTED = ("trials/taskset:1.0.0", "hpob/4796:1.0.0", "hpob/5636:1.0.0", "forest", "mlp", "sgd")
# Histories that a prior for the tested spaces may be fitted to.
SOURCES = ("pd1/mini:2.0.0", "trials/taskset:1.0.0", "hpob/4796:1.0.0", "hpob/5636:1.0.0")


def options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--spaces", nargs="*", default=TESTED)
    parser.add_argument("--methods", nargs="*", default=None)


def run(given: argparse.Namespace) -> None:
    """Run all methods on all spaces; runs that are in the folder are kept."""
    given.out.mkdir(parents=True, exist_ok=True)
    histories = collected()
    for name in {*SOURCES, *(each for each in given.spaces if each in VERSIONS)}:
        histories[name] = version(name, given.data)
    sources = [name for name in histories if name not in CHOICE[:1]]

    @cache
    def without(left_out: str) -> HyperPrior:
        return fit_hyperprior({name: histories[name] for name in sources if family(name) != left_out})

    for space in given.spaces:
        data = thinned(histories[space], ROWS) if space in VERSIONS else histories[space]
        methods = _methods(data, partial(without, family(space)))
        for method in given.methods or methods:
            path = given.out / f"{space.replace('/', '-')}-{method}.parquet"
            if path.exists():
                continue
            begin = time.process_time()
            records = methods[method](given.seeds)
            records["space"], records["method"] = space, method
            records.to_parquet(path)
            print(f"{space:22} {method:14} {time.process_time() - begin:7.1f} s", flush=True)
    report(pd.concat([pd.read_parquet(path) for path in sorted(given.out.glob("*.parquet"))]))


def _methods(data: TuningData, learned: Callable[[], HyperPrior]) -> dict[str, Callable[[int], pd.DataFrame]]:
    """What is compared, each as a function of the number of seeds."""

    @double_precision
    def universal() -> Policy:
        return UniversalPolicy(learned().components(columns_of(data.search_space)))

    @double_precision
    def uninformed() -> Policy:
        dimension = data.search_space.dimension
        return UniversalPolicy(uninformed_processes(COMPONENTS, dimension, 0.0, 1.0))

    def standardised(method: STBO | STBOH) -> Callable[[int], pd.DataFrame]:
        """These methods need values of order 1: they get those of the whole table, which no user has."""

        def runs(seeds: int) -> pd.DataFrame:
            tasks = [replace(task, y=(task.y - task.y.mean()) / (task.y.std() or 1.0)) for task in data.tasks]
            scaled = replace(data, tasks=tuple(tasks))
            fitted = method.fit([Job(scaled, seed) for seed in range(seeds)])
            return _simulated(data, lambda seed, task: method.policy(fitted[seed], task), seeds, tasks)

        return runs

    def same(policy: Policy, seeds: int) -> pd.DataFrame:
        return _simulated(data, lambda seed, task: policy, seeds)

    def with_default(seeds: int) -> pd.DataFrame:
        policy = Rand().policy(None, data.tasks[0])
        return _simulated(data, lambda seed, task: policy, seeds, initial=lambda task: (_default(task),))

    return {
        "universal": lambda seeds: same(universal(), 1),  # nothing is drawn, but where scores are equal,
        "uninformed": lambda seeds: same(uninformed(), seeds),
        "default+rand": with_default,
        "rand": lambda seeds: _simulated(data, lambda seed, task: Rand().policy(None, task), seeds),
        "tpe": lambda seeds: _tpe(data, seeds, False),
        "nearest rand": lambda seeds: _tpe(data, seeds, True),
        "stboh": standardised(STBOH()),
        "stbo": standardised(STBO(Architecture())),
    }


def _default(task: Task) -> int:
    """The row of the default configuration; for versions, which have none, the row nearest to the centre."""
    if task.trial_ids[0] == "0" and task.name.partition("-")[0] in (
        "hgb",
        "forest",
        "svc",
        "mlp",
        "sgd",
        "knn",
    ):
        return 0
    return int(np.argmin(np.sum((task.x - 0.5) ** 2, axis=1)))


def _simulated(
    data: TuningData,
    policy: Callable[[int, Task], Policy],
    seeds: int,
    tasks: list[Task] | None = None,
    initial: Callable[[Task], tuple[int, ...]] = lambda task: (),
) -> pd.DataFrame:
    """The regret of runs on recorded trials; a trial is observed once."""
    runs = [
        Run(policy(seed, task), task, seed, initial(task))
        for seed in range(seeds)
        for task in tasks or data.tasks
    ]
    count = len(runs[0].initial)
    found = simulate(runs, ITERATIONS - count).require_usable()
    named = {task.name: task for task in data.tasks}
    return pd.concat(
        _records(named[run.task.name], run.seed, [*run.initial, *chosen])
        for run, chosen in zip(runs, found.choices.tolist(), strict=True)
    )


def _records(task: Task, seed: int, rows: list[int]) -> pd.DataFrame:
    """Regret after each trial, in units of best less median of the task."""
    unit = task.y.max() - np.median(task.y)
    unit = unit if unit > 0 else np.ptp(task.y) or 1.0
    regret = (task.y.max() - np.maximum.accumulate(task.y[rows])) / unit
    return pd.DataFrame(
        {"task": task.name, "seed": seed, "trial": np.arange(1, len(rows) + 1), "regret": regret, "row": rows}
    )


def _tpe(data: TuningData, seeds: int, is_random: bool) -> pd.DataFrame:
    """Optuna's TPE: the untried recorded trial that is nearest to what it asks for is what it is told of."""
    kind = optuna.samplers.RandomSampler if is_random else optuna.samplers.TPESampler
    found = []
    for task in data.tasks:
        # Its values, which are to be maximised, whatever the objective was.
        told = replace(task, objective=task.y)
        for seed in range(seeds):
            sampler = kind(seed=zlib.crc32(f"{task.name}/{seed}".encode()))
            rows = sampler_rows(data.search_space, told, output_warping("identity"), ITERATIONS, sampler)
            found.append(_records(task, seed, rows.tolist()))
    return pd.concat(found)


def report(records: pd.DataFrame) -> None:
    """Mean rank and mean regret after some trials, with intervals over tasks and over spaces."""
    per_task = records.groupby(["method", "space", "task", "trial"]).regret.mean().reset_index()
    whole = per_task.groupby(["space", "task"]).method.nunique()
    tasks = whole[whole == per_task.method.nunique()].index
    per_task = per_task[per_task.set_index(["space", "task"]).index.isin(tasks)]
    print(f"\n{len(tasks)} tasks of {per_task.space.nunique()} spaces")
    for trial in TRIALS:
        table = per_task[per_task.trial == trial].pivot(
            index=["space", "task"], columns="method", values="regret"
        )
        ranks = pd.DataFrame(rankdata(table.round(9), axis=1), table.index, table.columns)
        print(f"\nafter {trial}: mean regret, mean rank, 95 % intervals of the rank over tasks, of its lead")
        for method in ranks.mean().sort_values().index:
            lead = ranks[method] - ranks["universal"]
            by_space = lead.groupby("space").mean()
            own = ranks[method]
            print(
                f"  {method:14} {table[method].mean():.3f}  {own.mean():.2f} +- {_half(own):.2f}"
                f"  behind universal by {lead.mean():+.2f} +- {_half(lead):.2f}"
                f" (over spaces +- {_half(by_space):.2f})"
            )
    print("\nmean regret by space after 5, 10, 20, 50")
    kept = per_task[per_task.trial.isin(TRIALS[1:])]
    by_space = kept.groupby(["space", "method", "trial"]).regret.mean().unstack()
    print(by_space.round(3).to_string())
    curve = per_task.groupby(["method", "trial"]).regret.mean().unstack()
    if "stbo" in curve.index:
        for rival in ("stbo", "stboh"):
            for space in [None, *sorted(per_task.space.unique())]:
                mine = per_task if space is None else per_task[per_task.space == space]
                curve = mine.groupby(["method", "trial"]).regret.mean().unstack()
                reached = np.flatnonzero(curve.loc["universal"] <= curve.loc[rival, ITERATIONS] + 1e-12)
                first = reached[0] + 1 if len(reached) else f"more than {ITERATIONS}"
                print(f"{space or 'all'}: regret of {rival} after {ITERATIONS} is reached after {first}")


def _half(values: pd.Series) -> float:
    """Half the width of Student's interval of a mean."""
    count = len(values)
    return float(student.ppf(0.975, count - 1) * values.std(ddof=1) / np.sqrt(count)) if count > 1 else np.nan
