from __future__ import annotations

import pytest
from hyperbo_flows.service.settings import read_service
from unattended import write_service

from hyperbo.errors import InvalidInputError
from hyperbo.methods import HNLL


def test_paths_are_relative_to_the_file(tmp_path, monkeypatch):
    path = write_service(tmp_path / "here")
    monkeypatch.chdir(tmp_path)
    service = read_service(path.relative_to(tmp_path))
    here = tmp_path / "here"
    assert (service.dataset, service.challenger) == ("trials/own", "H-NLL")
    assert (service.source.inbox, service.source.space) == (str(here / "inbox"), str(here / "space.toml"))
    assert (service.design.runs, service.design.data_dir, service.priors) == (
        here / "runs",
        here / "data",
        here / "priors",
    )
    experiment = service.experiment("1.2.0")
    assert (experiment.dataset, experiment.seeds, experiment.iterations) == ("trials/own:1.2.0", (0, 1), 5)
    method = experiment.arms["H-NLL"].method
    assert isinstance(method, HNLL)
    assert (method.training.steps, method.architecture.hidden) == (40, (4,))


def test_an_address_stays_as_it_is(tmp_path):
    path = write_service(tmp_path)
    path.write_text(path.read_text().replace('"inbox"', '"s3://bucket/inbox"'))
    assert read_service(path).source.inbox == "s3://bucket/inbox"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('inbox = "inbox"', "", "source: no source"),
        ('inbox = "inbox"', 'inbox = "inbox"\nlargest = 1', "source: unknown key 'largest'"),
        ('"trials/own"', '"hpob/4796"', "hpob/4796 has no inbox"),
        ("[promotion]", "[promoting]", "unknown key 'promoting'"),
        ("[promotion]", "[promotion]\nbudget = 6", "promotion.budget: 6 is more than the 5 iterations"),
        ("[experiment]", '[experiment]\ndataset = "pd1/mini:1.0.0"', "experiment: unknown key 'dataset'"),
        ("[experiment]", "[checks]\nlargest_drift = -1.0\n[experiment]", "largest_drift = -1"),
        ("[experiment]", '[compute]\nrunner = "slurm"\n[experiment]', "compute.runner: 'slurm'"),
        ("[experiment]", '[compute]\naddress = "tcp://a:1"\n[experiment]', 'write runner = "dask"'),
        ('method = "H-NLL"', 'method = "STBO"', "unknown key|no prior to promote"),
        ('line = "own/h-nll"', 'line = "../own"', "promotion: line '../own'"),
        ("seeds = 2", "seeds = two", "not TOML"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, old, new, message):
    path = write_service(tmp_path)
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InvalidInputError, match=message) as error:
        read_service(path)
    assert "service.toml" in str(error.value)
