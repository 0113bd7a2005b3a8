"""Every step of the chain is killed on a real worker, and started again: it goes on, and nothing is twice."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from unattended import drop, running, serving, write_service

pytestmark = pytest.mark.slow


def processes_of(run):
    """Processes that execute a flow run: the worker starts one, which starts another."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # It has ended meanwhile, or is another user's.
            variables = (folder / "environ").read_bytes().split(b"\0")
            if f"PREFECT__FLOW_RUN_ID={run}".encode() in variables:
                found.append(int(folder.name))
    return found


def kill(server, flow, sign, worker=None):
    """Kill the run of a flow that is going, with its worker where given, once there is a sign of its work."""
    run = server.until(
        lambda: next((each["id"] for each in server.runs(flow) if processes_of(each["id"])), None),
        f"a process of {flow}",
    )
    end = time.monotonic() + 240
    while not sign():  # Some are there for a moment only.
        assert time.monotonic() < end, f"{flow} left no sign"
        time.sleep(0.005)
    processes = processes_of(run)
    if worker is not None:
        os.killpg(worker.pid, signal.SIGKILL)
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    if worker is None:
        server.until(lambda: server.state(run) == "CRASHED", f"the worker to see that {flow} was killed")
    return run


def steps_at_the_start(server, run):
    """How many steps of a pre-training were done when a flow run began with it, as its first line says."""
    lines = server.ask("/logs/filter", {"logs": {"flow_run_id": {"any_": [run]}}, "sort": "TIMESTAMP_ASC"})
    told = (re.match(r"pretrain H-NLL: (\d+) of 600 steps", line["message"]) for line in lines)
    return next(int(found[1]) for found in told if found)


@pytest.mark.timeout(900)
def test_every_step_goes_on_where_it_was_killed(tmp_path, prefect_server):
    service = write_service(tmp_path, steps=600)
    here = {"service": str(service), "version": "1.0.0"}
    runs, log = tmp_path / "runs", tmp_path / "log"
    with (
        serving(tmp_path, service, prefect_server) as (server, variables),
        running(variables, log, "worker", "cpu") as worker,
        contextlib.ExitStack() as later,
    ):
        drop(tmp_path, "first.csv", 0, 40)
        server.start("refresh/refresh")
        kill(server, "refresh", lambda: any((tmp_path / "data").glob("trials/own/.building-*/*")))
        assert not (tmp_path / "data/trials/own/1.0.0").exists()

        server.start("refresh/refresh")
        kill(
            server,
            "pretrain",
            lambda: any(each.name.isdigit() for each in runs.glob("checkpoints/*/calls/*")),
        )
        assert not any(runs.glob("prior/[0-9a-f]*"))

        resumed = server.start("pretrain/pretrain", **here)
        lost = kill(server, "evaluate", lambda: any(runs.glob("simulation/[0-9a-f]*")), worker)
        assert steps_at_the_start(server, resumed) > 0
        kept = {path: path.stat().st_mtime_ns for path in runs.glob("*/[0-9a-f]*/facts.json")}
        assert not any(runs.glob("evaluation/[0-9a-f]*"))

        # Nobody saw the worker die: the run keeps its place, until someone says that it is dead.
        later.enter_context(running(variables, log, "worker", "cpu"))
        in_vain = server.start("evaluate/evaluate", **here)
        server.until(lambda: server.state(in_vain) == "CANCELLED", "the second run to be cancelled")
        assert server.state(lost) == "RUNNING"
        server.ask(f"/flow_runs/{lost}/set_state", {"state": {"type": "CRASHED"}})

        server.start("evaluate/evaluate", **here)
        kill(server, "promote", lambda: True)
        evaluations = list(runs.glob("evaluation/[0-9a-f]*"))
        assert len(evaluations) == 1

        server.start("promote/promote", **here, evaluation=str(evaluations[0]))
        current = tmp_path / "priors/own/h-nll/current.json"
        server.until(current.exists, "the decision")
        recorded = tmp_path / "data/bo_runs/trials_own/1.0.0/manifest.json"
        server.until(recorded.exists, "the recorded runs")
        idle = server.start("refresh/refresh")
        server.until(lambda: server.state(idle) == "COMPLETED", "the last refresh")

    # Nothing was published or decided twice, and what was finished before a kill was not done again.
    assert [path.name for path in (tmp_path / "data/trials/own").glob("[0-9]*")] == ["1.0.0"]
    assert [path.name for path in (tmp_path / "data/bo_runs/trials_own").glob("[0-9]*")] == ["1.0.0"]
    assert [each["action"] for each in json.loads(current.read_text())["history"]] == ["promoted"]
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert len(list(runs.glob("prior/[0-9a-f]*"))) == 7
    assert len(list(runs.glob("simulation/[0-9a-f]*"))) == 12
    assert not any((tmp_path / "data").glob("trials/own/.building-*"))
    assert not any(runs.glob("checkpoints/*/calls/*"))
