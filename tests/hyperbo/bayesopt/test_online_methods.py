"""What a refit minimises, what is maximised after it, and which settings are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from online_cases import DATA, METHODS, SMALL, UCB
from scipy.stats import multivariate_normal

from hyperbo.bayesopt.history import History, PaddedHistory, capacity_for, padded, run_stream
from hyperbo.bayesopt.online_methods import (
    ONLINE_METHODS,
    Retrained,
    SingleTask,
    paper_online,
    retraining_data,
    retraining_loss,
)
from hyperbo.bayesopt.propose import Maximisation, maximise_ucb, propose_for_runs, refit
from hyperbo.data.subsets import at_most_points
from hyperbo.data.warping import online_map
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.methods import HNLL, STBO, HSum
from hyperbo.pretrain import Job, NLLTraining, SumTraining

pytestmark = pytest.mark.usefixtures("x64")
PROPOSED = jax.jit(maximise_ucb, static_argnums=(2, 3))
LOSS = jax.jit(retraining_loss, static_argnums=(3, 4))
JOBS = [Job(DATA, 0), Job(DATA.hold_out("d2"), 1)]
ONCE: Any = {"decision": UCB, "refit_iterations": 1}
STREAMS = [run_stream(task, 0) for task in ("left", "right")]


def history_of(x: np.ndarray, y: np.ndarray) -> History:
    return History(x, y, np.zeros((0, 2)))


def random_observations(count: int, capacity: int = 10, seed: int = 0) -> PaddedHistory:
    random = np.random.default_rng(seed)
    y = random.normal(size=count)
    y[1::3] = np.nan
    return padded(history_of(random.random((count, 2)), y), capacity)


def moments(gp: GaussianProcess, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean, covariance = reference.structure_moments(SMALL, gp, x, x)
    return mean, covariance.reshape(len(x), len(x)) + reference.noise_variance(gp) * np.eye(len(x))


def nll(gp: GaussianProcess, x: np.ndarray, y: np.ndarray) -> float:
    return -float(multivariate_normal(*moments(gp, x)).logpdf(y))


@pytest.mark.parametrize("job", [0, 1], ids=["three tasks", "two tasks"])
def test_the_retraining_loss_is_ekl_plus_a_share_of_the_mean_nll_with_the_run_as_one_more_task(
    job: int,
) -> None:
    gp = reference.random_structure(3, SMALL)
    data = retraining_data(JOBS, 5, "mle")[job]
    seen = random_observations(4)
    found = LOSS(gp, data, seen, 1.0, 0.1)
    # Eq. (nll) over the points of the tasks and of the run, Eq. (nondegenerate) without its constants.
    points = [
        (np.asarray(x)[keep], np.asarray(y)[keep])
        for x, y, keep, weight in zip(
            data.x, data.y, np.asarray(data.mask), np.asarray(data.weights), strict=True
        )
        if weight
    ]
    assert [len(y) for _, y in points] == [5] * len(JOBS[job].training.tasks)
    points.append((np.asarray(seen.x)[:4], np.asarray(seen.mapped)[:4]))
    mean_nll = np.mean([nll(gp, x, y) for x, y in points])
    (block,) = JOBS[job].training.complete_blocks
    mean, covariance = moments(gp, block.x)
    precision, difference = np.linalg.inv(covariance), mean - block.y.mean(axis=1)
    ekl = 0.5 * (
        np.trace(precision @ np.cov(block.y, bias=True))
        + difference @ precision @ difference
        + np.linalg.slogdet(covariance)[1]
        + len(mean) * np.log(2.0 * np.pi)
    )
    np.testing.assert_allclose(float(found), ekl + 0.1 * mean_nll, rtol=1e-9)


def test_points_are_drawn_from_those_of_the_tasks() -> None:
    (data,) = retraining_data(JOBS[:1], 5, None)
    assert data.blocks is None
    for task, x, y in zip(DATA.tasks, np.asarray(data.x), np.asarray(data.y), strict=True):
        whole = {(*point, value) for point, value in zip(task.x.tolist(), task.y.tolist(), strict=True)}
        kept = {(*point, value) for point, value in zip(x.tolist(), y.tolist(), strict=True)}
        assert len(kept) == 5
        assert kept <= whole


def test_a_refit_lowers_its_loss_and_does_nothing_before_the_first_observation() -> None:
    gp = reference.random_structure(3, SMALL)

    (data,) = retraining_data(JOBS[:1], 5, None)

    def loss(gp: GaussianProcess, seen: PaddedHistory) -> jax.Array:
        return retraining_loss(gp, data, seen, 0.0, 1.0)

    fitted = jax.jit(lambda gp, seen: refit(lambda gp: loss(gp, seen), gp, seen, 6))
    value, some = jax.jit(loss), random_observations(4)
    assert float(value(fitted(gp, some), some)) < float(value(gp, some)) - 0.1
    same = fitted(gp, random_observations(0))
    for leaf, origin in zip(jax.tree.leaves(same), jax.tree.leaves(gp), strict=True):
        np.testing.assert_array_equal(leaf, origin)


@pytest.mark.parametrize("count", [0, 5])
def test_the_proposal_has_the_largest_upper_confidence_bound(count: int) -> None:
    gp = reference.random_structure(3, SMALL)
    seen = random_observations(count)
    found = PROPOSED(gp, seen, 1.8, Maximisation(16, 2, 40), jax.random.key(0))
    # Eq. (acfun-ucb), with Eqs. (post_mu_approx) and (post_k_approx) by dense algebra, on a fine grid.
    axis = np.linspace(0.0, 1.0, 41)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    at = np.concatenate([np.asarray(found.x)[None], grid])
    x, y = np.asarray(seen.x)[:count], np.asarray(seen.mapped)[:count]
    mean, cross = reference.structure_moments(SMALL, gp, at, x)
    prior_mean, covariance = moments(gp, x)
    gain = np.linalg.solve(covariance, cross.T).T
    signal_variance = reference.softplus(gp.kernel.raw_signal_variance)
    variance = signal_variance - np.sum(gain * cross, axis=1) + reference.noise_variance(gp)
    bound = mean + gain @ (y - prior_mean) + 1.8 * np.sqrt(variance)
    np.testing.assert_allclose(float(found.score), bound[0], rtol=1e-8)
    assert bound[0] >= bound[1:].max() - 1e-6


def test_values_are_mapped_anew_as_more_are_seen() -> None:
    seen = random_observations(4)
    values = np.array([np.asarray(seen.y)[0], np.nan, *np.asarray(seen.y)[2:4]])
    np.testing.assert_allclose(
        np.asarray(seen.mapped)[:4], online_map(values, np.isfinite(values)), rtol=1e-14
    )
    one = padded(history_of(np.zeros((1, 2)), np.array([-3.0])), 4)
    np.testing.assert_array_equal(one.mapped, [2.0, -2.0, -2.0, -2.0])


@pytest.fixture(scope="module")
def learned() -> dict[str, Any]:
    """Of each method what it has learned from two jobs; priors are drawn instead of trained."""
    with jax.enable_x64(True):
        priors = [reference.random_structure(seed, SMALL) for seed in (1, 2)]
        return {
            label: method.with_priors(JOBS, priors) if isinstance(method, Retrained) else method.fit(JOBS)
            for label, method in METHODS.items()
        }


# H-NLL is H-EKL without blocks, and STBOH is what the runs are tested with.
@pytest.mark.slow
@pytest.mark.parametrize("label", ["H-EKL", "STBO", "Rand"])
def test_every_method_proposes_points_of_its_own_for_each_run(label: str, learned: dict[str, Any]) -> None:
    x = np.random.default_rng(0).random((3, 2))
    histories = [
        history_of(x, np.array([0.5, np.nan, 1.5])),
        history_of(x, np.array([1.5, np.nan, -0.5])),
    ]
    points, scores = propose_for_runs(METHODS[label], learned[label], histories, STREAMS)
    assert points.shape == (2, 2)
    assert ((points >= 0.0) & (points <= 1.0)).all()
    assert np.isfinite(scores).all()
    assert (points[0] != points[1]).any()
    again, _ = propose_for_runs(METHODS[label], learned[label], histories, STREAMS)
    np.testing.assert_array_equal(points, again)


@pytest.mark.slow
def test_fitting_is_the_pretraining_of_the_method_on_its_jobs() -> None:
    all_points = METHODS["H-NLL"]
    assert isinstance(all_points, Retrained)
    method = replace(all_points, pretraining_points=5)
    few = [Job(at_most_points(job.training, 5, job.seed), job.seed) for job in JOBS]
    priors = [pretrained.gp for pretrained in method.method.pretrain(few)]
    expected = jax.tree.leaves(method.with_priors(JOBS, priors))
    for found, leaf in zip(jax.tree.leaves(method.fit(JOBS)), expected, strict=True):
        np.testing.assert_array_equal(found, leaf)


@pytest.mark.slow
def test_a_method_that_is_nowhere_finite_says_so_by_its_score(learned: dict[str, Any]) -> None:
    broken = jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), learned["STBO"])
    nothing = history_of(np.zeros((0, 2)), np.zeros(0))
    _, scores = propose_for_runs(METHODS["STBO"], broken, [nothing, nothing], STREAMS)
    assert not np.isfinite(scores).any()


def test_the_papers_settings() -> None:
    assert list(ONLINE_METHODS) == ["H-NLL", "H-EKL", "STBO", "STBOH", "Rand"]
    for label in ("H-NLL", "H-EKL", "STBO", "STBOH"):
        settings = ONLINE_METHODS[label]
        assert isinstance(settings, Retrained | SingleTask)
        assert settings.method.decision.acquisition == "upper_confidence_bound"
        assert settings.method.decision.coefficient == 1.8
    paper = {label: paper_online(method) for label, method in ONLINE_METHODS.items()}
    for label in ("H-NLL", "H-EKL", "STBO"):
        architecture = paper[label].method.architecture  # type: ignore[attr-defined]
        assert (architecture.hidden, architecture.kernel) == ((8,), "matern32")
        assert ONLINE_METHODS[label].method.architecture.hidden == (32, 32)  # type: ignore[attr-defined]
    assert paper["H-NLL"].method.training == NLLTraining.paper()  # type: ignore[attr-defined]
    assert [paper[label] for label in ("STBOH", "Rand")] == [ONLINE_METHODS["STBOH"], ONLINE_METHODS["Rand"]]
    training = ONLINE_METHODS["H-EKL"].method.training  # type: ignore[attr-defined]
    assert (training.ekl, training.nll) == (1.0, 0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SingleTask(STBO()), "STBO online: probability_of_improvement cannot be maximised"),
        (lambda: Retrained(HNLL(SMALL, decision=UCB)), "HNLL online: refit_iterations = 0"),
        (lambda: Retrained(HNLL(SMALL, **ONCE), 0), "points = 0"),
        (lambda: Retrained(HSum(SMALL, SumTraining(squared_euclidean=1.0), **ONCE)), "EKL and NLL only"),
        (lambda: Retrained(HNLL(SMALL, **ONCE), pretraining_points=0), "pretraining_points = 0"),
        (lambda: Maximisation(random_starts=0), "at least one random start"),
    ],
)
def test_settings_that_mean_nothing_online_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_capacities_do_not_depend_on_how_much_is_to_come() -> None:
    found = [capacity_for(count, refits=True) for count in range(130)]
    assert all(capacity >= count for count, capacity in enumerate(found))
    assert found == sorted(found)
    assert len(set(found)) == 6
