"""When a training has converged: the phases of the learning rate, and the fall of the loss at the end."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest
from gp_cases import tuning_data
from hypothesis import given
from hypothesis import strategies as st

from hyperbo.gp.gaussian_process import Architecture
from hyperbo.pretrain import Job, NLLTraining, pretrain_nll
from hyperbo.pretrain.convergence import cooldown, fall_at_end, rates

ARCHITECTURE = Architecture((3,))
DATA = tuning_data((9, 12))
# So large a learning rate that the loss goes up and down.
RESTLESS = NLLTraining(20, points_per_task=20, learning_rate=2.0, steps_per_call=1, patience=2)


def plainly(losses: list[float], calls: int, patience: int) -> tuple[int, int] | None:
    """`cooldown`, call by call."""
    lowest, waited = np.inf, 0
    for done, loss in enumerate(losses, 1):
        waited = 0 if loss < lowest else waited + 1
        lowest = min(lowest, loss)
        if waited == patience or done == calls - calls // 5:
            return done, min(calls, done + -(-done // 4))
    return None


@given(st.lists(st.integers(0, 5).map(float), max_size=30), st.integers(1, 30), st.integers(1, 6))
def test_the_rate_falls_after_a_plateau_or_when_a_fifth_is_left(
    losses: list[float], calls: int, patience: int
) -> None:
    assert cooldown(np.array(losses), calls, patience) == plainly(losses, calls, patience)


def test_later_losses_do_not_move_the_plateau() -> None:
    losses = np.array([5.0, 4.0, 4.0, 4.0, 1.0, 0.5])
    assert cooldown(losses[:4], 100, 2) == cooldown(losses, 100, 2) == (4, 5)


@given(st.integers(1, 20), st.integers(0, 6))
def test_the_rate_is_constant_then_falls_along_a_line_to_zero(begin: int, length: int) -> None:
    ends = [rates(begin, begin + length, call) for call in range(begin + length + 2)]
    assert ends[:begin] == [(1.0, 1.0)] * begin
    falling = [first for first, _ in ends[begin:]]
    np.testing.assert_allclose(falling[: length + 1], np.linspace(1.0, 0.0, length + 1) if length else [0.0])
    assert all(
        last == following for (_, last), (following, _) in zip(ends[begin:], ends[begin + 1 :], strict=False)
    )
    assert falling[-1] == 0.0


@pytest.mark.slow
def test_a_training_goes_on_to_its_plateau_then_slows_down_and_ends() -> None:
    jobs = [Job(DATA, seed) for seed in range(4)]
    restless = pretrain_nll(jobs, ARCHITECTURE, replace(RESTLESS, patience=None))
    ended = pretrain_nll(jobs, ARCHITECTURE, RESTLESS)
    for long, short in zip(restless, ended, strict=True):
        phases = plainly(long.losses.tolist(), 20, 2)
        assert phases is not None
        begin, end = phases
        np.testing.assert_array_equal(short.losses[:begin], long.losses[:begin])
        assert len(short.losses) == end
    assert len({len(model.losses) for model in ended}) > 1
    # A model that has ended is not touched by the others of its batch.
    shortest = int(np.argmin([len(model.losses) for model in ended]))
    (alone,) = pretrain_nll([jobs[shortest]], ARCHITECTURE, RESTLESS)
    # Programs of other shapes differ by rounding.
    close = partial(np.testing.assert_allclose, rtol=1e-9)
    jax.tree.map(close, alone.gp, ended[shortest].gp)


def test_the_papers_training_never_ends_early() -> None:
    paper = replace(NLLTraining.paper(), steps=20, steps_per_call=1, learning_rate=2.0)
    (model,) = pretrain_nll([Job(DATA, 0)], ARCHITECTURE, paper)
    assert len(model.losses) == 20


@pytest.mark.parametrize(
    ("losses", "tasks", "matters"),
    [
        (np.linspace(100.0, 0.0, 100), 1, True),
        # The same fall is nothing where the loss is a sum over many tasks.
        (np.linspace(100.0, 0.0, 100), 1000, False),
        (np.full(100, 3.0), 1, False),
        (np.linspace(0.0, 100.0, 100), 1, False),
        # A fall that is smaller than what the calls differ by.
        (np.where(np.arange(100) % 2, 50.0, -50.0) - 0.01 * np.arange(100), 1, False),
        (np.array([3.0]), 1, False),
        (np.array([3.0, 1.0]), 1, True),
    ],
)
def test_a_fall_matters_that_is_more_than_noise_and_a_tenth_of_a_nat_per_task(
    losses: np.ndarray, tasks: int, matters: bool
) -> None:
    assert fall_at_end(losses, tasks).matters is matters


def test_a_training_that_ended_too_early_says_so_with_its_numbers(caplog: pytest.LogCaptureFixture) -> None:
    short = NLLTraining(40, points_per_task=20, learning_rate=1e-2, steps_per_call=2)
    with caplog.at_level(logging.WARNING, "hyperbo"):
        (model,) = pretrain_nll([Job(DATA, 0)], ARCHITECTURE, short)
    assert model.fall.matters
    assert f"the training of 1 of 1 model ended while its loss was falling, {model.fall}" in caplog.text
    # The second phase, in which the noise leaves the loss, says nothing about convergence.
    assert model.fall.last > model.losses[-1]
