"""Evaluations mapped over methods and folds: threads and a Dask cluster give the same records."""

from __future__ import annotations

import pandas as pd
import pytest
from unattended import drop, write_service

from flows import ledger
from flows.evaluation_folder import RECORDS_NAME
from flows.identities import simulation_identities
from flows.intake import take_in
from flows.mapped import simulate_mapped
from flows.pretrain import pretrain_arm
from flows.service import read_service
from flows.sources import listing
from flows.task_runners import Compute, task_runner
from hyperbo.errors import InvalidInputError

pytestmark = pytest.mark.usefixtures("prefect_server")


def records(folder, compute):
    service = read_service(write_service(folder))
    drop(folder, "a.csv", 0, 30)
    take_in(service, (), listing(service.source.inbox))
    experiment = service.experiment("1.0.0")
    pretrain_arm.fn(experiment, "H-NLL")
    assert simulate_mapped.with_options(task_runner=task_runner(compute))(experiment, {}) == {}
    bed = experiment.test_bed()
    return pd.concat(
        pd.read_parquet(ledger.find(experiment.runs, identity) / RECORDS_NAME)
        for arm in experiment.arms.values()
        for identity in simulation_identities(experiment, bed, arm).values()
    ).reset_index(drop=True)


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
