"""Losses of priors beside the formulas once more, in NumPy and SciPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gp_cases import matched_block, mean, nll, noisy_covariance, random_gp, tuning_data, with_blocks

from hyperbo.data.folds import all_but_test_task, given_split, held_out_related
from hyperbo.priors import losses as module
from hyperbo.priors.losses import prior_losses

pytestmark = pytest.mark.usefixtures("x64")

_TASKS = tuning_data((3, 4, 5, 6))
DATA = with_blocks(
    replace(_TASKS, tasks=(*_TASKS.tasks[:3], replace(_TASKS.tasks[3], dataset="d0"))),
    matched_block(("t0", "t1", "t2", "t3"), 5, seed=0),
)


def values(frame):
    return {(row.held_out, row.task, row.kind): row.value for row in frame.itertuples(index=False)}


def degenerate_ekl(gp, block, tasks):
    """Eq. (degenerate), by the eigenvectors of the estimated covariance."""
    y = block.y[:, [block.tasks.index(name) for name in tasks]]
    estimated_mean, estimated = y.mean(axis=1), np.cov(y, bias=True)
    eigenvalues, vectors = np.linalg.eigh(estimated)
    rank = len(tasks) - 1
    root = vectors[:, -rank:] * np.sqrt(eigenvalues[-rank:])
    pseudo_inverse = np.linalg.pinv(root)
    projected = pseudo_inverse @ noisy_covariance(gp, block.x) @ pseudo_inverse.T
    offset = pseudo_inverse @ (mean(gp, block.x) - estimated_mean)
    inverse = np.linalg.inv(projected)
    logdet = np.linalg.slogdet(projected)[1]
    return 0.5 * (np.trace(inverse) + offset @ inverse @ offset + logdet - rank)


def test_losses_are_those_of_the_formulas():
    folds = held_out_related(DATA)
    gps = [random_gp(seed) for seed in range(3)]
    training = [("t1", "t2"), ("t0", "t2", "t3"), ("t0", "t3")]  # the last had fewer tasks than the fold
    frames = prior_losses(DATA, list(zip(gps, folds, training, strict=True)))
    task = {each.name: each for each in DATA.tasks}
    (block,) = DATA.blocks
    for gp, fold, learned, frame in zip(gps, folds, training, frames, strict=True):
        whole = [each.name for each in fold.training.tasks]
        expected = {
            (fold.name, "", "training_nll"): np.mean([nll(gp, task[t].x, task[t].y) for t in learned]),
            (fold.name, "", "training_ekl"): degenerate_ekl(gp, block, learned),
        }
        for test in fold.tests:
            expected[fold.name, test.name, "test_nll"] = nll(gp, test.x, test.y)
            both = [name for name in block.tasks if name in (*whole, test.name)]
            expected[fold.name, test.name, "test_ekl"] = degenerate_ekl(gp, block, both)
        found = values(frame)
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, rtol=1e-7)


@pytest.mark.parametrize("protocol", [held_out_related, all_but_test_task])
def test_what_is_tested_does_not_matter(protocol):
    learned = ("t1", "t2")
    whole, without = (
        prior_losses(DATA, [(random_gp(0), protocol(DATA, not_tested)[0], learned)])[0]
        for not_tested in ((), ("t3",))
    )
    assert whole.equals(without)


def test_of_a_given_split_all_tasks_outside_training_have_losses():
    of_few, of_all = (
        prior_losses(DATA, [(random_gp(0), *given_split(DATA, ("t1", "t2"), tests), ("t1", "t2"))])[0]
        for tests in (("t0",), ("t0", "t3"))
    )
    assert set(of_few["held_out"]) == {"t0", "t3"}
    assert of_few.equals(of_all)


def test_losses_are_named_by_what_was_held_out():
    (split,) = given_split(DATA, ("t1", "t2"), ("t0", "t3"))
    single = all_but_test_task(DATA)[1]
    of_split, of_task = prior_losses(
        DATA, [(random_gp(0), split, ("t1", "t2")), (random_gp(1), single, ("t0", "t2", "t3"))]
    )
    # A prior of a benchmark's split has no dataset to be named by: it is that of each test task.
    assert {key for key in values(of_split) if key[2] == "training_nll"} == {
        ("t0", "", "training_nll"),
        ("t3", "", "training_nll"),
    }
    assert {key for key in values(of_split) if key[2] == "test_nll"} == {
        ("t0", "t0", "test_nll"),
        ("t3", "t3", "test_nll"),
    }
    assert ("t1", "t1", "test_nll") in values(of_task)


def test_without_matched_inputs_there_is_no_ekl():
    (frame,) = prior_losses(
        replace(DATA, blocks=()), [(random_gp(0), held_out_related(DATA)[0], ("t1", "t2"))]
    )
    assert set(frame["kind"]) == {"training_nll", "test_nll"}


@pytest.mark.slow
def test_a_task_of_pd1_is_measured_on_all_its_trials():
    # About 1,959 trials of a task are in the release.
    data = tuning_data((3, 4, 1959))
    gp = random_gp(0)
    (frame,) = prior_losses(data, [(gp, held_out_related(data)[2], ("t0", "t1"))])
    task = data.task("t2")
    assert values(frame)["d2", "t2", "test_nll"] == pytest.approx(nll(gp, task.x, task.y))


def test_inputs_that_diverged_on_a_task_left_out_count_in_the_ekl():
    (block,) = DATA.blocks
    y = block.y.copy()
    y[0, 0] = y[1, 1] = np.nan  # t0, which is held out, diverged at the first input, t1 at the second
    data = replace(DATA, blocks=(replace(block, y=y),))
    gp = random_gp(0)
    (frame,) = prior_losses(data, [(gp, held_out_related(data)[0], ("t1", "t2"))])
    learned, both = (replace(block, x=block.x[rows], y=y[rows]) for rows in ([0, 2, 3, 4], [2, 3, 4]))
    found = values(frame)
    expected = degenerate_ekl(gp, learned, ("t1", "t2"))
    assert found["d0", "", "training_ekl"] == pytest.approx(expected)
    expected = degenerate_ekl(gp, both, ("t0", "t1", "t2"))
    assert found["d0", "t0", "test_ekl"] == pytest.approx(expected)


def test_large_tasks_are_measured_on_some_of_their_trials(monkeypatch):
    monkeypatch.setattr(module, "MOST_POINTS", 4)
    fold = held_out_related(DATA)[0]
    gp = random_gp(0)
    (frame,) = prior_losses(DATA, [(gp, fold, ("t1", "t2"))])
    few = module.at_most_points(DATA, 4, 0).task("t3")
    assert len(few.y) == 4
    np.testing.assert_allclose(values(frame)["d0", "t3", "test_nll"], nll(gp, few.x, few.y))
