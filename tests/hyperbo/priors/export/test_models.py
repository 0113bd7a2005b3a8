"""A prior in GPyTorch and BoTorch predicts what it predicts here. Without PyTorch these tests are skipped."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from gp_cases import SPACE, random_structure
from prior_files import DESCRIPTION, make_prior

from hyperbo import load_prior
from hyperbo.errors import InvalidInputError
from hyperbo.gp import KERNELS, MEANS, Architecture, double_precision, posterior_moments, prior_moments
from hyperbo.priors.export import to_botorch, to_gpytorch
from hyperbo.priors.file import Prior

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # BoTorch's import warns of what it uses itself
    torch = pytest.importorskip("torch")
    pytest.importorskip("botorch")
    from botorch.acquisition import LogExpectedImprovement
    from botorch.optim import optimize_acqf

PARITY = {"rtol": 1e-10, "atol": 1e-10}
pytestmark = pytest.mark.filterwarnings("ignore")


@double_precision
def prior_of(kernel: str, mean: str, hidden: tuple[int, ...]) -> Prior:
    architecture = Architecture(hidden, kernel=kernel, mean=mean)
    return Prior(random_structure(3, architecture), replace(DESCRIPTION, architecture=architecture))


STRUCTURES = [
    *itertools.product(KERNELS, ["affine"], [(3, 4), ()]),
    *itertools.product(["matern52"], MEANS[:-1], [(3, 4)]),
]


@pytest.mark.parametrize(("kernel", "mean", "hidden"), STRUCTURES)
def test_predictions_before_and_after_observations_are_equal(
    kernel: str, mean: str, hidden: tuple[int, ...]
) -> None:
    prior = prior_of(kernel, mean, hidden)
    draw = np.random.default_rng(1)
    x, at = draw.uniform(size=(7, SPACE.dimension)), draw.uniform(size=(5, SPACE.dimension))
    y = draw.normal(size=7)
    t = torch.tensor(at)

    ours, theirs = prior_moments(prior.gp, at), to_gpytorch(prior)
    np.testing.assert_allclose(theirs.mean(t).numpy(), ours.mean, **PARITY)
    np.testing.assert_allclose(theirs.kernel(t).to_dense().numpy(), ours.covariance, **PARITY)
    np.testing.assert_allclose(theirs.kernel(t, diag=True).numpy(), np.diag(ours.covariance), **PARITY)

    model = to_botorch(prior, x, y)
    for noise in (False, True):
        ours = posterior_moments(prior.gp, x, y, at, noise=noise)
        with torch.no_grad():
            posterior = model.posterior(t, observation_noise=noise)
        np.testing.assert_allclose(posterior.mean[:, 0].numpy(), ours.mean, **PARITY)
        np.testing.assert_allclose(
            posterior.distribution.covariance_matrix.numpy(), ours.covariance, **PARITY
        )


@pytest.mark.parametrize("name", ["pd1-mini/h-ekl", "pd1-mini/h-nll"])
def test_a_shipped_prior_is_equal_given_functions_of_its_own(name: str) -> None:
    prior = load_prior(name)
    draw = np.random.default_rng(0)
    x, at = draw.uniform(size=(100, 4)), draw.uniform(size=(50, 4))
    y = draw.multivariate_normal(*prior_moments(prior.gp, x, noise=True))
    ours = posterior_moments(prior.gp, x, y, at)
    with torch.no_grad():
        posterior = to_botorch(name, torch.tensor(x), y).posterior(torch.tensor(at))
    np.testing.assert_allclose(posterior.mean[:, 0].numpy(), ours.mean, **PARITY)
    np.testing.assert_allclose(posterior.distribution.covariance_matrix.numpy(), ours.covariance, **PARITY)


def test_batches_new_observations_and_copies_are_those_of_any_model() -> None:
    prior, draw = make_prior(), np.random.default_rng(0)
    x, y, at = draw.uniform(size=(4, 2)), draw.normal(size=4), torch.tensor(draw.uniform(size=(3, 2, 2)))
    model = to_botorch(prior, x, y)
    ours = posterior_moments(prior.gp, x, y, at[1].numpy())
    with torch.no_grad():
        np.testing.assert_allclose(model.posterior(at).mean[1, :, 0].numpy(), ours.mean, **PARITY)
        more = model.condition_on_observations(at[0], torch.tensor([[0.1], [0.2]], dtype=torch.float64))
        found = more.posterior(at[1]).mean[:, 0].numpy()
        all_x, all_y = np.concatenate([x, at[0].numpy()]), np.append(y, [0.1, 0.2])
        expected = posterior_moments(prior.gp, all_x, all_y, at[1].numpy()).mean
        np.testing.assert_allclose(found, expected, **PARITY)
        for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert torch.equal(copied.posterior(at).mean, model.posterior(at).mean)


def test_nothing_is_fitted_and_the_acquisition_has_a_gradient() -> None:
    model = to_botorch("pd1-mini/h-ekl", [[0.4, 0.5, 0.6, 0.7]], [2.0])
    assert not any(each.requires_grad for each in model.parameters())
    assert all(each.is_contiguous() for each in model.parameters())  # what trains them further needs this
    bounds = torch.tensor([[0.0] * 4, [1.0] * 4], dtype=torch.float64)
    expected_improvement = LogExpectedImprovement(model, best_f=2.0)
    torch.manual_seed(0)
    candidate, value = optimize_acqf(expected_improvement, bounds, q=1, num_restarts=2, raw_samples=32)
    nearby = (candidate + 0.05 * torch.randn(20, 4, dtype=torch.float64)).clamp(0.0, 1.0)
    assert (expected_improvement(nearby[:, None]) <= value + 1e-9).all()


@pytest.mark.parametrize(("x", "y"), [([[0.1, 0.2]], [1.0, 2.0]), ([[0.1]], [1.0]), (np.zeros((0, 2)), [])])
def test_observations_that_do_not_fit_are_refused(x: list[list[float]], y: list[float]) -> None:
    with pytest.raises(InvalidInputError):
        to_botorch(make_prior(), x, y)
