"""Tuning with a published prior beside Optuna's samplers, BoTorch and random search: `make bench-tuning`.

    python -m benchmarks.tuning live --online FOLDER --out FOLDER
    python -m benchmarks.tuning tabular --taskset FOLDER --out FOLDER
    python -m benchmarks.tuning tables --out FOLDER
    python -m benchmarks.tuning speed

`live` tunes tasks of PD1 mini by real training, with the priors in a folder of `hyperbo online`; `tabular`
tunes the tables of TaskSet. All methods have the same objective, number of trials, seeds and space. Every
method has its own journal in the folder `--out`: an interrupted run continues, and methods can run one after
another or in several processes. `tables` prints the results on the tasks that all named methods have
finished. `speed` times single proposals on one core. Optuna's GP sampler and BoTorch need PyTorch; without
it, leave them out with `--methods`.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

# On a shared machine, more threads do not help.
for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

from hyperbo_flows.process.environment import prepare_jax  # noqa: E402

prepare_jax()

import numpy as np  # noqa: E402 - after the number of threads is set
from hyperbo_flows.process.progress import say  # noqa: E402

from benchmarks.recording import add_record_option, recorded  # noqa: E402
from benchmarks.tuning.objectives import (  # noqa: E402
    LIVE_TASKS,
    PRESET,
    LiveTask,
    TabularTask,
    pretrain_tables,
    tables_of,
)
from benchmarks.tuning.peers import METHODS, WITH_PRIOR, Peer, Point, Setting, Told, begin  # noqa: E402
from benchmarks.tuning.speed import print_speed  # noqa: E402
from benchmarks.tuning.tables import print_tables  # noqa: E402
from hyperbo.bayesopt.journal import Journal, OnlineTrial, RunName  # noqa: E402
from hyperbo.bayesopt.online import TunedTask  # noqa: E402
from hyperbo.priors.file import Prior  # noqa: E402
from hyperbo.storage.code_version import NUMERIC, code_version  # noqa: E402

TRIALS, SEEDS = 50, 5
_PACKAGES = {
    "TPE": ("optuna",),
    "GP": ("optuna", "torch"),
    "BoTorch": ("botorch", "torch"),
    "Rand": ("numpy",),
}


class TuningTask(TunedTask, Protocol):
    """A task with everything else that the comparison needs."""

    name: str
    worst: float

    def place(self, point: Point, told: Sequence[Told]) -> Point:
        """The point at which a proposal is tried, after the trials told."""
        ...

    def prior(self, method: str, seed: int) -> Prior:
        """A prior that has not seen the task."""
        ...


def run_method(
    method: str,
    names: Sequence[str],
    task_of: Callable[[str], TuningTask],
    seeds: Sequence[int],
    trials: int,
    journal: Journal,
) -> None:
    """Continue a method's runs, one task after another; the runs of a task proceed together.

    Args:
      method: name of the method.
      names: names of the tasks.
      task_of: makes a task; called only for tasks with missing trials.
      seeds: seeds of the runs.
      trials: number of trials of each run.
      journal: journal of the method.
    """
    for name in names:
        done: dict[int, list[Told]] = {seed: [] for seed in seeds}
        for trial in journal.trials:
            if trial.run.task == name and trial.run.seed in done:
                done[trial.run.seed].append(_told(trial))
        if min(len(told) for told in done.values()) >= trials:
            continue
        task, started = task_of(name), time.monotonic()
        peers: dict[int, Peer] = {}
        for seed in seeds:
            prior = task.prior(method, seed) if method in WITH_PRIOR else None
            peers[seed] = begin(method, Setting(name, seed, task.space, task.worst, prior), done[seed])
        for count in range(trials):
            due = {seed: peers[seed] for seed in seeds if len(done[seed]) == count}
            if due:
                new = _tried(method, task, due, done, count + 1)
                # Written to disk before a method is told.
                journal.append(new)
                for trial in new:
                    told = _told(trial)
                    peers[trial.run.seed].tell(told)
                    done[trial.run.seed].append(told)
        say(f"{method}, {name}: {trials} trials of {len(seeds)} runs, {time.monotonic() - started:.0f} s")


def _tried(
    method: str, task: TuningTask, peers: dict[int, Peer], done: dict[int, list[Told]], iteration: int
) -> list[OnlineTrial]:
    """One trial of each run."""
    points, seconds = [], []
    for seed, peer in peers.items():
        started = time.perf_counter()
        proposed = peer.ask()
        seconds.append(time.perf_counter() - started)
        points.append(task.place(proposed, done[seed]))
    names = [RunName(method, task.name, seed) for seed in peers]
    found = task.run_trials(np.stack(points), names, iteration)
    values = [float(value) if np.isfinite(value) else None for value in found.objective]
    return [
        OnlineTrial(name, iteration, tuple(point.tolist()), value, row | {"ask": asked})
        for name, point, value, row, asked in zip(names, points, values, found.rows, seconds, strict=True)
    ]


def _told(trial: OnlineTrial) -> Told:
    return Told(np.array(trial.point), np.nan if trial.objective is None else trial.objective)


def compare(
    options: argparse.Namespace, names: Sequence[str], task_of: Callable[[str], TuningTask], data: str
) -> None:
    """Run methods on tasks; their journals hold the trials."""
    for method in options.methods:
        packages = _PACKAGES.get(method, ("optuna",))
        identity = {
            "method": method,
            "data": data,
            "packages": {package: version(package) for package in packages},
            "code_version": code_version(*NUMERIC, "hyperbo_pipelines.collect")
            if method in WITH_PRIOR
            else "",
        }
        journal = Journal(options.out / method, identity)
        run_method(method, names, task_of, range(options.seeds), options.trials, journal)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tuning",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    live = commands.add_parser("live", help="tasks of PD1 mini, trained for real")
    live.add_argument(
        "--online", type=Path, required=True, help="folder of `hyperbo online`, with its priors"
    )
    live.add_argument("--tasks", nargs="+", default=list(LIVE_TASKS))
    tabular = commands.add_parser("tabular", help="tables of TaskSet")
    tabular.add_argument("--taskset", type=Path, required=True, help="folder of its files, *.jsonl.gz")
    tabular.add_argument("--priors", type=Path, help="folder of the priors; --out, where none is named")
    tabular.add_argument("--tasks", nargs="+", help="all, where none is named")
    tabular.add_argument("--repeats", action="store_true", help="a run may try a row again")
    tables = commands.add_parser("tables", help="what `live` or `tabular` left in a folder")
    tables.add_argument("--online", type=Path, help="as of `live`: also the re-trained priors' runs")
    for command in (live, tabular, tables):
        command.add_argument("--out", type=Path, required=True, help="folder of the journals")
        command.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
        command.add_argument("--seeds", type=int, default=SEEDS)
        command.add_argument("--trials", type=int, default=TRIALS)
    speed = commands.add_parser("speed", help="time and memory of a choice, on one core")
    speed.add_argument("--prior", default="pd1-mini/h-ekl", help="a folder or a name")
    speed.add_argument("--asks", type=int, default=20, help="choices that are timed")
    add_record_option(speed)
    options = parser.parse_args()
    if options.command == "speed":
        with recorded("Choosing a trial", options.record) as show:
            print_speed(options.prior, options.asks, show)
        return
    if options.command == "tables":
        records = options.online / "records.parquet" if options.online else None
        print_tables(options.out, options.methods, options.seeds, options.trials, records)
        return
    needs_torch = {"GP", "BoTorch"} & set(options.methods)
    if needs_torch and importlib.util.find_spec("botorch") is None:
        parser.error(f"{' and '.join(sorted(needs_torch))}: install torch and botorch, or leave them out")
    if options.command == "live":
        # With another number of trials trained at once, their results may differ in the last bit.
        data = f"preset {PRESET}, {options.seeds} at once"
        compare(options, options.tasks, lambda name: LiveTask(name, options.seeds, options.online), data)
        return
    data = tables_of(options.taskset, options.out / "data")
    if set(WITH_PRIOR) & set(options.methods):
        pretrain_tables(data, options.priors or options.out, range(options.seeds))
    identity = f"{data.provenance.manifest_hash}, {'rows again' if options.repeats else 'each row once'}"
    compare(
        options,
        options.tasks or [task.name for task in data.tasks],
        lambda name: TabularTask(data, name, options.priors or options.out, options.repeats),
        identity,
    )


if __name__ == "__main__":
    main()
