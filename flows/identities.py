"""What runs of the main job are: the identities under which the ledger knows them."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from importlib import metadata
from typing import Any, Literal

from flows.ledger import run_id
from flows.settings import Settings, configurations
from hyperbo.code_version import code_version
from hyperbo.methods import PRETRAINED
from hyperbo.tuning_data import TuningData

PROTOCOL = (
    "held-out related: no training task shares the test task's dataset; candidates are the test task's "
    "trials that have a value; no initial data; a candidate may be observed again"
)

# A run of a method: the task dataset held out, and the seed.
Key = tuple[str, int]
Identities = dict[Key, dict[str, Any]]


@cache
def running_code() -> str:
    """Version of the code of this process. Read once: sources edited later are not what is running."""
    return code_version("hyperbo", "pd1_builder", "flows")


@cache
def libraries() -> dict[str, str]:
    """Versions of the libraries that decide the numbers."""
    return {name: metadata.version(name) for name in ("jax", "jaxlib", "numpy", "optax")}


def prior_identities(settings: Settings, data: TuningData, method: str) -> Identities:
    """Priors: a method pre-trained from a seed on all tasks but those of the dataset held out."""
    return _of_method("prior", settings, data, method)


def simulation_identities(settings: Settings, data: TuningData, method: str) -> Identities:
    """Simulations: Bayesian optimization by a method from a seed on all tasks of the dataset held out."""
    identities = _of_method("simulation", settings, data, method)
    priors = prior_identities(settings, data, method) if method in PRETRAINED else {}
    for key, identity in identities.items():
        identity |= {"protocol": PROTOCOL, "iterations": settings.iterations}
        if method in PRETRAINED:
            identity["prior"] = run_id(priors[key])
    return identities


def evaluation_identity(settings: Settings, data: TuningData) -> dict[str, Any]:
    """An evaluation: simulations joined, with their report."""
    return {
        "kind": "evaluation",
        **asdict(data.provenance),
        "simulations": {
            method: [run_id(each) for each in simulation_identities(settings, data, method).values()]
            for method in settings.methods
        },
        "code_version": running_code(),
    }


def _of_method(
    kind: Literal["prior", "simulation"], settings: Settings, data: TuningData, method: str
) -> Identities:
    common = {
        "kind": kind,
        **asdict(data.provenance),
        "method": method,
        "configuration": asdict(configurations(settings)[method]),
        "code_version": running_code(),
        "libraries": libraries(),
    }
    return {
        (held_out, seed): common | {"held_out": held_out, "seed": seed}
        for held_out in data.task_datasets
        for seed in settings.seeds
    }
