"""The tuner on recorded trials against a plain loop over its acquisition function."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from gp_cases import make_task
from tuning_priors import prior_over

from hyperbo.bayesopt.history import History, PaddedHistory, padded
from hyperbo.bayesopt.offline import Run, simulate
from hyperbo.data.warping import output_warping
from hyperbo.gp.numerics import double_precision
from hyperbo.tuning.batches import Box, acquisition_of
from hyperbo.tuning.recorded import TunerPolicy, recorded_task

PRIOR = prior_over()
RANDOM = np.random.default_rng(3)
X = RANDOM.uniform(size=(25, 2))
LOSS = np.where(X[:, 0] > 0.8, np.nan, 0.2 + ((X - 0.6) ** 2).sum(axis=1))
TASK = replace(make_task("one", "one", X, np.zeros(25)), objective=LOSS)
WARPING = output_warping("negative_log")
TRIALS, WEIGHT = 8, 0.9


def plain_rows() -> list[int]:
    """Trials by the acquisition function of the tuner, on the history so far alone."""
    rows: list[int] = []
    box = Box(jnp.zeros(2), jnp.ones(2))

    @jax.jit
    def score(history: PaddedHistory) -> jax.Array:
        return acquisition_of(PRIOR.gp, history, box, "kriging_believer", True, WEIGHT)(jnp.asarray(X))

    for _ in range(TRIALS):
        y = np.where(np.isfinite(LOSS), -np.log(LOSS + 1e-10), np.nan)
        scores = np.array(score(padded(History(X[rows], y[rows], X[:0]), TRIALS)))
        scores[rows] = -np.inf
        rows.append(int(np.argmax(scores)))
    return rows


@double_precision
def test_the_choices_are_those_of_the_tuners_acquisition_function_among_what_is_left():
    recorded, infeasible_below = recorded_task(TASK, WARPING)
    policy = TunerPolicy(jax.tree.map(jnp.asarray, PRIOR.gp), jnp.asarray(infeasible_below), WEIGHT)
    found = simulate([Run(policy, recorded, 0)], TRIALS).require_usable()
    expected = plain_rows()
    assert found.choices[0].tolist() == expected
    # The loop is a test of infeasible trials only if there is one.
    assert np.isnan(LOSS[expected]).any()


def test_an_infeasible_trial_is_below_all_values_and_the_others_keep_theirs():
    recorded, infeasible_below = recorded_task(TASK, WARPING)
    feasible = np.isfinite(LOSS)
    np.testing.assert_allclose(recorded.y[feasible], -np.log(LOSS[feasible] + 1e-10))
    assert ((recorded.y < infeasible_below) == ~feasible).all()
