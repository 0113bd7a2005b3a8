"""What is seen of a prior, against plain NumPy on its arrays and against the tuner itself."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from tuning_priors import prior_over

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.errors import NumericalError
from hyperbo.evaluation.prior.cuts import slices_through
from hyperbo.evaluation.prior.view import POINTS, view_prior
from hyperbo.gp.gaussian_process import Architecture, initialise
from hyperbo.gp.numerics import double_precision
from hyperbo.priors.file import Prior
from hyperbo.tuning.tuner import Tuner

SPACE = SearchSpace(
    (
        Parameter("rate", 1e-4, 1.0, "log"),
        Parameter("momentum", 0.0, 0.99, "log1m"),
        Parameter("power", -1.0, 2.0),
    )
)


@pytest.fixture(scope="module")
@double_precision
def prior():
    """With four times the weights of a prior as drawn, its functions vary within the cube."""
    drawn = prior_over(SPACE)
    weights = tuple(each * 4.0 for each in drawn.gp.features.weights)
    return replace(drawn, gp=replace(drawn.gp, features=replace(drawn.gp.features, weights=weights)))


@pytest.fixture(scope="module")
def view(prior):
    return view_prior(prior)


def softplus(raw):
    return np.logaddexp(np.asarray(raw, np.float64), 0.0)


class Plain:
    """Mean and kernel of the prior by their formulas: tanh layers, linear mean, Matern 3/2."""

    def __init__(self, gp):
        self.layers = [
            (np.asarray(weight), np.asarray(bias))
            for weight, bias in zip(gp.features.weights, gp.features.biases, strict=True)
        ]
        self.slope = np.asarray(gp.mean.weight)
        self.signal, self.noise = softplus(gp.kernel.raw_signal_variance), softplus(gp.raw_noise_variance)
        self.lengthscales = softplus(gp.kernel.raw_lengthscales)

    def features(self, x):
        for weight, bias in self.layers:
            x = np.tanh(x @ weight + bias)
        return x

    def mean(self, x):
        return self.features(x) @ self.slope

    def correlation(self, a, b):
        apart = (self.features(a)[:, None] - self.features(b)[None]) / self.lengthscales
        distance = np.sqrt(3.0 * np.sum(apart**2, axis=2))
        return (1.0 + distance) * np.exp(-distance)

    def along(self, best, axis, at):
        x = np.tile(best, (len(at), 1))
        x[:, axis] = at
        return x


@pytest.mark.slow
def test_the_best_point_has_the_largest_mean(prior, view):
    plain, best = Plain(prior.gp), view.promising.best
    grid = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 21)] * 3), axis=-1).reshape(-1, 3)
    assert view.promising.best_mean == pytest.approx(plain.mean(best[None])[0], abs=1e-12)
    assert view.promising.best_mean >= plain.mean(grid).max() - 1e-9
    assert ((best >= 0.0) & (best <= 1.0)).all()
    assert view.promising.best_deviation == pytest.approx(np.sqrt(plain.signal), abs=1e-12)


def test_the_promising_points_are_the_best_of_a_set_that_fills_the_cube(prior, view):
    plain, points = Plain(prior.gp), view.promising.points
    assert len(points) == round(0.05 * POINTS)
    lowest = plain.mean(points).min()
    uniform = np.random.default_rng(1).uniform(size=(20_000, 3))
    assert np.mean(plain.mean(uniform) >= lowest) == pytest.approx(0.05, abs=0.006)
    by_sort = np.sort(points, axis=0)
    np.testing.assert_allclose(view.promising.ranges[:, 0], by_sort[round(0.1 * len(points))], atol=0.01)
    np.testing.assert_allclose(view.promising.ranges[:, 1], by_sort[round(0.9 * len(points))], atol=0.01)


def test_proposals_are_what_a_tuner_asks_for(prior, view):
    tuner = Tuner(prior)
    trials = [tuner.ask().hyperparameters for _ in range(5)]
    asked = [[trial[name] for name in SPACE.names] for trial in trials]
    np.testing.assert_allclose(SPACE.from_unit(view.promising.proposals), asked, rtol=1e-9, atol=1e-12)
    plain = Plain(prior.gp)
    np.testing.assert_allclose(
        view.promising.proposal_means, plain.mean(view.promising.proposals), atol=1e-12
    )
    np.testing.assert_allclose(view.promising.proposal_deviations, np.sqrt(plain.signal), atol=1e-12)


def test_planes_hold_mean_and_what_a_trial_leaves_of_the_deviation(prior, view):
    plain, best, planes = Plain(prior.gp), view.promising.best, view.planes
    assert planes.pairs == ((0, 1), (0, 2), (1, 2))
    assert planes.after_trial
    for number, (first, second) in enumerate(planes.pairs):
        for row, column in ((0, 0), (5, 40), (47, 13)):
            x = best.copy()
            x[first], x[second] = planes.at[column], planes.at[row]
            assert planes.mean[number, row, column] == pytest.approx(plain.mean(x[None])[0], abs=1e-12)
            # Eq. (post_k_approx) with one observation.
            covariance = plain.signal * plain.correlation(x[None], best[None])[0, 0]
            left = plain.signal - covariance**2 / (plain.signal + plain.noise)
            assert planes.deviation[number, row, column] == pytest.approx(np.sqrt(left), abs=1e-10)


def test_slices_hold_mean_deviation_and_correlation(prior, view):
    plain, best, slices = Plain(prior.gp), view.promising.best, view.slices
    for axis in range(3):
        x = plain.along(best, axis, slices.at)
        np.testing.assert_allclose(slices.mean[axis], plain.mean(x), atol=1e-12)
        np.testing.assert_allclose(slices.deviation[axis], np.sqrt(plain.signal), atol=1e-12)
        correlation = plain.correlation(x, best[None])[:, 0]
        np.testing.assert_allclose(slices.correlation[axis], correlation, atol=1e-6)


def test_functions_have_the_priors_moments_and_are_the_same_in_all_slices(prior, view):
    plain, best, slices = Plain(prior.gp), view.promising.best, view.slices
    x = np.concatenate([plain.along(best, axis, slices.at) for axis in range(3)])
    thin, drawn = x[::9], slices.functions.reshape(5, -1)[:, ::9]
    factor = np.linalg.cholesky(plain.signal * plain.correlation(thin, thin) + 1e-8 * np.eye(len(thin)))
    z = np.linalg.solve(factor, (drawn - plain.mean(thin)).T)
    # 5 x 34 standard normal numbers: the sum of their squares within five of its standard deviations.
    assert abs((z**2).sum() - z.size) < 5.0 * np.sqrt(2.0 * z.size)
    nearest = [np.argmin(np.abs(slices.at - each)) for each in best]
    there = np.array([slices.functions[:, axis, at] for axis, at in enumerate(nearest)])
    apart = [plain.along(best, axis, slices.at[[at]]) for axis, at in enumerate(nearest)]
    for a, one in enumerate(apart):
        for b, other in enumerate(apart):
            left = np.sqrt(2.0 * plain.signal * max(1.0 - plain.correlation(one, other)[0, 0], 0.0))
            shift = plain.mean(one) - plain.mean(other)
            assert np.abs(there[a] - there[b] - shift).max() <= 4.0 * left + 1e-3


def test_the_correlation_is_one_half_where_it_is_said_to_be(prior):
    plain, best = Plain(prior.gp), np.array([0.31, 0.5, 0.77])
    with jax.enable_x64(True):
        half = slices_through(prior.gp, best).half
    assert np.isfinite(half).any()
    for axis, sides in enumerate(half):
        for edge, at in zip((0.0, 1.0), sides, strict=True):
            way = plain.along(best, axis, np.linspace(best[axis], edge if np.isnan(at) else at, 400))
            correlation = plain.correlation(way, best[None])[:, 0]
            if np.isnan(at):
                assert correlation.min() >= 0.5
            else:
                assert correlation[:-1].min() > 0.5 - 1e-5
                assert correlation[-1] == pytest.approx(0.5, abs=1e-4)


def test_lengthscales_noise_and_spans_are_the_models(prior, view):
    plain = Plain(prior.gp)
    np.testing.assert_allclose(view.lengthscales, plain.lengthscales, atol=1e-12)
    assert view.noise_deviation == pytest.approx(np.sqrt(plain.noise), abs=1e-12)
    uniform = plain.features(np.random.default_rng(2).uniform(size=(20_000, 3)))
    np.testing.assert_allclose(view.feature_spans, np.ptp(uniform, axis=0), rtol=0.05)


@double_precision
def with_architecture(architecture, *parameters):
    drawn = prior_over(SearchSpace(parameters))
    gp = initialise(jax.random.key(3), len(parameters), architecture)
    return Prior(gp, replace(drawn.description, architecture=architecture))


@pytest.mark.slow
def test_a_flat_mean_is_said_and_a_linear_kernel_has_a_deviation_of_its_own():
    prior = with_architecture(Architecture((4,), kernel="linear", mean="zero"), *SPACE.parameters[:2])
    view, gp = view_prior(prior), prior.gp
    assert view.promising.is_flat
    assert view.promising.best.tolist() == [0.5, 0.5]
    assert len(view.promising.points) == POINTS
    assert not view.planes.after_trial
    at = view.planes.at
    x = np.stack([np.tile(at, len(at)), np.repeat(at, len(at))], axis=1)
    features = np.tanh(x @ np.asarray(gp.features.weights[0]) + np.asarray(gp.features.biases[0]))
    bias, scale = softplus(gp.kernel.raw_bias), softplus(gp.kernel.raw_scale)
    expected = np.sqrt(bias**2 + (features**2).sum(axis=1) / scale**2)
    np.testing.assert_allclose(view.planes.deviation[0].ravel(), expected, atol=1e-12)
    np.testing.assert_allclose(view.lengthscales, np.full(4, scale), atol=1e-12)


@pytest.mark.slow
def test_one_parameter_without_features_has_no_planes_and_a_length_scale_of_its_own():
    architecture = Architecture((), kernel="squared_exponential", mean="affine", lengthscale=0.3)
    view = view_prior(with_architecture(architecture, Parameter("x", 0.0, 1.0)))
    assert view.planes is None
    assert view.slices.functions.shape[:2] == (5, 1)
    np.testing.assert_allclose(view.lengthscales, [0.3], atol=1e-12)
    np.testing.assert_allclose(view.feature_spans, [1.0], atol=0.01)
    # exp(-r^2 / 2) is one half at r = sqrt(2 ln 2) length scales; a linear mean is largest in a corner.
    (best,) = view.promising.best
    assert best in (0.0, 1.0)
    inside = view.slices.half[0, 0 if best == 1.0 else 1]
    assert abs(inside - best) == pytest.approx(0.3 * np.sqrt(2.0 * np.log(2.0)), abs=1e-5)
    assert np.isnan(view.slices.half[0, 1 if best == 1.0 else 0])


def test_a_prior_that_is_not_finite_is_said():
    broken = prior_over()
    gp = jax.tree.map(lambda leaf: np.asarray(leaf) * np.nan, broken.gp)
    with pytest.raises(NumericalError, match="training has failed"):
        view_prior(replace(broken, gp=gp))
