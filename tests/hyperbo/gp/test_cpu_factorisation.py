"""The program that hung while LAPACK was called in batches; see docs/decisions/cpu-factorisation.md."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import jax
from gp_cases import matched_block, tuning_data, with_blocks
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.pretrain import EKLTraining, Job, NLLTraining, pretrain_ekl, pretrain_nll

assert jax.device_count() == 2
data = with_blocks(tuning_data((40,) * 8), matched_block(tuple(f"t{i}" for i in range(8)), 40, seed=0))
jobs = [Job(data, seed) for seed in range(8)]
pretrain_ekl(jobs, Architecture((8,)), EKLTraining(30))
pretrain_nll(jobs[:4], Architecture((8,)), NLLTraining(steps=200, points_per_task=40, steps_per_call=100))
print("done")
"""


def test_many_factorisations_at_a_time_do_not_wait_for_each_other() -> None:
    root = Path(__file__).parents[3]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (root, root / "tests/support")))}
    # It takes about 10 s. With batched LAPACK calls it never ended: the time-out is the failure.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
