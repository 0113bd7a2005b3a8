"""A service with real trials, and a Prefect server with a worker as operators start them: for tests only."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ENTRYPOINT = ROOT / "docker/entrypoint"
RAW = ROOT / "pd1_builder/pd1/raw/mini-1.0.0"
TASKS = ("digits-max_pool_relu-60", "breast_cancer-mlp-40", "diabetes-mlp-60")
COLUMNS = {
    "learning_rate": "hps.lr_hparams.initial_value",
    "power": "hps.lr_hparams.power",
    "momentum": "hps.opt_hparams.momentum",
    "decay_steps_factor": "hps.lr_hparams.decay_steps_factor",
}
SPACE = """
objective = "error"
direction = "minimize"
warping = "negative_log"
task = { column = "task" }
task_dataset = { column = "dataset" }
trial_id = { column = "trial" }
status = { column = "status" }
parameters = [
  { name = "learning_rate", lower = 1e-5, upper = 10.0, scaling = "log" },
  { name = "power", lower = 0.1, upper = 2.0 },
  { name = "momentum", lower = 0.0, upper = 0.999, scaling = "log1m" },
  { name = "decay_steps_factor", lower = 0.01, upper = 0.99 },
]
"""
ARCHIVE = """
[service]
dataset = "pd1/release_without_curves"
[source]
archive = "raw"
inbox = "inbox"
[checks]
largest_duplicate_share = 1.0
[promotion]
line = "pd1/h-nll"
[experiment]
seeds = 1
iterations = 3
[arms.H-NLL]
method = "H-NLL"
"""
SERVICE = """
[service]
dataset = "trials/own"

[source]
inbox = "inbox"
space = "space.toml"

[promotion]
line = "own/h-nll"

[experiment]
seeds = 2
iterations = 5

[arms.H-NLL]
method = "H-NLL"
architecture = {{ hidden = [4] }}
training = {{ steps = {steps}, steps_per_call = {per_call}, points_per_task = 20 }}

[arms.Rand]
method = "Rand"
"""


def write_service(folder: Path, steps: int = 40, per_call: int = 20) -> Path:
    """A service file with its space file and an empty inbox."""
    (folder / "inbox").mkdir(parents=True)
    (folder / "space.toml").write_text(SPACE)
    path = folder / "service.toml"
    path.write_text(SERVICE.format(steps=steps, per_call=per_call))
    return path


def drop(folder: Path, name: str, first: int, last: int, scale: float = 1.0) -> None:
    """Put real trials of PD1 mini into the inbox, so many of every task, as a file that appears complete."""
    path = folder / f".{name}"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["task", "dataset", "trial", *COLUMNS, "error", "status"])
        for task, rows in _rows().items():
            for row in rows[first:last]:
                error = row.get("best_valid/error_rate")
                writer.writerow(
                    [
                        task,
                        task.partition("-")[0],
                        row["trial_dir"],
                        *(repr(row[column]) for column in COLUMNS.values()),
                        "" if error is None else repr(error * scale),
                        row["status"],
                    ]
                )
    path.rename(folder / "inbox" / name)


def _rows() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {task: [] for task in TASKS}
    with gzip.open(RAW / "pd1_matched_phase1_results.jsonl.gz") as stream:
        for line in stream:
            row = json.loads(line)
            _, dataset, _, variant, batch = row["study_group"].split(",")
            if (task := f"{dataset}-{variant}-{batch}") in found:
                found[task].append(row)
    return found


def environment(home: Path, service: Path) -> dict[str, str]:
    """Variables of an operator's shell: this environment's commands, this checkout's code."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "HYPERBO_"))
    }
    return kept | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "HYPERBO_SERVICE": str(service),
        "HYPERBO_HOME": str(ROOT),
        "HYPERBO_ACCELERATOR_POOL": "cpu",
        # Every flow run is a process of its own: what one compiled, however small, the next need not.
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "PREFECT_WORKER_QUERY_SECONDS": "3",
        # A test that is slow would meet the clock; schedules start nothing, tests do.
        "PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false",
    }


@contextlib.contextmanager
def running(variables: dict[str, str], log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A part that the entry point starts, with all that it starts itself; gone at the end."""
    with log.open("ab") as output:
        part = subprocess.Popen(
            [ENTRYPOINT, *arguments],
            env=variables,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield part
        finally:
            part.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                part.wait(timeout=30)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(part.pid, signal.SIGKILL)
            part.wait()


class Server:
    """A Prefect server's API.

    Args:
      url: of the API.
      log: what the server and its workers say.
    """

    def __init__(self, url: str, log: Path) -> None:
        self.url, self.log = url, log

    def ask(self, path: str, content: Any = None) -> Any:
        """Ask the API; with content by POST. One whose database was busy did nothing: it is asked again."""
        sent = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(f"{self.url}{path}", sent, {"Content-Type": "application/json"})
        for attempts_left in reversed(range(10)):
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code != HTTPStatus.SERVICE_UNAVAILABLE or not attempts_left:
                        raise
                time.sleep(0.5)
        raise AssertionError("the last attempt answers or raises")

    def start(self, deployment: str, **parameters: Any) -> str:
        """Start a run of a deployment, named `<flow>/<deployment>`, and return its id."""
        found = self.ask(f"/deployments/name/{deployment}")
        return self.ask(f"/deployments/{found['id']}/create_flow_run", {"parameters": parameters})["id"]

    def state(self, run: str) -> str:
        """Type of the state of a flow run, such as `COMPLETED`."""
        return self.ask(f"/flow_runs/{run}")["state_type"]

    def runs(self, flow: str) -> list[dict[str, Any]]:
        """The runs of a flow, oldest first, those that only wait for their time left out."""
        found = self.ask("/flow_runs/filter", {"flows": {"name": {"any_": [flow]}}, "sort": "START_TIME_ASC"})
        return [run for run in found if run["state_type"] != "SCHEDULED"]

    def until(self, true: Callable[[], Any], what: str, seconds: float = 240) -> Any:
        """Wait until something is true; what it returned.

        Raises:
          AssertionError: it was not in time; tells the states of all runs and the end of the log.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                if answer := true():
                    return answer
            time.sleep(0.3)
        states = [
            f"{run['name']}: {run['state']['name']}: {run['state'].get('message')}"
            for run in self.ask("/flow_runs/filter", {"sort": "START_TIME_ASC"})
            if run["state_type"] != "SCHEDULED"
        ]
        tail = self.log.read_text(errors="replace")[-4000:]
        raise AssertionError(f"{what}: not within {seconds} s; runs: {'; '.join(states)}; log: {tail}")


@contextlib.contextmanager
def serving(folder: Path, service: Path, database: Path) -> Iterator[tuple[Server, dict[str, str]]]:
    """A server on a free port, and all deployments of prefect.yaml on it.

    Args:
      folder: where its files and its log go.
      service: the service file of the deployments.
      database: one of Prefect's that is migrated and empty (`prefect_server`); the server starts on a copy.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
    variables = environment(folder / "prefect", service) | {
        "PREFECT_SERVER_API_HOST": "127.0.0.1",
        "PREFECT_SERVER_API_PORT": port,
    }
    home = Path(variables["PREFECT_HOME"])
    home.mkdir()
    shutil.copy(database, home)
    log = folder / "log"
    with running(variables, log, "server"):
        server = Server(f"http://127.0.0.1:{port}/api", log)
        server.until(lambda: server.ask("/health"), "the server", 120)
        variables |= {"PREFECT_API_URL": server.url}
        deployed = subprocess.run(
            [ENTRYPOINT, "deploy"], env=variables, capture_output=True, text=True, timeout=180
        )
        assert deployed.returncode == 0, deployed.stdout + deployed.stderr
        yield server, variables
