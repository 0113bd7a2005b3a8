"""Calibration against its definition, on predictions of a known distribution."""

import math
import statistics

import numpy as np
import pytest

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures.calibration import (
    CURVE_LEVELS,
    coverage,
    measure_calibration,
    standard_normal_quantiles,
)
from hyperbo.evaluation.records.runs import read_records, validate_records, write_records


@pytest.fixture
def predicted(records):
    """H-NLL is calibrated, H-EKL twice too sure of itself and too high by one, Rand predicts nothing."""
    random = np.random.default_rng(4)
    noise = random.normal(size=len(records))
    deviation = random.uniform(0.5, 2.0, len(records))
    own, sure = (records["method"] == name for name in ("H-NLL", "H-EKL"))
    records["mean"] = np.where(
        own,
        records["y"] + deviation * noise,
        np.where(sure, records["y"] + 2 * deviation * noise + 1, np.nan),
    )
    records["deviation"] = np.where(own | sure, deviation, np.nan)
    return records


def residuals_by_hand(records, method):
    """{seed: standardised residuals}, without candidates observed before; and how many those were."""
    seen, residuals, repeats = set(), {}, 0
    for row in records[records["method"] == method].sort_values("iteration").itertuples():
        if (row.task, row.seed, row.trial_id) in seen:
            repeats += 1
            continue
        seen.add((row.task, row.seed, row.trial_id))
        residuals.setdefault(row.seed, []).append(((row.y - row.mean) / row.deviation, row.deviation))
    return residuals, repeats


@pytest.mark.parametrize("method", ["H-NLL", "H-EKL"])
def test_calibration_is_its_definition(predicted, method):
    result = measure_calibration(predicted.sample(frac=1.0, random_state=2), method)
    by_seed, repeats = residuals_by_hand(predicted, method)
    every = [pair for pairs in by_seed.values() for pair in pairs]
    residuals = [z for z, _ in every]
    assert (result.predictions, result.repeats) == (len(every), repeats)
    assert repeats > 100
    for place, half_width in enumerate((0.674489750196, 1.281551565545, 1.959963984540)):
        shares = [statistics.fmean(abs(z) <= half_width for z, _ in pairs) for pairs in by_seed.values()]
        assert result.coverage[place] == pytest.approx(statistics.fmean(shares))
        assert result.coverage_std[place] == pytest.approx(statistics.stdev(shares))
    assert result.residual_mean == pytest.approx(statistics.fmean(residuals))
    assert result.residual_std == pytest.approx(statistics.stdev(residuals))
    np.testing.assert_allclose(result.residual_quantiles, np.percentile(residuals, (5, 25, 50, 75, 95)))
    density = [math.exp(-z * z / 2) / (s * math.sqrt(2 * math.pi)) for z, s in every]
    assert result.negative_log_density == pytest.approx(statistics.fmean(-math.log(d) for d in density))


def test_runs_that_share_a_prior_are_one_seed(predicted):
    alone, shared = (
        measure_calibration(predicted, "H-EKL"),
        measure_calibration(predicted, "H-EKL", runs_per_prior=2),
    )
    by_seed, _ = residuals_by_hand(predicted, "H-EKL")
    by_prior = [by_seed[0] + by_seed[1], by_seed[2] + by_seed[3], by_seed[4]]
    shares = [statistics.fmean(abs(z) <= 1.281551565545 for z, _ in pairs) for pairs in by_prior]
    assert shared.coverage[1] == pytest.approx(statistics.fmean(shares))
    assert shared.coverage_std[1] == pytest.approx(statistics.stdev(shares))
    assert shared.negative_log_density == alone.negative_log_density


def test_a_calibrated_model_is_seen_to_be_and_a_sure_one_too(predicted):
    good, sure = measure_calibration(predicted, "H-NLL"), measure_calibration(predicted, "H-EKL")
    np.testing.assert_allclose(good.coverage, (0.5, 0.8, 0.95), atol=0.06)
    np.testing.assert_allclose(good.curve, CURVE_LEVELS, atol=0.08)
    assert good.residual_mean == pytest.approx(0, abs=0.12)
    assert good.residual_std == pytest.approx(1, abs=0.1)
    assert (sure.curve < good.curve).all()
    assert sure.residual_mean < -0.5
    assert sure.residual_std > 1.8
    assert sure.negative_log_density > good.negative_log_density


def test_coverage_counts_an_interval_with_its_ends():
    np.testing.assert_allclose(standard_normal_quantiles((0.025, 0.5)), (-1.959963984540, 0), atol=1e-11)
    edge = standard_normal_quantiles((0.75,))
    assert coverage(np.concatenate([edge, -edge, edge * 1.001]), (0.5,)).tolist() == [pytest.approx(2 / 3)]


def test_no_predictions_no_calibration(records, predicted):
    assert measure_calibration(predicted, "Rand") is None
    assert measure_calibration(records.drop(columns=["mean", "deviation"]), "H-NLL") is None
    with pytest.raises(InvalidInputError, match="no record of the method 'MAF'"):
        measure_calibration(predicted, "MAF")


def test_predictions_survive_a_file(predicted, tmp_path):
    write_records(predicted, tmp_path / "records.parquet")
    again = read_records(tmp_path / "records.parquet")
    np.testing.assert_array_equal(again[["mean", "deviation"]], predicted[["mean", "deviation"]])


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("mean", math.nan, "row 7 .*only one of mean and deviation is given"),
        ("deviation", math.nan, "row 7 .*only one of mean and deviation is given"),
        ("mean", math.inf, "row 7 .*mean or deviation is infinite"),
        ("deviation", 0.0, "row 7 .*deviation is not above 0"),
    ],
)
def test_bad_predictions_are_refused(predicted, column, value, message):
    predicted.loc[7, column] = value
    with pytest.raises(InvalidInputError, match=message):
        validate_records(predicted)


def test_half_a_prediction_is_refused(predicted):
    with pytest.raises(InvalidInputError, match="column mean"):
        validate_records(predicted.drop(columns="deviation"))
    with pytest.raises(InvalidInputError, match="column mean has type int64"):
        validate_records(predicted.assign(mean=1))
