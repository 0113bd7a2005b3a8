"""A synthetic evaluation: 4 methods, 6 tasks, 5 seeds, 30 iterations, with ties and a saturated task."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

METHODS = ("H-NLL", "H-EKL", "STBO", "Rand")
TASKS = ("digits-cnn-32", "digits-cnn-64", "digits-cnn-128", "wine-mlp-16", "text-transformer-8", "easy")
SEEDS = (0, 1, 2, 3, 4)
ITERATIONS = 30


def make_records() -> pd.DataFrame:
    random = np.random.default_rng(20)
    rows = []
    for task in TASKS:
        # Rounded errors make ties; the easy task has 3 candidates, which all methods exhaust.
        errors = np.sort(np.round(random.uniform(0.03, 0.9, 3 if task == "easy" else 400), 3))
        y = -np.log(errors + 1e-10)
        for number, method in enumerate(METHODS):
            for seed in SEEDS:
                skill = (3.0, 2.5, 1.6, 1.0)[number]  # how much a method prefers low errors
                picks = (len(errors) * random.uniform(size=ITERATIONS) ** skill).astype(int)
                if task == "easy":
                    picks[:3] = (2, 1, 0)
                rows += [
                    (method, task, task.split("-")[0], seed, t + 1, f"trial-{i}", y[i], errors[i], y.max())
                    for t, i in enumerate(picks)
                ]
    columns = ["method", "task", "task_dataset", "seed", "iteration", "trial_id", "y", "objective", "y_max"]
    return pd.DataFrame(rows, columns=columns)


def make_metadata() -> dict[str, Any]:
    return {
        "dataset": "pd1_mini/release:1.0.0",
        "manifest_hash": "5f2c9d1be07a4c3389aa",
        "preparation": "paper",
        "protocol": "held-out related, repeats allowed, no initial data",
        "code_version": "0.1.0+g45a0ca7",
        "methods": {
            "H-NLL": {
                "objective": "nll",
                "optimizer": {"name": "adam", "learning_rate": 1e-3, "steps": 50000},
            },
            "H-EKL": {"objective": "ekl", "optimizer": {"name": "lbfgs", "steps": 100}},
            "STBO": {"refit": {"steps": 100}},
            "Rand": {},
        },
        "tasks": list(TASKS),
        "seeds": list(SEEDS),
        "iterations": ITERATIONS,
        "platform": {"Python": "3.11.2", "JAX": "0.10.2", "device": "cpu", "processor": "2 cores"},
        "seconds": {"build": 3.25, "pre-train": {"H-NLL": 74.5, "H-EKL": 1.5}, "evaluate": {"STBO": 60.125}},
        "started": "2026-11-21T06:00:00Z",
        "finished": "2026-11-21T06:04:30Z",
        "run_ids": ["run-a1", "run-b2"],
        "command": "hyperbo demo --seeds 5",
    }


@pytest.fixture(scope="session")
def shared_records() -> pd.DataFrame:
    return make_records()


@pytest.fixture
def records(shared_records: pd.DataFrame) -> pd.DataFrame:
    return shared_records.copy()


@pytest.fixture(scope="session")
def shared_metadata() -> dict[str, Any]:
    return make_metadata()


@pytest.fixture
def metadata() -> Any:
    return make_metadata()


def make_losses() -> pd.DataFrame:
    """Losses of the two pre-trained methods: of each prior, and on each test task."""
    random = np.random.default_rng(6)
    rows = []
    for number, method in enumerate(METHODS[:2]):
        for dataset in dict.fromkeys(task.split("-")[0] for task in TASKS):
            for seed in SEEDS:
                level = number + 0.3 * random.normal()
                rows += [
                    (method, dataset, seed, "", kind, level + 0.1 * random.normal())
                    for kind in ("training_nll", "training_ekl")
                ]
                rows += [
                    (method, dataset, seed, task, kind, 10 * level + random.normal())
                    for kind in ("test_nll", "test_ekl")
                    for task in TASKS
                    if task.split("-")[0] == dataset
                ]
    return pd.DataFrame(rows, columns=["method", "held_out", "seed", "task", "kind", "value"])


@pytest.fixture
def losses() -> pd.DataFrame:
    return make_losses()


@pytest.fixture
def with_missing_arm(records: pd.DataFrame) -> pd.DataFrame:
    """STBO has no run on wine-mlp-16 with seed 3, and stopped early on digits-cnn-64 with seed 1."""
    lost = (records["method"] == "STBO") & (records["task"] == "wine-mlp-16") & (records["seed"] == 3)
    stopped = (records["method"] == "STBO") & (records["task"] == "digits-cnn-64") & (records["seed"] == 1)
    return records[~lost & ~(stopped & (records["iteration"] > 12))].reset_index(drop=True)
