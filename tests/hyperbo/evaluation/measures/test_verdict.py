"""The verdict of an evaluation, beside plain loops: who is ahead, how much sooner, and after how much."""

import re

import numpy as np
import pytest

from hyperbo.evaluation.measures.verdict import BASELINES, verdict_of
from hyperbo.evaluation.records.run_array import RunArray
from hyperbo.methods import METHODS

ITERATIONS = 12
QUICK = np.array([0.8, 0.6, 0.3, 0.2, 0.1, *[0.05] * 7])
SLOW = np.array([0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.35, 0.32, 0.31, 0.3])


def regrets_of(curves, *, seeds=5, spread=0.01, tasks=("a", "b")):
    """Regrets of these mean curves: each seed is shifted by a multiple of `spread`, of mean zero."""
    shifts = spread * (np.arange(seeds) - (seeds - 1) / 2)
    # Each method meets the shifts in another order, so that differences vary.
    values = np.stack(
        [curve[None, None] + np.roll(shifts, row)[None, :, None] for row, curve in enumerate(curves.values())]
    )
    values = np.broadcast_to(values, (len(curves), len(tasks), seeds, ITERATIONS))
    return RunArray(tuple(curves), tuple(tasks), tuple(range(seeds)), np.array(values))


def judge(curves, methods=None, **how):
    of = methods or {}
    metadata = {"methods": {label: {"method": of[label]} if label in of else {} for label in curves}}
    return verdict_of(regrets_of(curves, **how), metadata)


def by_loops(own, other, seeds):
    """What the verdict is made of: the intervals of the difference and of the ratio, the differences."""
    random = np.random.default_rng(0)
    means, ratios, at = [], [], []
    for drawn in random.integers(seeds, size=(10_000, seeds))[:2000]:
        means.append(np.mean([own[s].mean() - other[s].mean() for s in drawn]))
        first, second = (np.mean([curve[s] for s in drawn], axis=0) for curve in (own, other))
        target = second[-1] + 1e-9
        needed = next((t for t, regret in enumerate(first, 1) if regret <= target), np.inf)
        ratios.append(next(t for t, regret in enumerate(second, 1) if regret <= target) / needed)
        at.append(first - second)
    return np.quantile(means, (0.025, 0.975)), np.quantile(ratios, (0.025, 0.975)), np.array(at)


def test_a_clear_win():
    verdict = judge({"H-NLL": QUICK, "Rand": SLOW + 0.2, "STBO": SLOW})
    assert (verdict.method, verdict.rival, verdict.standing) == ("H-NLL", "STBO", "ahead")
    assert verdict.difference == pytest.approx(np.mean(QUICK - SLOW))
    assert (verdict.pace.iterations, verdict.pace.other_iterations, verdict.pace.ratio) == (3, 12, 4)
    assert verdict.pace.regret == pytest.approx(0.3)
    assert verdict.ahead_after == tuple(range(1, 13))
    assert verdict.sentence.startswith(
        "H-NLL is ahead of STBO, the best baseline: it reaches STBO's final regret 4 times sooner (95 % "
        "interval 3 to 4), after 3 iterations instead of 12; "
    )
    assert verdict.sentence.endswith("H-NLL is ahead after every iteration.")


def test_the_numbers_are_those_of_plain_loops():
    regrets = regrets_of({"H-NLL": QUICK, "STBO": SLOW}, spread=0.1)
    verdict = verdict_of(regrets, {"methods": {"H-NLL": {}, "STBO": {}}})
    own, other = regrets.values.mean(axis=1)
    of_means, of_ratios, at = by_loops(own, other, 5)
    # 2,000 of the 10,000 resamples.
    assert (verdict.lower, verdict.upper) == pytest.approx(of_means, abs=0.01)
    assert (verdict.pace.lower, verdict.pace.upper) == pytest.approx(of_ratios, abs=0.5)
    low, high = np.quantile(at, (0.025, 0.975), axis=0)
    clear = np.abs(low) > 0.02
    for t in np.flatnonzero(clear & (np.abs(high) > 0.02)):
        assert (t + 1 in verdict.ahead_after) == (high[t] < 0)
        assert (t + 1 in verdict.behind_after) == (low[t] > 0)


def test_where_it_is_not_ahead_is_said():
    late = np.concatenate([SLOW[:2], QUICK[2:]])
    assert judge({"H-NLL": late, "STBO": SLOW}).sentence.endswith(
        "H-NLL is not ahead after iterations 1 to 2."
    )
    # Ahead at first and in the mean, behind at the end: it never gets where the other one ends.
    stuck = np.full(ITERATIONS, 0.35)
    verdict = judge({"H-NLL": stuck, "STBO": SLOW}, spread=0.001)
    assert (verdict.standing, verdict.pace.ratio) == ("ahead", 0.0)
    assert verdict.sentence == (
        "H-NLL is ahead of STBO, the best baseline, in the mean over all iterations: it never reaches "
        "STBO's final regret; H-NLL is not ahead after iteration 9 and is behind after iterations 10 to 12."
    )


def test_a_clear_loss_says_how_much_sooner_the_baseline_is():
    verdict = judge({"H-NLL": SLOW, "STBO": QUICK})
    assert verdict.standing == "behind"
    assert (verdict.pace.method, verdict.pace.ratio) == ("STBO", 4)
    assert verdict.sentence.startswith(
        "H-NLL is behind STBO, the best baseline: STBO reaches H-NLL's final regret"
    )
    assert verdict.sentence.endswith("; H-NLL is ahead after no iteration.")


def test_what_cannot_be_told_is_said_so():
    verdict = judge({"H-NLL": SLOW, "STBO": SLOW + 0.001}, spread=0.05)
    assert verdict.standing == "undecided"
    assert verdict.lower < 0 < verdict.upper
    assert verdict.sentence.startswith(
        "It cannot be told whether H-NLL is ahead of STBO, the best baseline: "
    )
    equal = judge({"H-NLL": SLOW, "STBO": SLOW}, spread=0.0)
    assert (equal.standing, equal.difference, equal.ahead_after) == ("undecided", 0, ())


def test_one_seed_tells_nothing_and_has_no_interval():
    verdict = judge({"H-NLL": QUICK, "STBO": SLOW}, seeds=1)
    assert verdict.standing == "one seed"
    assert np.isnan([verdict.lower, verdict.upper, verdict.pace.lower, verdict.pace.upper]).all()
    assert verdict.sentence == (
        "With one seed it cannot be told whether H-NLL is ahead of STBO, the best baseline; its regret is "
        "lower after iterations 1 to 12."
    )
    assert "its regret is higher after" in judge({"H-NLL": SLOW, "STBO": QUICK}, seeds=1).sentence


def test_the_best_baseline_is_the_rival_whatever_other_methods_do():
    curves = {"ours": SLOW, "H-EKL": QUICK, "order": SLOW - 0.1, "Rand": SLOW + 0.1}
    verdict = judge(curves, {"ours": "H-NLL", "order": "Best-average"})
    assert (verdict.rival, verdict.rival_is_baseline, verdict.standing) == ("order", True, "behind")
    # Where none was run, or the method is one itself, it is the best of all others.
    assert judge({"H-NLL": SLOW, "FSBO": SLOW, "ABLR": QUICK}).rival == "ABLR"
    assert "ABLR, the best of the others:" in judge({"H-NLL": SLOW, "ABLR": QUICK}).sentence
    assert judge({"STBO": SLOW, "Rand": SLOW, "H-NLL": QUICK}).rival == "H-NLL"
    assert judge({"H-NLL": SLOW}) is None
    assert set(BASELINES) <= set(METHODS)


def test_missing_runs_leave_out_tasks_and_methods():
    regrets = regrets_of({"H-NLL": QUICK, "STBO": SLOW, "Rand": SLOW, "MAF": SLOW})
    metadata = {"methods": {label: {} for label in regrets.methods}}
    values = regrets.values.copy()
    values[1, 0] -= 0.2  # STBO would be best on the task that Rand lacks
    values[2, 0, 3, 7:] = np.nan
    values[3] = np.nan
    verdict = verdict_of(RunArray(regrets.methods, regrets.tasks, regrets.seeds, values), metadata)
    assert (verdict.tasks, verdict.all_tasks) == (1, 2)
    assert verdict.difference == pytest.approx(np.mean(QUICK - SLOW))
    assert re.match(r"On 1 of 2 tasks, H-NLL is ahead of (STBO|Rand), the best baseline", verdict.sentence)
    values[0] = np.nan  # The method that the evaluation is about completed nothing.
    assert (
        verdict_of(RunArray(regrets.methods, regrets.tasks, regrets.seeds, values), metadata).method == "STBO"
    )
