"""Every step of the chain is killed on a real worker, and started again: it goes on, and nothing is twice."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path

import pytest
from unattended import drop, running, serving, write_service


def processes_of(run):
    """Processes that execute a flow run: the worker starts one, which starts another."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # It has ended meanwhile, or is another user's.
            variables = (folder / "environ").read_bytes().split(b"\0")
            if f"PREFECT__FLOW_RUN_ID={run}".encode() in variables:
                found.append(int(folder.name))
    return found


def kill(server, flow, sign):
    """Kill the run of a flow that is going, once the sign of its work is there."""
    run = server.until(
        lambda: next((each["id"] for each in server.runs(flow) if processes_of(each["id"])), None),
        f"a process of {flow}",
    )
    end = time.monotonic() + 240
    while not sign():  # Some are there for a moment only.
        assert time.monotonic() < end, f"{flow} left no sign"
        time.sleep(0.005)
    for process in processes_of(run):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    server.until(lambda: server.state(run) == "CRASHED", f"the worker to see that {flow} was killed")


@pytest.mark.timeout(900)
def test_every_step_goes_on_where_it_was_killed(tmp_path):
    service = write_service(tmp_path, steps=3000)
    here = {"service": str(service), "version": "1.0.0"}
    runs = tmp_path / "runs"
    with (
        serving(tmp_path, service) as (server, variables),
        running(variables, tmp_path / "log", "worker", "cpu"),
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

        server.start("pretrain/pretrain", **here)
        kill(server, "evaluate", lambda: any(runs.glob("simulation/[0-9a-f]*")))
        kept = {path: path.stat().st_mtime_ns for path in runs.glob("*/[0-9a-f]*/facts.json")}
        assert not any(runs.glob("evaluation/[0-9a-f]*"))

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
