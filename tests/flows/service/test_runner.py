"""Evaluations spread over arms and folds: threads and a Dask cluster give the same records."""

from __future__ import annotations

import pickle

import pandas as pd
import pytest
from hyperbo_flows.experiments import ledger
from hyperbo_flows.experiments.evaluate import simulate
from hyperbo_flows.experiments.evaluation_folder import RECORDS_NAME
from hyperbo_flows.experiments.plan import make_plan
from hyperbo_flows.experiments.pretrain import pretrain
from hyperbo_flows.service.intake import take_in
from hyperbo_flows.service.runner import Compute, spread
from hyperbo_flows.service.settings import read_service
from hyperbo_flows.service.sources import listing
from unattended import drop, write_service

from hyperbo.errors import InvalidInputError


def records(folder, compute):
    service = read_service(write_service(folder))
    drop(folder, "a.csv", 0, 30)
    take_in(service, (), listing(service.source.inbox))
    plan = make_plan(service.experiment("1.0.0"))
    # A plan travels without its data, and is made once for all parts that come to a process.
    sent = pickle.dumps(plan)
    assert len(sent) < 2000
    assert pickle.loads(sent) is pickle.loads(sent)
    assert pretrain(plan) == {}
    assert simulate(plan, {}, spread("simulate", "here", compute)) == {}
    return pd.concat(
        pd.read_parquet(ledger.run_folder(plan.experiment.runs, identity) / RECORDS_NAME)
        for arm in plan.arms.values()
        for identity in arm.simulations.values()
    ).reset_index(drop=True)


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server")
def test_threads_and_dask_give_the_same_records(tmp_path, monkeypatch):
    # Workers of a cluster find the code where the deployment has it.
    monkeypatch.setenv("PYTHONPATH", ".")
    threads = records(tmp_path / "threads", Compute("threads", workers=2))
    dask = records(tmp_path / "dask", Compute("dask", workers=1))
    pd.testing.assert_frame_equal(threads, dask)
    assert set(threads["method"]) == {"H-NLL", "Rand"}


def test_settings_that_cannot_be():
    with pytest.raises(InvalidInputError, match="workers = 0"):
        Compute(workers=0)
    with pytest.raises(InvalidInputError, match='write runner = "dask"'):
        Compute(address="tcp://scheduler:8786")
