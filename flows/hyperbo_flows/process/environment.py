"""The environment of a process: variables that must be set before JAX and Prefect start, and what ran where.

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

from hyperbo_flows.process.interrupts import follow

_DEVICE_COUNT = "--xla_force_host_platform_device_count"


def prepare_process() -> None:
    """Set what must be set before JAX is imported, and keep Beam and TFDS quiet."""
    prepare_jax()
    quiet_tfds()


def prepare_jax() -> None:
    """Spread batches over the cores, and keep compiled programs. Call before JAX is imported.

    XLA's flag makes every core a device; `hyperbo.compute.parallel` splits a batch over the devices. The flag
    changes nothing where there is an accelerator. OpenBLAS gets one thread, since more would compete with the
    devices for the cores.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    flags = os.environ.get("XLA_FLAGS", "")
    if _DEVICE_COUNT not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_DEVICE_COUNT}={available_cores()}".strip()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(cache) / "hyperbo" / "jax"))


def prepare_prefect(home: Path) -> None:
    """Set Prefect up: quiet, with an embedded server unless another is named. Call before its import.

    Args:
      home: where Prefect keeps its database.
    """
    if "PREFECT_HOME" not in os.environ:
        home.mkdir(parents=True, exist_ok=True)  # the server does not make the folders above it
        os.environ["PREFECT_HOME"] = str(home.absolute())
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    if "PREFECT_API_URL" not in os.environ:
        os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_ENABLED", "true")
        # The default of 20 seconds is too short on a busy machine.
        os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "180")
        # An interrupt may have ended the server already.
        os.environ.setdefault("PREFECT_LOGGING_TO_API_ENABLED", "false")
    # A flow prints its own lines for people, and raises what goes wrong.
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "WARNING")
    for runs in ("FLOW_RUNS", "TASK_RUNS"):
        os.environ.setdefault(f"PREFECT_LOGGING_LOGGERS_PREFECT_{runs}_LEVEL", "CRITICAL")


def quiet_tfds() -> None:
    """Drop TFDS's warning about configurations that users name: they cannot act on it."""
    beginning = "Using custom data configuration"
    logging.getLogger("absl").addFilter(lambda record: not str(record.msg).startswith(beginning))


def start_prefect_server() -> None:
    """Start the embedded server, unless the user has another. The server does not receive Ctrl-C.

    A terminal interrupts all of its processes. If the server were interrupted too, Prefect would try for
    minutes to tell it about the interrupt. The server ends with this process. Where the server ends first,
    this process ends too.
    """
    from prefect.server.api.server import SubprocessASGIServer
    from prefect.settings import PREFECT_API_URL

    if PREFECT_API_URL.value() is not None:
        return
    # A process inherits the blocked signals of the process that starts it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    server = SubprocessASGIServer()
    # Python starts the server as a module, and must not take the user's files for modules of its own.
    as_given = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        server.start()
    finally:
        if as_given is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = as_given
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    follow(server)


def run_facts(started: float, *, shares: int = 1) -> dict[str, Any]:
    """What the ledger keeps of a run that ends now: times, seconds and platform.

    Args:
      started: `time.time()` at the start of the batch that the run belongs to.
      shares: number of runs in the batch, which share its seconds equally.
    """
    import jax

    finished, devices = time.time(), jax.devices()
    return {
        "started": _iso(started),
        "finished": _iso(finished),
        "seconds": (finished - started) / shares,
        "platform": {
            "Python": platform.python_version(),
            "JAX": jax.__version__,
            "device": f"{len(devices)} x {devices[0].device_kind}",
            "processor": f"{platform.machine()}, {available_cores()} cores",
        },
    }


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def available_cores() -> int:
    """How many cores this process may use: in a container perhaps fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
