"""The surroundings of a process: variables that must stand before JAX and Prefect start, and what ran where.

A variable that the user has set stays as it is.
"""

from __future__ import annotations

import logging
import os
import platform
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flows.interrupts import follow

_DEVICE_COUNT = "--xla_force_host_platform_device_count"


def prepare_jax() -> None:
    """Spread batches over the cores, keep compiled programs. Call before JAX is imported.

    XLA's flag makes one device of every core, which `hyperbo.parallel` splits a batch over; it is about the
    host platform alone and changes nothing where there is an accelerator. OpenBLAS threads of its own would
    fight with them for the cores.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    flags = os.environ.get("XLA_FLAGS", "")
    if _DEVICE_COUNT not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_DEVICE_COUNT}={_available_cores()}".strip()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(cache) / "hyperbo" / "jax"))


def prepare_prefect(home: Path) -> None:
    """An embedded Prefect server, quiet, that calls nobody. Call before Prefect is imported.

    Args:
      home: where Prefect keeps its database.
    """
    if "PREFECT_HOME" not in os.environ:
        home.mkdir(parents=True, exist_ok=True)  # the server makes the folder, but none above it
        os.environ["PREFECT_HOME"] = str(home.absolute())
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    if "PREFECT_API_URL" not in os.environ:
        os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_ENABLED", "true")
        # The default of 20 seconds is too short on a machine that is busy.
        os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "180")
        # Nothing is told to a server that an interrupt has ended already.
        os.environ.setdefault("PREFECT_LOGGING_TO_API_ENABLED", "false")
    # A flow prints its own lines, for people; what goes wrong in it is raised, and told by who called it.
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "WARNING")
    for runs in ("FLOW_RUNS", "TASK_RUNS"):
        os.environ.setdefault(f"PREFECT_LOGGING_LOGGERS_PREFECT_{runs}_LEVEL", "CRITICAL")


def quiet_beam() -> None:
    """Drop what Beam and TFDS warn of though nobody can do anything about it.

    Beam misses a client of a cloud that is not used here; TFDS finds it odd that users name configurations.
    """
    for name, beginning in (
        ("", "apitools not found"),
        ("absl", "Using custom data configuration"),
    ):
        logging.getLogger(name).addFilter(
            lambda record, beginning=beginning: not record.getMessage().startswith(beginning)
        )


def start_prefect_server() -> None:
    """Start the embedded server, unless the user has another, such that it does not hear Ctrl-C.

    A terminal interrupts every process in it. Without its server, Prefect would spend minutes on attempts to
    tell it of the interrupt. The server ends with this process, which a request to terminate suffices for;
    where such a request reached both, or the server ended otherwise, this process follows it.
    """
    from prefect.server.api.server import SubprocessASGIServer
    from prefect.settings import PREFECT_API_URL

    if PREFECT_API_URL.value() is not None:
        return
    # A process starts with the signals blocked that were blocked where it was started.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    server = SubprocessASGIServer()
    try:
        server.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    follow(server)


def describe_platform() -> dict[str, str]:
    """Python, JAX, device and processor of this process."""
    import jax

    devices = jax.devices()
    return {
        "Python": platform.python_version(),
        "JAX": jax.__version__,
        "device": f"{len(devices)} x {devices[0].device_kind}",
        "processor": f"{platform.machine()}, {_available_cores()} cores",
    }


def run_facts(started: float, *, shares: int = 1) -> dict[str, Any]:
    """What the ledger keeps of a run that ends now, as one of several equal parts of a batch.

    Args:
      started: `time.time()` at the start of the batch.
      shares: number of runs that were the batch.
    """
    finished = time.time()
    return {
        "started": _iso(started),
        "finished": _iso(finished),
        "seconds": (finished - started) / shares,
        "platform": describe_platform(),
    }


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _available_cores() -> int:
    # The cores this process may use, where the system can tell: a container may have fewer than the machine.
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
