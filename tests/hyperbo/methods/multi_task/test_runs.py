"""What the methods of `multi_task` do in runs: each test is one of MIMO and of RFGP."""

from __future__ import annotations

import numpy as np
import pytest
from multi_task_cases import (
    TEST_TASKS,
    bowls,
    expected_random_regret,
    prediction_error,
    regret_by_job,
    run,
)

from hyperbo.bayesopt.offline import Simulation
from hyperbo.methods import MIMO, RFGP, Method
from hyperbo.methods.multi_task.model import MultiTaskTraining
from hyperbo.pretrain import Job

pytestmark = pytest.mark.usefixtures("x64")
JOBS = [Job(bowls(), seed) for seed in range(4)]
METHODS = {
    "MIMO": MIMO(MultiTaskTraining(epochs=150, refit_epochs=3), learning_rate=1e-2),
    "RFGP": RFGP(MultiTaskTraining(epochs=100, refit_epochs=2), learning_rate=1e-2, features=64),
}


@pytest.fixture(scope="module", params=METHODS.values(), ids=METHODS)
def method(request: pytest.FixtureRequest) -> Method:
    return request.param


@pytest.fixture(scope="module")
def simulation(method: Method) -> Simulation:
    return run(method, JOBS, TEST_TASKS, 5)


@pytest.mark.slow
def test_the_optimum_that_related_tasks_share_is_known(simulation: Simulation) -> None:
    regrets = regret_by_job(simulation.choices[:, :3], TEST_TASKS)
    assert (regrets < 0.5 * expected_random_regret(TEST_TASKS, 3)).all()  # from every seed


def test_the_same_seed_gives_the_same_run_and_another_another(method: Method, simulation: Simulation) -> None:
    again = run(method, JOBS, TEST_TASKS, 5)
    np.testing.assert_array_equal(again.mean, simulation.mean)
    np.testing.assert_array_equal(again.deviation, simulation.deviation)
    of_seeds = simulation.mean.reshape(len(JOBS), -1)
    assert (np.abs(of_seeds[1:] - of_seeds[0]) > 1e-6).all()


def test_predictions_improve_with_observations(simulation: Simulation) -> None:
    # The level of a test task is known from its own observations only.
    assert prediction_error(simulation, TEST_TASKS, 4) < 0.5 * prediction_error(simulation, TEST_TASKS, 0)
