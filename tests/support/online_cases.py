"""Small methods, training data and objectives that online runs are tested with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gp_cases import SPACE, matched_block, tuning_data, with_blocks

from hyperbo.bayesopt.journal import RunName
from hyperbo.bayesopt.online import TrialResults
from hyperbo.bayesopt.online_methods import RandomSearch, Retrained, SingleTask
from hyperbo.bayesopt.propose import Maximisation
from hyperbo.data.warping import output_warping
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import HNLL, STBO, STBOH, AcquisitionDecision, HSum
from hyperbo.pretrain import NLLTraining, SumTraining

UCB = AcquisitionDecision("upper_confidence_bound", 1.8)
SMALL = Architecture((2,), kernel="matern32")
CLIMB = Maximisation(random_starts=4, observed_starts=2, iterations=10)
DATA = with_blocks(tuning_data((6, 9, 7)), matched_block(("t0", "t1", "t2"), inputs=4, seed=1))
METHODS = {
    "H-NLL": Retrained(HNLL(SMALL, NLLTraining(20, steps_per_call=20), UCB, 4), 5, CLIMB),
    "H-EKL": Retrained(HSum(SMALL, SumTraining(6), UCB, 4), 5, CLIMB),
    "STBO": SingleTask(STBO(SMALL, iterations=5, decision=UCB), CLIMB),
    "STBOH": SingleTask(STBOH(iterations=5), CLIMB),
    "Rand": RandomSearch(),
}


class Bowl:
    """A loss with its minimum 0.1 at a point of its own; infeasible far away from it.

    Args:
      centre: where the minimum is.
      radius: from there on trials are infeasible.
    """

    space, warping = SPACE, output_warping("negative_log")

    def __init__(self, centre: tuple[float, float], radius: float = 0.7) -> None:
        self.centre, self.radius = np.array(centre), radius
        self.calls: list[tuple[tuple[RunName, ...], int]] = []

    def run_trials(self, points: Any, runs: Sequence[RunName], iteration: int) -> TrialResults:
        self.calls.append((tuple(runs), iteration))
        distance = np.linalg.norm(points - self.centre, axis=1)
        objective = np.where(distance < self.radius, 0.1 + distance**2, np.nan)
        return TrialResults(objective, [{"run": f"{run.method}/{run.seed}"} for run in runs])
