"""Proposals against plain NumPy: conditioning, GP-UCB, believed trials, penalties, maxima."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tuning_priors import prior_over

from hyperbo.bayesopt.history import History, capacity_for, conditioned_values, padded
from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.errors import NumericalError
from hyperbo.gp.numerics import double_precision
from hyperbo.tuning import proposals
from hyperbo.tuning.batches import BATCH_STRATEGIES, Anchored, Box, acquisition_of, sampled
from hyperbo.tuning.proposals import _climbed
from hyperbo.tuning.region import Choices, Range, Region

# Of the prior alone; the mixture has a file of its own.
propose = partial(proposals.propose, prior_weight=1.0)
PRIOR = prior_over()
SPACE = PRIOR.description.search_space
WHOLE = Region.of(SPACE, {})
NOTHING = History(np.zeros((0, 2)), np.zeros(0), np.zeros((0, 2)))
AT = np.random.default_rng(5).uniform(size=(40, 2))


def history(count, pending, seed=0):
    random = np.random.default_rng(seed)
    y = random.normal(size=count)
    y[3::4] = np.nan
    return History(random.uniform(size=(count, 2)), y, random.uniform(size=(pending, 2)))


def rows_of(given):
    """A history with room for sixteen trials."""
    return padded(given, 16)


def softplus(value):
    return np.logaddexp(np.asarray(value, np.float64), 0.0)


class PlainGP:
    """The posterior by solving, Eqs. (post_mu_approx) and (post_k_approx), from the prior's arrays alone."""

    def __init__(self, gp):
        self.weights = [
            (np.asarray(w), np.asarray(b))
            for w, b in zip(gp.features.weights, gp.features.biases, strict=True)
        ]
        self.slope = np.asarray(gp.mean.weight)
        self.signal, self.noise = softplus(gp.kernel.raw_signal_variance), softplus(gp.raw_noise_variance)
        self.lengthscales = softplus(gp.kernel.raw_lengthscales)

    def features(self, x):
        for weight, bias in self.weights:
            x = np.tanh(x @ weight + bias)
        return x

    def prior_mean(self, x):
        return self.features(x) @ self.slope

    def kernel(self, a, b):
        apart = (self.features(a)[:, None] - self.features(b)[None]) / self.lengthscales
        distance = np.sqrt(3.0 * np.sum(apart**2, axis=2))
        return self.signal * (1.0 + distance) * np.exp(-distance)

    def posterior(self, at, x, y):
        """Mean, and variance without noise."""
        covariance = self.kernel(x, x) + self.noise * np.eye(len(x))
        cross = self.kernel(x, at)
        solved = np.linalg.solve(covariance, cross)
        return self.prior_mean(at) + solved.T @ (y - self.prior_mean(x)), self.signal - np.sum(
            cross * solved, 0
        )


def mapped(y):
    """The paper's online map, with plain NumPy."""
    seen = y[np.isfinite(y)]
    top = softplus(seen.max() - np.median(seen))
    return np.where(np.isfinite(y), 4.0 * softplus(np.nan_to_num(y) - np.median(seen)) / top - 2.0, -2.0)


@double_precision
def uniform_grid():
    """The points at which the slope of the mean is looked for."""
    return jax.random.uniform(jax.random.key(0), (256, 2), jnp.float64)


@double_precision
def score(strategy, given, at=AT, is_mapped=True):
    box = Box(jnp.zeros(2), jnp.ones(2))
    acquisition = acquisition_of(PRIOR.gp, rows_of(given), box, strategy, is_mapped, 1.0)
    return np.asarray(acquisition(jnp.asarray(at)))


def ucb(mean, variance, plain):
    return mean + 1.8 * np.sqrt(variance + plain.noise)  # Eq. (acfun-ucb), the online coefficient


@pytest.mark.parametrize("strategy", ["kriging_believer", "constant_liar"])
def test_without_running_trials_it_is_ucb(strategy):
    given, plain = history(9, 0), PlainGP(PRIOR.gp)
    expected = ucb(*plain.posterior(AT, given.x, mapped(given.y)), plain)
    np.testing.assert_allclose(score(strategy, given), expected, atol=1e-8)


@double_precision
def test_a_row_moves_from_its_anchor_inside_the_box():
    box = Box(jnp.array([0.25, -0.5]), jnp.array([0.5, 0.0]))
    anchors, moves = jnp.array([[0.1, 7.0], [0.2, 8.0]]), jnp.array([[True, False], [False, True]])
    anchored = Anchored(lambda x: jnp.sum(x, axis=1), box, anchors, moves)
    t = jnp.array([[0.5, 0.9], [0.5, 0.9]])
    np.testing.assert_allclose(anchored.at(t), [[0.5, 7.0], [0.2, -0.5]])
    np.testing.assert_allclose(anchored(t), [7.5, -0.3])


def test_a_believed_trial_leaves_the_mean_and_shrinks_the_variance():
    given, plain = history(9, 2), PlainGP(PRIOR.gp)
    y = mapped(given.y)
    mean, _ = plain.posterior(AT, given.x, y)
    believed, _ = plain.posterior(given.pending, given.x, y)
    x = np.concatenate([given.x, given.pending])
    again, variance = plain.posterior(AT, x, np.concatenate([y, believed]))
    np.testing.assert_allclose(again, mean, atol=1e-8)
    np.testing.assert_allclose(score("kriging_believer", given), ucb(mean, variance, plain), atol=1e-8)


def test_a_lied_about_trial_has_the_worst_value():
    given, plain = history(9, 2), PlainGP(PRIOR.gp)
    y = mapped(given.y)
    x = np.concatenate([given.x, given.pending])
    expected = ucb(*plain.posterior(AT, x, np.concatenate([y, [y.min()] * 2])), plain)
    np.testing.assert_allclose(score("constant_liar", given), expected, atol=1e-8)


@pytest.mark.slow
def test_local_penalties_are_those_of_gonzalez():
    given, plain = history(9, 2), PlainGP(PRIOR.gp)
    y = mapped(given.y)
    at_pending, variance = plain.posterior(given.pending, given.x, y)
    log_ucb = np.log(softplus(ucb(*plain.posterior(AT, given.x, y), plain)))
    penalty = score("local_penalization", given) - log_ucb
    distance = np.linalg.norm(AT[:, None] - given.pending[None], axis=2)

    grid = np.asarray(uniform_grid())
    largest = max(y.max(), at_pending.max(), plain.posterior(grid, given.x, y)[0].max())

    def expected(slope):
        z = (slope * distance - largest + at_pending) / np.sqrt(variance)
        phi = np.array([[0.5 * math.erfc(-each / math.sqrt(2.0)) for each in row] for row in z])
        return np.log(np.maximum(phi, 1e-300)).sum(axis=1)

    def steepest():
        step, found = 1e-6, np.zeros((256, 2))
        for axis in range(2):
            shift = step * np.eye(2)[axis]
            ahead, behind = (plain.posterior(grid + sign * shift, given.x, y)[0] for sign in (1, -1))
            found[:, axis] = (ahead - behind) / (2 * step)
        return np.linalg.norm(found, axis=1).max()

    np.testing.assert_allclose(penalty, expected(steepest()), rtol=1e-4, atol=1e-4)
    assert penalty.max() <= 1e-9
    assert penalty[np.argmin(distance.min(axis=1))] < penalty[np.argmax(distance.min(axis=1))]


def test_local_penalties_work_where_values_are_far_below_zero():
    given = history(9, 2)
    low = given._replace(y=given.y - 1000.0)
    x = propose(PRIOR.gp, WHOLE, low, np.random.default_rng(0), "local_penalization", mapped=False)
    assert ((x >= 0.0) & (x <= 1.0)).all()
    assert np.isfinite(score("local_penalization", low, is_mapped=False)).all()


def test_a_held_value_has_no_slope():
    given = history(9, 2)
    with jax.enable_x64(True):
        held = Box(jnp.asarray([0.0, 0.5]), jnp.asarray([1.0, 0.0]))
        found = acquisition_of(PRIOR.gp, rows_of(given), held, "local_penalization", True, 1.0)
        free = jax.vmap(jax.grad(lambda t: found.score.posterior.mean(held(t[None]))[0]))(uniform_grid())
        np.testing.assert_allclose(found.slope, jnp.max(jnp.abs(free[:, 0])), rtol=1e-9)


def test_infeasible_trials_count_as_the_worst_where_values_are_not_mapped():
    given, plain = history(9, 0), PlainGP(PRIOR.gp)
    y = np.where(np.isfinite(given.y), given.y, np.nanmin(given.y))
    expected = ucb(*plain.posterior(AT, given.x, y), plain)
    np.testing.assert_allclose(score("constant_liar", given, is_mapped=False), expected, atol=1e-8)

    with jax.enable_x64(True):
        only = History(given.x[:2], np.full(2, np.nan), given.pending)
        values = np.asarray(conditioned_values(PRIOR.gp, rows_of(only), False))[:2]
    np.testing.assert_allclose(values, plain.prior_mean(only.x) - 2.0 * np.sqrt(plain.signal), atol=1e-10)


def test_a_drawn_function_has_the_posteriors_moments():
    given, plain = history(9, 2), PlainGP(PRIOR.gp)
    mean, variance = plain.posterior(AT, given.x, mapped(given.y))
    with jax.enable_x64(True):
        rows = rows_of(given)
        draw = jax.jit(lambda key: sampled(PRIOR.gp, rows, jnp.asarray(AT), key, True, 1.0))
        draws = np.stack([np.asarray(draw(jax.random.key(seed))) for seed in range(600)])
    error = np.sqrt(variance / len(draws))
    assert (np.abs(draws.mean(axis=0) - mean) < 5.0 * error + 1e-3).all()
    np.testing.assert_allclose(draws.std(axis=0), np.sqrt(variance), rtol=0.25, atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("given", [NOTHING, history(9, 0), history(9, 2)], ids=["empty", "told", "running"])
@pytest.mark.parametrize("strategy", ["kriging_believer", "constant_liar", "local_penalization"])
def test_the_proposal_is_the_largest_of_a_fine_grid(strategy, given):
    x = propose(PRIOR.gp, WHOLE, given, np.random.default_rng(0), strategy)
    assert ((x >= 0.0) & (x <= 1.0)).all()
    line = np.linspace(0.0, 1.0, 60)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    (found,) = score(strategy, given, x[None])
    assert found >= score(strategy, given, grid).max() - 1e-6


@pytest.mark.parametrize("strategy", BATCH_STRATEGIES)
def test_discrete_proposals_are_allowed_and_new(strategy):
    region = Region.of(SPACE, {"x": Choices((0.0, 0.5, 1.0)), "y": Range(0.0, 1.0, 0.5)})
    allowed = {(a, b) for a in (0.0, 0.5, 1.0) for b in (0.0, 0.5, 1.0)}
    tried = []
    for number in range(9):
        known = History(np.array(tried).reshape(-1, 2), np.linspace(0.0, 1.0, number), np.zeros((0, 2)))
        tried.append(tuple(propose(PRIOR.gp, region, known, np.random.default_rng(number), strategy)))
    # Nine points, tried once each; then there is nothing new.
    assert set(tried) == allowed
    known = History(np.array(tried), np.linspace(0.0, 1.0, 9), np.zeros((0, 2)))
    assert tuple(propose(PRIOR.gp, region, known, np.random.default_rng(9), strategy)) in allowed


def test_a_discrete_proposal_is_the_best_one_that_is_allowed():
    region = Region.of(SPACE, {"x": Range(0.0, 1.0, 0.125), "y": Choices((0.1, 0.2, 0.4, 0.9))})
    given = history(9, 0)
    x = propose(PRIOR.gp, region, given, np.random.default_rng(0), "constant_liar")
    steps, choices = np.arange(9) / 8, (0.1, 0.2, 0.4, 0.9)
    points = np.array([(a, b) for a in steps for b in choices])
    assert tuple(x) == tuple(points[np.argmax(score("constant_liar", given, points))])


@pytest.mark.parametrize("strategy", BATCH_STRATEGIES)
def test_equal_draws_give_equal_proposals(strategy):
    first, again = (
        propose(PRIOR.gp, WHOLE, history(9, 2), np.random.default_rng(3), strategy) for _ in range(2)
    )
    assert first.tolist() == again.tolist()


@pytest.mark.parametrize("strategy", BATCH_STRATEGIES)
def test_trials_at_the_same_time_are_apart(strategy):
    pending = []
    for number in range(4):
        given = history(9, 0)._replace(pending=np.array(pending).reshape(-1, 2))
        pending.append(propose(PRIOR.gp, WHOLE, given, np.random.default_rng(number), strategy))
    apart = np.linalg.norm(np.array(pending)[:, None] - np.array(pending)[None], axis=2)
    assert apart[~np.eye(4, dtype=bool)].min() > 1e-3


def test_programs_are_compiled_for_capacities_only():
    _climbed.clear_cache()
    for count in (0, 3, 15, 17, 40):
        propose(PRIOR.gp, WHOLE, history(count, 1), np.random.default_rng(0))
    assert _climbed._cache_size() == 2
    assert capacity_for(18, refits=False) == capacity_for(41, refits=False)


def test_a_prior_that_is_not_finite_is_said():
    broken = prior_over(SearchSpace((Parameter("x", 0.0, 1.0), Parameter("y", 0.0, 1.0))))
    gp = jax.tree.map(lambda leaf: np.asarray(leaf) * np.nan, broken.gp)
    with pytest.raises(NumericalError, match="nowhere finite"):
        propose(gp, WHOLE, NOTHING, np.random.default_rng(0))
