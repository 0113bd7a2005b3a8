"""The loop on a real server and worker: a new file becomes a decision on a prior, by events alone."""

from __future__ import annotations

import json

import pytest
from hyperbo_flows.service.intake import take_in
from hyperbo_flows.service.settings import read_service
from hyperbo_flows.service.sources import listing
from unattended import drop, running, serving, write_service

pytestmark = pytest.mark.slow


@pytest.mark.timeout(900)
def test_a_new_file_becomes_a_version_a_prior_and_a_decision(tmp_path, prefect_server):
    path = write_service(tmp_path)
    service = read_service(path)
    drop(tmp_path, "first.csv", 0, 30)
    assert take_in(service, (), listing(service.source.inbox)).published == ["trials/own:1.0.0"]
    with (
        serving(tmp_path, path, prefect_server) as (server, variables),
        running(variables, tmp_path / "log", "worker", "cpu"),
    ):
        drop(tmp_path, "second.csv", 30, 60)
        # Two schedules at the same moment: one run does the work, the other has none.
        both = [server.start("refresh/refresh") for _ in range(2)]
        current = tmp_path / "priors/own/h-nll/current.json"
        server.until(current.exists, "a prior in service")
        assert sorted(map(server.state, both)) == ["CANCELLED", "COMPLETED"]
        (decision,) = json.loads(current.read_text())["history"]
        assert decision["evidence"]["dataset"] == "trials/own:1.1.0"
        assert decision["action"] == "promoted"
        recorded = tmp_path / "data/bo_runs/trials_own/1.0.0/manifest.json"
        server.until(recorded.exists, "the runs of the evaluation")

        # Nothing new: it says so, starts nothing, and what was observed offline is no trial of the dataset.
        again = server.start("refresh/refresh")
        said = {"logs": {"flow_run_id": {"any_": [again]}}}
        server.until(
            lambda: any(
                "nothing new since 1.1.0" in line["message"] for line in server.ask("/logs/filter", said)
            ),
            "a refresh with nothing new",
        )
        flows = ("refresh", "pretrain", "evaluate", "promote", "feedback")
        assert [len(server.runs(flow)) for flow in flows] == [3, 1, 1, 1, 1]
    assert sorted(found.name for found in (tmp_path / "data/trials/own").glob("[0-9]*")) == ["1.0.0", "1.1.0"]
