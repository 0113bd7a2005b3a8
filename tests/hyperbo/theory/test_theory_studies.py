from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from hyperbo.errors import InvalidInputError
from hyperbo.theory import (
    AUGMENTATION_MODELS,
    METRICS,
    MODELS,
    AugmentationStudy,
    augmentation_study,
    finite_domain_study,
    loss_landscapes,
)

pytestmark = pytest.mark.slow


def squared_exponential(x: np.ndarray, lengthscale: float) -> np.ndarray:
    return np.exp(-((x[:, None] - x[None, :]) ** 2) / (2.0 * lengthscale**2))


@pytest.mark.parametrize("functions", [10, 50])
def test_the_posteriors_of_the_finite_study_are_conditional_normals(functions: int) -> None:
    study = finite_domain_study(functions, seed=4)
    residuals = study.training - study.training.mean(axis=0)
    estimate = residuals.T @ residuals / functions
    pre_trained = study.signal_variance * squared_exponential(study.x, study.lengthscale)
    zero, mean = np.zeros(5), study.training.mean(axis=0)
    moments = [
        (zero, squared_exponential(study.x, 1.0)),
        (mean, estimate),
        (mean, estimate),
        (zero, pre_trained),
    ]
    for model, (mean, covariance) in enumerate(moments):
        for t in range(1, 6):
            seen, rest = slice(0, t - 1), slice(t - 1, 5)
            # The block of the inverse: another way to a conditional normal than by solving.
            precision = np.linalg.inv(covariance)[rest, rest]
            variance = np.diag(np.linalg.inv(precision)).copy()
            shift = np.linalg.inv(covariance)[rest, seen] @ (study.test[seen] - mean[seen])
            if MODELS[model] == "unbiased":
                variance *= functions / (functions - t)
            np.testing.assert_allclose(
                study.mean[model, t - 1, rest],
                mean[rest] - np.linalg.solve(precision, shift),
                rtol=1e-6,
                atol=1e-8,
            )
            np.testing.assert_allclose(study.variance[model, t - 1, rest], variance, rtol=1e-6)
            np.testing.assert_allclose(study.mean[model, t - 1, seen], study.test[seen], rtol=0, atol=1e-9)
            np.testing.assert_array_equal(study.variance[model, t - 1, seen], 0.0)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_finite_study_pre_trains_to_the_smallest_ekl(seed: int) -> None:
    study = finite_domain_study(10, seed)
    mean, estimate = study.training.mean(axis=0), np.cov(study.training.T, bias=True)

    def ekl(log_parameters: np.ndarray) -> float:
        lengthscale, variance = np.exp(log_parameters)
        covariance = variance * squared_exponential(study.x, lengthscale)
        trace = np.trace(np.linalg.solve(covariance, estimate)) + mean @ np.linalg.solve(covariance, mean)
        return 0.5 * float(trace + np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(estimate)[1] - 5.0)

    found = minimize(ekl, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    np.testing.assert_allclose([study.lengthscale, study.signal_variance], np.exp(found.x), rtol=1e-5)


def test_more_training_functions_bring_the_estimates_closer_and_more_observations_further() -> None:
    errors = {}
    for functions in (10, 50):
        studies = [finite_domain_study(functions, seed) for seed in range(40)]
        mean = np.stack([study.mean for study in studies])
        # The last input, in true posterior deviations, after 0 .. 4 observations.
        deviation = np.sqrt(studies[0].variance[0, :, 4])
        errors[functions] = np.abs(mean[:, 1, :, 4] - mean[:, 0, :, 4]).mean(axis=0) / deviation
    assert (errors[50] < errors[10]).all()
    assert (np.diff(errors[10]) > 0.0).all()


def test_the_finite_study_needs_more_training_functions_than_inputs() -> None:
    with pytest.raises(InvalidInputError, match="6 training functions on 5 inputs; use at least 7"):
        finite_domain_study(6, seed=0)


def degenerate_ekl(mean: np.ndarray, covariance: np.ndarray, functions: np.ndarray) -> float:
    """Eq. (degenerate) on the eigenvectors of the estimate with the N - 1 largest eigenvalues."""
    rank = len(functions) - 1
    values, vectors = np.linalg.eigh(np.cov(functions.T, bias=True))
    inverse_root = vectors[:, -rank:] / np.sqrt(values[-rank:])
    projected = inverse_root.T @ covariance @ inverse_root
    difference = inverse_root.T @ (mean - functions.mean(axis=0))
    square = difference @ np.linalg.solve(projected, difference)
    trace = np.trace(np.linalg.inv(projected))
    return 0.5 * float(trace + square + np.linalg.slogdet(projected)[1] - rank)


def test_the_landscapes_are_the_losses_and_have_different_minima() -> None:
    landscapes = loss_landscapes(seed=0, resolution=30)
    for parameter, place in [(0, 3), (0, 20), (1, 11), (1, 25), (2, 0), (2, 29)]:
        constant, lengthscale, amplitude = (
            landscapes.values[parameter, place] if parameter == which else default
            for which, default in enumerate([0.0, 1.0, 1.0])
        )
        mean = np.full(5, constant)
        covariance: Any = amplitude**2 * squared_exponential(landscapes.x, lengthscale)
        expected = degenerate_ekl(mean, covariance, landscapes.training)
        assert landscapes.ekl[parameter, place] == pytest.approx(expected, rel=1e-6)
        distribution: Any = multivariate_normal(mean, covariance)
        expected = -distribution.logpdf(landscapes.training).mean()
        assert landscapes.nll[parameter, place] == pytest.approx(expected, rel=1e-7)
    assert (landscapes.ekl.argmin(axis=1) != landscapes.nll.argmin(axis=1)).all()


@cache
def augmented() -> AugmentationStudy:
    return augmentation_study(seed=1, points=24, iterations=60)


def test_the_table_of_the_augmentation_study_has_the_losses_of_its_models() -> None:
    study = augmented()
    assert study.losses.shape == (len(AUGMENTATION_MODELS), len(METRICS))
    assert study.largest_jitter == 0.0  # the losses are those of the models as they are
    seen = study.observed
    for model in range(len(AUGMENTATION_MODELS)):
        mean, covariance = study.prior_mean[model], study.prior_covariance[model]
        distribution: Any = multivariate_normal(mean, covariance)
        of_seen: Any = multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)])
        expected = [
            -distribution.logpdf(study.training).mean(),
            degenerate_ekl(mean, covariance, study.training),
            -distribution.logpdf(study.test),
            -of_seen.logpdf(study.test[seen]),
        ]
        np.testing.assert_allclose(study.losses[model], expected, rtol=1e-7)


def test_the_pre_trained_model_fits_the_training_functions_and_the_single_task_model_does_not() -> None:
    nll, ekl, nll_of_test, nll_of_observed = augmented().losses.T
    assert nll[1] < nll[2]
    assert ekl[1] < ekl[2]
    assert nll_of_test[1] < nll_of_test[2]
    assert nll_of_observed[2] == nll_of_observed.min()  # it minimises nothing else


def test_the_posteriors_of_the_augmentation_study_are_conditional_normals() -> None:
    study = augmented()
    seen = study.observed
    rest = np.setdiff1d(np.arange(len(study.x)), seen)
    for model in range(len(AUGMENTATION_MODELS)):
        mean, precision = study.prior_mean[model], np.linalg.inv(study.prior_covariance[model])
        block = precision[np.ix_(rest, rest)]
        shift = precision[np.ix_(rest, seen)] @ (study.test[seen] - mean[seen])
        np.testing.assert_allclose(
            study.posterior_mean[model, rest],
            mean[rest] - np.linalg.solve(block, shift),
            rtol=1e-6,
            atol=1e-8,
        )
        variance = np.diag(np.linalg.inv(block))
        np.testing.assert_allclose(study.posterior_variance[model, rest], variance, rtol=1e-6)
    assert (study.posterior_variance > 0.0).all()


def test_an_impossible_augmentation_study_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="4 observations of 3 points"):
        augmentation_study(seed=0, points=3, observations=4)
