"""What the project claims, on PD1 mini: a pre-trained prior finds good trials sooner than its rivals."""

from __future__ import annotations

import pytest

import pd1_builder
from hyperbo.bayesopt.offline import Run, run_records, simulate
from hyperbo.methods import HNLL, STBO, Rand
from hyperbo.pretrain import Job, NLLTraining

pytestmark = pytest.mark.slow

HELD_OUT = ("digits", "sample_patches")
SEEDS = (0, 1)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    data_dir = tmp_path_factory.mktemp("data")
    pd1_builder.build("pd1/mini", "1.0.0", data_dir=data_dir)
    return pd1_builder.load("pd1/mini:1.0.0", data_dir=data_dir)


def test_h_nll_beats_rand_and_stbo_after_10_iterations_on_held_out_tasks(data):
    keys = [(held_out, seed) for held_out in HELD_OUT for seed in SEEDS]
    jobs = [Job(data.hold_out(held_out), seed) for held_out, seed in keys]

    def regret(method):
        fitted = dict(zip(keys, method.fit(jobs), strict=True))
        runs = [
            Run(method.policy(fitted[task.dataset, seed], task), task, seed)
            for task in data.tasks
            if task.dataset in HELD_OUT
            for seed in SEEDS
        ]
        records = run_records("any", runs, simulate(runs, 10))
        best = records.groupby(["task", "seed"])[["y", "y_max"]].max()
        return (best["y_max"] - best["y"]).mean()

    pretrained = regret(HNLL(training=NLLTraining(steps=800, steps_per_call=800)))
    assert pretrained < 0.7 * regret(Rand())
    assert pretrained < 0.7 * regret(STBO())
