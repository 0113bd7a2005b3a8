"""Pre-training of many models and of very many tasks: what is split over devices, and what a step costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import SPACE, matched_block, tuning_data, with_blocks

from hyperbo.compute import parallel
from hyperbo.compute.parallel import batched, mesh, pad_batch
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.pretrain import EKLTraining, Job, NLLTraining, pretrain_ekl, pretrain_nll
from hyperbo.pretrain.nll import TasksOfModel, nll_steps, start_training
from hyperbo.pretrain.task_table import tasks_of_jobs

pytestmark = pytest.mark.slow

ARCHITECTURE = Architecture((3,), noise_variance=0.05)
NLL = NLLTraining(steps=20, points_per_task=5, learning_rate=1e-2, steps_per_call=10)
EKL = EKLTraining(iterations=5)
DATA = with_blocks(tuning_data(), matched_block(("t0", "t1", "t2"), 6, seed=0))

PROGRAM = """
import json, jax
from test_pretraining_scale import ARCHITECTURE, EKL, NLL, jobs
from hyperbo.compute.parallel import mesh
from hyperbo.pretrain import pretrain_ekl, pretrain_nll

models = [pretrain_nll(jobs(), ARCHITECTURE, NLL), pretrain_ekl(jobs(), ARCHITECTURE, EKL)]
losses = [[list(model.losses) for model in trained] for trained in models]
print(json.dumps([jax.device_count(), [mesh(count).size for count in range(1, 10)], losses]))
"""


def jobs() -> list[Job]:
    """Five models, which four devices do not divide; they differ in their tasks."""
    held_out = DATA.hold_out("d1")
    return [Job(DATA, 0), Job(held_out, 0), Job(DATA, 1), Job(held_out, 2), Job(DATA, 3)]


def test_a_batch_over_four_devices_gives_what_its_models_give_one_at_a_time() -> None:
    root, here = Path(__file__).parents[3], Path(__file__).parent
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "PYTHONPATH": os.pathsep.join(map(str, (root, root / "tests/support", here))),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=250,
        check=True,
    )
    devices, sizes, (nll, ekl) = json.loads(done.stdout)
    assert devices == 4
    # Five finish on three devices, two on each, as early as they would on four.
    assert sizes == [1, 2, 3, 4, 3, 3, 4, 4, 3]
    assert len(nll) == len(ekl) == 5
    for number in (1, 4):  # beside another model, and beside padding
        (alone,) = pretrain_nll(jobs()[number : number + 1], ARCHITECTURE, NLL)
        np.testing.assert_allclose(nll[number], alone.losses, rtol=1e-8)
    (alone,) = pretrain_ekl(jobs()[4:], ARCHITECTURE, EKL)
    np.testing.assert_allclose(ekl[4], alone.losses, rtol=1e-5)


def test_one_model_alone_keeps_one_device_busy_and_an_odd_batch_is_padded() -> None:
    assert jax.device_count() == 2
    assert [mesh(count).size for count in range(1, 5)] == [1, 2, 2, 2]
    twice = batched(lambda x: 2.0 * x)
    for count, padded in [(1, 1), (2, 2), (3, 4)]:
        values = np.arange(float(count))
        batch = pad_batch(values)
        assert len(batch.sharding.device_set) == mesh(count).size
        doubled = twice(batch)
        assert len(doubled) == padded
        np.testing.assert_array_equal(doubled[:count], 2.0 * values)


# The program for accelerators, in which a part of the batch is computed at once.


def test_models_computed_at_once_are_those_computed_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    training = NLLTraining(5, 5, 1e-2, steps_per_call=5)
    one_at_a_time = pretrain_nll(jobs()[:3], ARCHITECTURE, training)
    monkeypatch.setattr(parallel, "_one_at_a_time", lambda: False)
    at_once = pretrain_nll(jobs()[:3], ARCHITECTURE, training)
    for a, b in zip(one_at_a_time, at_once, strict=True):
        np.testing.assert_allclose(a.losses, b.losses, rtol=1e-10)
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10), a.gp, b.gp)


def steps_of(data: list[Job], training: NLLTraining) -> tuple[Any, Any]:
    """The program of one call for a batch of models, and its arguments."""
    table, rows, weights, counts = tasks_of_jobs(data)
    of_models = TasksOfModel(*map(jnp.asarray, (rows, weights, counts)))
    start = partial(start_training, SPACE.dimension, ARCHITECTURE, training)
    state = jax.vmap(start)(of_models, jnp.arange(len(data)))
    return partial(nll_steps, training), (table, of_models, state, jnp.full((len(data), 2), 1e-2))


@pytest.mark.usefixtures("x64")
def test_an_accelerator_factorises_the_tasks_of_all_models_in_one_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, arguments = steps_of(jobs()[:4], NLL)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")  # traced only: this machine has none
    program = str(jax.make_jaxpr(batched(run, shared=1))(*arguments))
    calls = [line for line in program.splitlines() if " cholesky[" in line or "= cholesky" in line]
    # Two models on each of two devices, three tasks, five points; again where one of them needs jitter.
    assert len(calls) == 2
    assert all(":f64[2,3,5,5]" in line for line in calls)


@pytest.mark.usefixtures("x64")
def test_memory_hardly_grows_with_tasks_that_are_not_drawn_nor_with_steps() -> None:
    def memory(tasks: int, steps: int) -> int:
        training = NLLTraining(steps, 5, steps_per_call=steps, tasks_per_step=4)
        run, (table, *of_models) = steps_of([Job(tuning_data((6,) * tasks), 0)], training)
        of_model = jax.tree.map(lambda leaf: leaf[0], of_models)
        compiled = jax.jit(run).lower(table, *of_model).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    few = memory(10, 1)
    # Its row, its weight and its number of points; the NLL of one task would take over 1000 bytes.
    assert memory(400, 1) - few < 64 * 390
    assert memory(10, 100) - few < 100 * 64  # a loss and a jitter
