"""The histories that the universal prior is fitted to and measured on, as tuning data by space."""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

import pd1_builder
from hyperbo.data.search_space import SearchSpace
from hyperbo.data.tuning_data import Provenance, Task, TuningData

COLLECTED = Path(__file__).parent / "histories.json.gz"
# Settings were chosen on these spaces; the others are touched with frozen settings only.
CHOICE = ("pd1/mini:1.0.0", "hgb", "svc", "knn")
VERSIONS = {
    "pd1/mini:1.0.0": "paper",
    "pd1/mini:2.0.0": "paper",
    "trials/taskset:1.0.0": "observed",
    "hpob/4796:1.0.0": "observed",
    "hpob/5636:1.0.0": "observed",
}
# Spaces of one model, or of models that learn alike: they are left out together.
FAMILIES = {
    "pd1/mini:1.0.0": "networks",
    "pd1/mini:2.0.0": "networks",
    "mlp": "networks",
    "trials/taskset:1.0.0": "taskset",
    "hpob/4796:1.0.0": "rpart",
    "hpob/5636:1.0.0": "rpart",
}


def collected() -> dict[str, TuningData]:
    """The histories that `collect` wrote, by the name of the model; y is minus the error."""
    content = COLLECTED.read_bytes()
    found = json.loads(gzip.decompress(content))["families"]
    provenance = {
        name: Provenance(f"scikit-learn/{name}", hashlib.sha256(content).hexdigest(), "negative")
        for name in found
    }
    return {
        name: TuningData(space, tuple(_tasks(name, space, each["tasks"])), (), provenance[name])
        for name, each in found.items()
        for space in [SearchSpace.from_json(each["space"])]
    }


def _tasks(name: str, space: SearchSpace, tasks: dict) -> list[Task]:
    return [
        Task(
            f"{name}-{task}",
            each["dataset"],
            space.to_unit(space.codes(each["values"])),
            -np.array(each["error"]),
            np.array(each["error"]),
            tuple(map(str, range(len(each["error"])))),
        )
        for task, each in tasks.items()
    ]


def version(reference: str, data: Path) -> TuningData:
    """A version of a dataset, as it is read for the universal prior."""
    return pd1_builder.load(reference, VERSIONS[reference], data_dir=data)


def family(name: str) -> str:
    """What is left out together with a space."""
    return FAMILIES.get(name, name)


def thinned(data: TuningData, rows: int, seed: int = 0) -> TuningData:
    """At most so many trials of each task, drawn at random: their best is the best there is."""
    tasks = []
    for number, task in enumerate(data.tasks):
        random = np.random.default_rng([seed, number])
        kept = np.sort(random.permutation(len(task.y))[:rows])
        ids = tuple(task.trial_ids[row] for row in kept)
        tasks.append(
            replace(task, x=task.x[kept], y=task.y[kept], objective=task.objective[kept], trial_ids=ids)
        )
    return replace(data, tasks=tuple(tasks), blocks=())
