"""The gate against plain NumPy: the paired difference, its bootstrap written out, what it never promotes."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures.comparisons import TIE_TOLERANCE
from hyperbo.evaluation.measures.promotion import decide_promotion
from hyperbo.evaluation.measures.regret import simple_regrets
from hyperbo.evaluation.records.run_array import RunArray


def array_of(values: np.ndarray, methods: tuple[str, ...] = ("new", "old")) -> RunArray:
    tasks = tuple(f"task{number}" for number in range(values.shape[1]))
    return RunArray(methods, tasks, tuple(range(values.shape[2])), values)


def constant(per_seed: list[float], tasks: int = 2) -> RunArray:
    """Regrets of two methods whose difference with each seed is the one given, on every task."""
    values = np.ones((2, tasks, len(per_seed), 1))
    values[0, :, :, 0] += per_seed
    return array_of(values)


def test_better_is_an_interval_below_zero(records: Any, metadata: Any) -> None:
    regrets = simple_regrets(records, metadata)
    found = decide_promotion(regrets, "H-NLL", "Rand", 10)
    new, old = (regrets.values[regrets.methods.index(name), :, :, 9] for name in ("H-NLL", "Rand"))
    per_seed = (new - old).sum(axis=0) / 6
    resampled = [np.mean(sample) for sample in itertools.product(per_seed, repeat=5)]
    assert np.quantile(resampled, 0.975) < 0
    assert found.promoted
    assert found.comparison is not None
    np.testing.assert_allclose(found.comparison.per_seed, per_seed, rtol=1e-12)
    assert found.comparison.difference == pytest.approx(per_seed.sum() / 5, rel=1e-12)
    assert found.reason.startswith("After 10 iterations, H-NLL has lower regret than Rand (\N{MINUS SIGN}")
    assert found.reason.endswith("Compared on 6 tasks with 5 seeds.")
    worse = decide_promotion(regrets, "Rand", "H-NLL", 10)
    assert not worse.promoted
    assert worse.reason.startswith("After 10 iterations, Rand has higher regret than H-NLL (0.")


def test_evidence_is_plain_json_and_the_same_for_the_same_records(records: Any, metadata: Any) -> None:
    regrets = simple_regrets(records, metadata)
    found = decide_promotion(regrets, "H-EKL", "STBO", 30)
    evidence = found.evidence()
    text = json.dumps(evidence, allow_nan=False)
    assert json.loads(text) == evidence == decide_promotion(regrets, "H-EKL", "STBO", 30).evidence()
    assert found.comparison is not None
    assert (evidence["challenger"], evidence["champion"], evidence["iteration"]) == ("H-EKL", "STBO", 30)
    assert evidence["per_seed"] == [float(value) for value in found.comparison.per_seed]
    assert (evidence["lower"], evidence["upper"]) == (found.comparison.lower, found.comparison.upper)
    assert evidence["by_task"] == {
        "wins": found.comparison.by_task.wins,
        "ties": found.comparison.by_task.ties,
        "losses": found.comparison.by_task.losses,
    }


def test_the_first_prior_is_promoted_and_said_to_be_the_first() -> None:
    found = decide_promotion(constant([0.0]), "new", None, 1)
    assert (found.promoted, found.comparison) == (True, None)
    assert found.reason == "new is the first prior of its line: there is none to compare it with."
    assert found.evidence() == {"challenger": "new", "champion": None, "iteration": 1, "missing": []}


def test_one_seed_promotes_nothing() -> None:
    found = decide_promotion(constant([-1.0]), "new", "old", 1)
    assert not found.promoted
    assert found.reason.endswith("One seed gives no interval; at least two are needed.")
    evidence = found.evidence()
    assert (evidence["difference"], evidence["lower"], evidence["upper"]) == (-1.0, None, None)


@pytest.mark.parametrize("champion", ["old", None])
def test_a_challenger_that_failed_somewhere_is_not_promoted(champion: str | None) -> None:
    regrets = constant([-0.5, -0.4, -0.6], tasks=5)
    assert decide_promotion(regrets, "new", champion, 1).promoted
    regrets.values[0, 1, 2] = np.nan
    found = decide_promotion(regrets, "new", champion, 1)
    assert not found.promoted
    assert found.missing == ("new on task1, seed 2",)
    assert found.reason.endswith("Runs of the challenger are missing: new on task1, seed 2.")
    regrets.values[0, :, 1] = np.nan
    assert decide_promotion(regrets, "new", champion, 1).reason.endswith("; and 2 more.")
    assert len(decide_promotion(regrets, "new", champion, 1).evidence()["missing"]) == 5


def test_a_champion_that_failed_somewhere_is_compared_on_the_rest() -> None:
    regrets = constant([-0.5, -0.4, -0.6], tasks=3)
    regrets.values[1, 1, 2] = np.nan
    found = decide_promotion(regrets, "new", "old", 1)
    assert found.promoted
    assert ", over 2 of 3 tasks). Compared on 2 tasks with 3 seeds." in found.reason
    assert found.evidence()["missing_tasks"] == ["task1"]


def test_without_a_common_task_nothing_is_promoted() -> None:
    regrets = constant([-0.5, -0.4])
    regrets.values[1] = np.nan
    found = decide_promotion(regrets, "new", "old", 1)
    assert not found.promoted
    assert found.reason == "After 1 iteration, new has no completed task in common with old."
    evidence = found.evidence()
    assert (evidence["difference"], evidence["p_value"], evidence["tasks"]) == (None, None, [])


@pytest.mark.parametrize("champion", ["old", None])
def test_what_is_unknown_is_named(champion: str | None) -> None:
    regrets = constant([-0.5, -0.4])
    with pytest.raises(InvalidInputError, match="no method 'nobody'; use one of new, old"):
        decide_promotion(regrets, "nobody", champion, 1)
    with pytest.raises(InvalidInputError, match="no iteration 2; use 1 to 1"):
        decide_promotion(regrets, "new", champion, 2)
    with pytest.raises(InvalidInputError, match="new is compared with itself"):
        decide_promotion(regrets, "new", "new", 1)


SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 2))
LEVELS = st.integers(0, 16).map(lambda level: level / 16)
REGRETS = SHAPES.flatmap(lambda shape: arrays(np.float64, (2, *shape), elements=LEVELS))


@settings(max_examples=40)
@given(REGRETS)
def test_swapping_the_two_negates_the_difference(values: np.ndarray) -> None:
    regrets = array_of(values)
    one, other = (decide_promotion(regrets, *pair, 1) for pair in (("new", "old"), ("old", "new")))
    assert one.comparison is not None
    assert other.comparison is not None
    assert one.comparison.difference == pytest.approx(-other.comparison.difference, abs=1e-15)
    assert one.comparison.difference == pytest.approx((values[0] - values[1])[..., 0].mean(), abs=1e-15)
    assert not (one.promoted and other.promoted)


@settings(max_examples=40)
@given(REGRETS, st.integers(0, 2**32 - 1))
def test_equal_records_are_never_promoted(values: np.ndarray, seed: int) -> None:
    # Equal up to rounding, as means in another order are.
    rounding = np.random.default_rng(seed).uniform(-1e-15, 1e-15, values.shape[1:])
    equal = array_of(np.stack([values[0] + rounding, values[0]]))
    assert not decide_promotion(equal, "new", "old", 1).promoted
    assert not decide_promotion(equal, "old", "new", 1).promoted


@settings(max_examples=40)
@given(st.lists(LEVELS.map(lambda level: level - 0.75), min_size=2, max_size=3))
def test_two_or_three_seeds_promote_exactly_where_all_agree(per_seed: list[float]) -> None:
    agree = all(difference < -TIE_TOLERANCE for difference in per_seed)
    assert decide_promotion(constant(per_seed), "new", "old", 1).promoted == agree
