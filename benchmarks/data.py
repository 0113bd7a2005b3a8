"""Building and loading dataset versions: time beside pandas, time per row, memory (`make bench-data`).

Every measured step is a process of its own, so that its peak memory can be read.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
from rich.table import Table
from synthetic_hpob import SPLITS, write_hpob

from benchmarks.recording import add_record_option, recorded

TASKS = 24
POINTS = 100
_ROWS_OF_DATASET = 3_333
PD1_RAW = "pd1_matched_phase1_results.jsonl"


class Measured(NamedTuple):
    """Wall-clock seconds, and the peak memory in MB of the process or its largest child."""

    seconds: float
    memory: float


def write_pd1(folder: Path, rows: int) -> None:
    """Write trials in the layout of the PD1 release, with all eleven curves of 100 points each."""
    from hyperbo_pipelines.pd1.layout import CURVES

    folder.mkdir(parents=True)
    outcome = np.random.default_rng(0)
    inputs = np.random.default_rng(1).uniform(size=(-(-rows // TASKS), 4))
    with (folder / PD1_RAW).open("wb") as file:
        for number in range(rows):
            u = inputs[number // TASKS]
            curves = outcome.uniform(size=(len(CURVES), POINTS))
            row = {
                "trial_dir": f"study/{number:06d}",
                "study_group": f"digits_mlp,digits,mlp,mlp,{1 + number % TASKS}",
                "status": "done",
                "hps.lr_hparams.initial_value": float(10 ** (-5 + 6 * u[0])),
                "hps.lr_hparams.power": float(0.1 + 1.9 * u[1]),
                "hps.opt_hparams.momentum": float(1 - 10 ** (-3 * u[2])),
                "hps.lr_hparams.decay_steps_factor": float(0.01 + 0.98 * u[3]),
                "best_valid/error_rate": float(curves[-1].min()),
                **dict(zip(CURVES, curves, strict=True)),
            }
            file.write(orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n")


def step_pandas(raw: str, out: str) -> None:
    """The same by hand: read the JSON lines, write one Parquet file."""
    import pandas as pd

    pd.read_json(Path(raw) / PD1_RAW, lines=True).to_parquet(out)


def step_build(dataset: str, raw: str, data_dir: str, workers: str) -> None:
    """Build a version."""
    from hyperbo_pipelines.run.execution import Execution

    from pd1_builder import build

    count = int(workers)
    execution = Execution("multi_processing", count) if count > 1 else Execution()
    build(dataset, "1.0.0", raw=Path(raw), data_dir=Path(data_dir), execution=execution)


def step_load(dataset: str, data_dir: str) -> None:
    """Load a version into arrays, and print the seconds without imports."""
    from pd1_builder import load

    started = time.perf_counter()
    data = load(f"{dataset}:1.0.0", data_dir=Path(data_dir))
    json.dump(
        {"rows": sum(len(task.y) for task in data.tasks), "seconds": time.perf_counter() - started},
        sys.stdout,
    )


STEPS: dict[str, Callable[..., None]] = {"pandas": step_pandas, "build": step_build, "load": step_load}


def measure(step: str, *arguments: object) -> tuple[Measured, str]:
    """Run a step in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.data", "--step", step, *map(str, arguments)]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if status:
        raise SystemExit(f"{step} failed")
    return Measured(seconds, usage.ru_maxrss / 1e3), printed


def medians(repeats: int, once: Callable[[], Measured]) -> Measured:
    """The median of each number over some runs."""
    runs = [once() for _ in range(repeats)]
    return Measured(*(statistics.median(column) for column in zip(*runs, strict=True)))


def bench_pd1(work: Path, rows: int, repeats: int) -> Table:
    """A version of PD1's size beside pandas, and one of twice that size."""
    table = Table("trials", "raw MB", "by", "s", "to pandas", "peak MB of a process", title="PD1 in size")
    for count in (rows, 2 * rows):
        raw = work / f"pd1-{count}"
        write_pd1(raw, count)
        size = f"{(raw / PD1_RAW).stat().st_size / 1e6:.0f}"
        pandas = medians(repeats, lambda raw=raw: measure("pandas", raw, work / "pandas.parquet")[0])
        table.add_row(str(count), size, "pandas", f"{pandas.seconds:.1f}", "1", f"{pandas.memory:.0f}")
        for workers in (1, 2):
            data_dir = work / "data"

            def build(raw: Path = raw, data_dir: Path = data_dir, workers: int = workers) -> Measured:
                shutil.rmtree(data_dir, ignore_errors=True)
                return measure("build", "pd1/release", raw, data_dir, workers)[0]

            built = medians(repeats, build)
            ratio = f"{built.seconds / pandas.seconds:.2f}"
            name = "build, in memory" if workers == 1 else f"build, {workers} processes"
            table.add_row("", "", name, f"{built.seconds:.1f}", ratio, f"{built.memory:.0f}")
        shutil.rmtree(raw)
    return table


def bench_hpob(work: Path, sizes: tuple[int, ...], repeats: int) -> Table:
    """HPO-B in its own layout at several sizes, and the largest of them loaded."""
    table = Table("rows", "step", "s", "microseconds a row", "peak MB", title="HPO-B in size")
    for rows in sizes:
        raw, data_dir = work / f"hpob-{rows}", work / "data"
        datasets = rows // (len(SPLITS) * _ROWS_OF_DATASET)
        write_hpob(raw, _ROWS_OF_DATASET, datasets, {"5636": 6})

        def build(raw: Path = raw, data_dir: Path = data_dir) -> Measured:
            shutil.rmtree(data_dir, ignore_errors=True)
            return measure("build", "hpob/5636", raw, data_dir, 1)[0]

        built = medians(repeats, build)
        per_row = f"{built.seconds / rows * 1e6:.1f}"
        table.add_row(str(rows), "build", f"{built.seconds:.1f}", per_row, f"{built.memory:.0f}")
        loads = [measure("load", "hpob/5636", data_dir) for _ in range(repeats)]
        seconds = statistics.median(json.loads(printed)["seconds"] for _, printed in loads)
        memory = statistics.median(measured.memory for measured, _ in loads)
        table.add_row("", "load to arrays", f"{seconds:.2f}", f"{seconds / rows * 1e6:.2f}", f"{memory:.0f}")
        shutil.rmtree(raw)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--trials", type=int, default=50_000, help="of the version like PD1; doubled too")
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[100_000, 1_000_000], help="of those like HPO-B"
    )
    parser.add_argument("--repeats", type=int, default=3, help="medians are over so many runs")
    add_record_option(parser)
    options = parser.parse_args()
    if options.step:
        name, *arguments = options.step
        STEPS[name](*arguments)
        return
    with (
        recorded("Building and loading versions", options.record) as show,
        tempfile.TemporaryDirectory() as folder,
    ):
        show(bench_pd1(Path(folder), options.trials, options.repeats))
        show(bench_hpob(Path(folder), tuple(options.rows), options.repeats))


if __name__ == "__main__":
    main()
