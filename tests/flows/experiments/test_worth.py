"""What a prior is worth: which tasks are left out, and what is measured on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gp_cases import tuning_data
from hyperbo_flows.experiments.worth import TESTS_PER_FOLD, left_out, worth_of
from multi_task_cases import bowls

from hyperbo.data.tuning_data import TuningData
from hyperbo.data.warping import output_warping
from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures.worth import METHODS, PRIOR, RANDOM
from hyperbo.methods import HNLL
from hyperbo.pretrain import Job, NLLTraining


def of_datasets(*datasets: str) -> TuningData:
    data = tuning_data((4,) * len(datasets))
    tasks = (replace(task, dataset=name) for task, name in zip(data.tasks, datasets, strict=True))
    return data.with_tasks(tuple(tasks))


def test_task_datasets_are_left_out_with_all_of_their_tasks():
    chosen = left_out(of_datasets("a", "a", "b", "c", "c"), 10, seed=0)
    assert (chosen.what, chosen.of, len(chosen.folds)) == ("task dataset", 3, 3)
    for fold in chosen.folds:
        assert {task.dataset for task in fold.tests} == {fold.name}
        assert fold.name not in {task.dataset for task in fold.training.tasks}


@pytest.mark.parametrize("datasets", [("a", "b", "c", "d"), ("a", "a", "b", "b"), ("a",) * 4])
def test_tasks_are_left_out_where_no_task_dataset_is_shared_or_these_are_few(datasets):
    chosen = left_out(of_datasets(*datasets), 10, seed=0)
    assert (chosen.what, chosen.of) == ("task", 4)
    for fold in chosen.folds:
        (test,) = fold.tests
        assert len(fold.training.tasks) == 3
        assert test.name not in {task.name for task in fold.training.tasks}


def test_a_seed_draws_the_folds_and_of_large_ones_the_tasks():
    data = of_datasets(*"aaaaabbbbbcccccddddd")
    first, again, other = (left_out(data, 2, seed) for seed in (1, 1, 2))
    assert (len(first.folds), first.of) == (2, 4)
    assert all(len(fold.tests) == TESTS_PER_FOLD for fold in first.folds)

    def names(chosen):
        return [(fold.name, *(task.name for task in fold.tests)) for fold in chosen.folds]

    assert names(first) == names(again) != names(other)


def test_one_task_has_no_other_to_be_measured_on():
    data = tuning_data()
    with pytest.raises(
        InvalidInputError, match=r"case/tiny:1\.0\.0: one task only, 't1'.*; add the trials of"
    ):
        left_out(data.with_tasks(data.tasks[1:2]), 10, seed=0)


@pytest.mark.slow
def test_priors_of_related_tasks_are_ahead_of_random_search():
    data = bowls(tasks=5, size=40)
    chosen = left_out(data, 4, seed=0)
    training = NLLTraining(300, steps_per_call=100)
    trained = HNLL(training=training).pretrain([Job(fold.training, 0) for fold in chosen.folds])
    done = []
    found = worth_of(
        chosen,
        [each.gp for each in trained],
        output_warping("negative_log"),
        lambda number, of: done.append((number, of)),
    )
    assert (found.tasks, found.folds, found.of_folds) == (4, 4, 5)
    assert done[0] == (0, 12)
    assert done[-1] == (12, 12)
    assert done == sorted(done)
    for name in METHODS:
        means = [each.mean for each in found.regret[name]]
        assert means == sorted(means, reverse=True)
        assert min(means) >= 0.0
    # Their best inputs are close together, so the first choice is near the best.
    assert found.regret[PRIOR][0].mean < 0.5 * found.regret[RANDOM][0].mean
    assert np.isfinite(found.ahead_by[RANDOM].lower)
