from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures.comparisons import paired_comparison
from hyperbo.evaluation.measures.regret import regrets_of_priors
from hyperbo.evaluation.records.metadata import EvaluationMetadata, validate_metadata
from hyperbo.evaluation.records.run_array import RunArray

SEEDS = (0, 1, 4, 5)


def regrets(values: np.ndarray) -> RunArray:
    return RunArray(("m", "n"), ("a", "b", "c"), SEEDS, values)


def metadata(**keys: Any) -> EvaluationMetadata:
    return cast(EvaluationMetadata, keys)


VALUES = np.random.default_rng(0).random((2, 3, 4, 5))


def test_runs_of_one_prior_are_averaged() -> None:
    by_prior = regrets_of_priors(regrets(VALUES), metadata(runs_per_prior=2))
    assert by_prior.seeds == (0, 2)
    np.testing.assert_allclose(by_prior.values[:, :, 0], (VALUES[:, :, 0] + VALUES[:, :, 1]) / 2)
    np.testing.assert_allclose(by_prior.values[:, :, 1], (VALUES[:, :, 2] + VALUES[:, :, 3]) / 2)


def test_without_shared_priors_every_run_is_its_own() -> None:
    same = regrets_of_priors(regrets(VALUES), metadata())
    assert same.seeds == SEEDS
    np.testing.assert_array_equal(same.values, VALUES)


def test_a_prior_that_lacks_a_run_is_missing() -> None:
    values = VALUES.copy()
    values[0, 1, 3] = np.nan
    by_prior = regrets_of_priors(regrets(values), metadata(runs_per_prior=2))
    assert np.isnan(by_prior.values[0, 1, 1]).all()
    assert np.isfinite(by_prior.values).sum() == by_prior.values.size - 5


def test_a_comparison_counts_priors_and_not_runs() -> None:
    compared = paired_comparison(regrets_of_priors(regrets(VALUES), metadata(runs_per_prior=2)), "m", "n", 5)
    assert compared.seeds == (0, 2)
    difference = (VALUES[0, :, :, 4] - VALUES[1, :, :, 4]).mean(axis=0)
    np.testing.assert_allclose(compared.per_seed, [difference[:2].mean(), difference[2:].mean()])
    # Of two priors the signs can be flipped in four ways: nothing can be significant.
    assert compared.p_value >= 0.5


@pytest.mark.parametrize("runs", [0, "five"])
def test_what_is_no_number_of_runs_is_refused(runs: object) -> None:
    whole = dict.fromkeys(("dataset", "manifest_hash", "preparation", "protocol", "code_version"), "")
    others = {"methods": {"m": {}}, "tasks": ["a"], "seeds": [0], "iterations": 1, "platform": {}}
    rest = {"seconds": {}, "started": "", "finished": "", "run_ids": [], "command": ""}
    with pytest.raises(InvalidInputError, match="runs_per_prior: "):
        validate_metadata(whole | others | rest | {"runs_per_prior": runs})
