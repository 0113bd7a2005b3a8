"""Time and memory of a proposal, on one core, beside Optuna's samplers and BoTorch.

Each measurement is a process of its own, bound to one core. It makes some proposals before it is timed, so
that everything is compiled. On a shared machine, processor time tells more than the clock, which includes
other programs and the disk. Resident memory is read from /proc.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from benchmarks.recording import Show
from benchmarks.tuning.peers import Peer, Setting, Told, TunerPeer, begin
from hyperbo.bayesopt.history import History
from hyperbo.priors.file import Prior
from hyperbo.priors.names import load_prior
from hyperbo.tuning.proposals import propose
from hyperbo.tuning.region import Region

WARM_UP, MEMORY_ASKS, MEMORY_FIRST = 3, 200, 40
_ENGINE, _MEMORY, _SQLITE = "hyperbo.tuning.propose", "Tuner, in memory", "Tuner, SQLite"
_OWN = (_ENGINE, _MEMORY, _SQLITE)
_PEERS = {"Optuna TPESampler": "TPE", "Optuna GPSampler": "GP", "BoTorch": "BoTorch"}


class Seconds(NamedTuple):
    """Time of one proposal."""

    clock: float
    processor: float


def print_speed(prior: str, asks: int, show: Show) -> None:
    """Measure everything, and show it.

    Args:
      prior: a folder or a name.
      asks: choices that are timed, at least 2.
      show: takes texts and tables.
    """
    # Processes started later inherit the binding.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    show(f"One core; prior {prior}, medians of {asks} choices after {WARM_UP}")
    table = Table(
        "what",
        "observations",
        "ms",
        "20 %",
        "80 %",
        "processor, ms",
        "to the Tuner in memory",
        title="Time of a choice",
    )
    measured = {(name, count): _measured(name, prior, count, asks) for count in (100, 1_000) for name in _OWN}
    measured |= {(name, 100): _measured(name, prior, 100, asks) for name in _PEERS}
    for (name, count), found in measured.items():
        if found is None:
            table.add_row(name, str(count), "PyTorch is not installed", "", "", "", "")
            continue
        own = measured[_MEMORY, count]
        assert own is not None
        levels = *np.percentile(found["clock"], (50, 20, 80)), statistics.median(found["processor"])
        ratio = levels[-1] / statistics.median(own["processor"])
        table.add_row(name, str(count), *(f"{1e3 * level:.1f}" for level in levels), f"{ratio:.2f}")
    show(table)
    memory = Table("what", "before, MB", "after, MB", title=f"Resident memory, {MEMORY_ASKS} choices")
    for name in (*_OWN, "Optuna TPESampler"):
        found = _measured(name, prior, MEMORY_FIRST, MEMORY_ASKS)
        if found is not None:
            memory.add_row(name, *(f"{found[when] / 2**20:.1f}" for when in ("before", "after")))
    show(memory)


def _measured(name: str, prior: str, count: int, asks: int) -> dict[str, Any] | None:
    """One measurement, in a process of its own."""
    if name in ("Optuna GPSampler", "BoTorch") and importlib.util.find_spec("botorch") is None:
        return None
    command = [sys.executable, "-m", "benchmarks.tuning.speed", name, prior, str(count), str(asks)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(name: str, prior: Prior, count: int, asks: int) -> dict[str, Any]:
    """Seconds of each proposal, by clock and processor, and resident memory before and after all."""
    choose = _engine(prior, count) if name == _ENGINE else _peer(name, prior, count)
    for _ in range(WARM_UP):
        choose()
    # Compiles the program for the largest number of observations too.
    _engine(prior, count + WARM_UP + asks)()
    before = _resident()
    seconds = [choose() for _ in range(asks)]
    clock, processor = zip(*seconds, strict=True)
    return {"clock": clock, "processor": processor, "before": before, "after": _resident()}


def _engine(prior: Prior, count: int) -> Callable[[], Seconds]:
    """Proposals after the same observations, each with new random numbers."""
    random = np.random.default_rng(0)
    space = prior.description.search_space
    x = random.uniform(size=(count, space.dimension))
    y = -np.log([_error(point) for point in x])
    history, region = History(x, y, np.zeros((0, space.dimension))), Region.of(space, {})

    def choose() -> Seconds:
        return _timed(lambda: propose(prior.gp, region, history, random, prior_weight=1.0))[1]

    return choose


def _peer(name: str, prior: Prior, count: int) -> Callable[[], Seconds]:
    """Asking and telling; only asking is timed, and each proposal has one more observation."""
    random = np.random.default_rng(0)
    space = prior.description.search_space
    setting = Setting("speed", 0, space, 1.0, prior)
    x = random.uniform(size=(count, space.dimension))
    told = [Told(point, _error(unit)) for point, unit in zip(space.from_unit(x), x, strict=True)]
    peer: Peer
    if name in _PEERS:
        peer = begin(_PEERS[name], setting, told)
    else:
        folder = Path(tempfile.mkdtemp())
        peer = TunerPeer(setting, told, storage=f"sqlite:///{folder}/runs.db" if name == _SQLITE else None)

    def choose() -> Seconds:
        point, seconds = _timed(peer.ask)
        peer.tell(Told(point, _error(space.to_unit(point[None])[0])))
        return seconds

    return choose


def _timed(function: Callable[[], np.ndarray]) -> tuple[np.ndarray, Seconds]:
    clock, processor = time.perf_counter(), time.process_time()
    result = function()
    return result, Seconds(time.perf_counter() - clock, time.process_time() - processor)


def _error(x: np.ndarray) -> float:
    """A smooth error rate of a point of the unit cube."""
    return float(0.1 + 0.3 * np.mean((x - 0.4) ** 2) + 0.02 * np.sin(20.0 * x).mean())


def _resident() -> int:
    """Bytes of memory that the process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], load_prior(sys.argv[2]), *map(int, sys.argv[3:]))))
