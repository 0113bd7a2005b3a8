from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import SPACE, make_task, random_structure, softplus, structure_moments
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import entropy as entropy_of
from scipy.stats import multivariate_normal

from hyperbo.bayesopt.offline import Run, Simulation, simulate
from hyperbo.data.tuning_data import Provenance, Task, TuningData
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods.maf import method as maf_method
from hyperbo.methods.maf import training as maf_training
from hyperbo.methods.maf.episodes import (
    KnownTasks,
    ReLUNetwork,
    log_probabilities,
    most_probable,
    network_inputs,
    play,
)
from hyperbo.methods.maf.method import MAF, MAFPolicy, TrainedAcquisition
from hyperbo.methods.maf.policy_gradient import (
    ActorCritic,
    PolicyGradient,
    Transitions,
    clipped_objective,
    entropy,
    generalised_advantages,
    loss,
)
from hyperbo.methods.maf.training import MAFTraining
from hyperbo.methods.protocol import Policy
from hyperbo.pretrain import Job, TrainingError
from hyperbo.pretrain.task_gp import TaskGP

pytestmark = pytest.mark.usefixtures("x64")

HORIZON, CANDIDATES = 6, 7
ARCHITECTURE = Architecture((), kernel="squared_exponential", mean="constant")


def random_network(seed: int, sizes: tuple[int, ...]) -> ReLUNetwork:
    random = np.random.default_rng(seed)
    shapes = list(itertools.pairwise(sizes))
    return ReLUNetwork(
        tuple(jnp.asarray(random.normal(size=shape), jnp.float32) for shape in shapes),
        tuple(jnp.asarray(random.normal(size=width), jnp.float32) for _, width in shapes),
    )


def network_by_hand(network: ReLUNetwork, inputs: np.ndarray) -> np.ndarray:
    for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        inputs = np.maximum(inputs @ np.asarray(weight) + np.asarray(bias), 0.0)
    return (inputs @ np.asarray(network.weights[-1]) + np.asarray(network.biases[-1]))[..., 0]


# Policy gradient

finite = st.floats(-10.0, 10.0)
advantages = jax.jit(generalised_advantages, static_argnums=(2, 3))


@pytest.mark.parametrize(("discount", "decay"), [(0.98, 0.9), (0.9, 0.0), (1.0, 1.0)])
@given(steps=st.lists(st.tuples(finite, finite), min_size=5, max_size=5))
def test_advantages_are_the_discounted_sums_of_surprises(
    steps: list[tuple[float, float]], discount: float, decay: float
) -> None:
    rewards, values = np.array(steps).T
    found = advantages(jnp.asarray(rewards), jnp.asarray(values), discount, decay)
    following = [*values[1:], 0.0]
    expected = [
        sum(
            (discount * decay) ** (s - t) * (rewards[s] + discount * following[s] - values[s])
            for s in range(t, len(rewards))
        )
        for t in range(len(rewards))
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_a_ratio_beyond_the_clip_gains_nothing_more_but_may_lose() -> None:
    ratio = np.array([0.5, 0.85, 1.0, 1.15, 2.0])
    for advantage in (3.0, -3.0):
        found = clipped_objective(jnp.asarray(ratio), jnp.full(5, advantage), 0.15)
        expected = [
            min(r * advantage, (0.85 if r < 0.85 else 1.15 if r > 1.15 else r) * advantage) for r in ratio
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        slope = jax.grad(lambda r, a=advantage: jnp.sum(clipped_objective(r, jnp.full(5, a), 0.15)))
        moves = np.asarray(slope(jnp.asarray(ratio))) != 0.0
        assert moves[[0, 4]].tolist() == ([True, False] if advantage > 0.0 else [False, True])


def test_distributions_over_candidates_leave_padding_out() -> None:
    scores, mask = (
        np.random.default_rng(0).normal(size=(3, 5)),
        np.array([[1, 1, 1, 1, 1], [1, 0, 1, 0, 0], [0, 0, 0, 1, 0]]) > 0,
    )
    found = log_probabilities(jnp.asarray(scores), jnp.asarray(mask))
    for row in range(3):
        own = scores[row][mask[row]]
        np.testing.assert_allclose(found[row][mask[row]], own - logsumexp(own), rtol=1e-12, atol=1e-15)
        assert np.isneginf(np.asarray(found[row])[~mask[row]]).all()
        expected = entropy_of(np.exp(own - logsumexp(own)))
        np.testing.assert_allclose(entropy(found, jnp.asarray(mask))[row], expected, rtol=1e-12, atol=1e-15)
    inside = jnp.asarray(mask)
    slope = jax.grad(lambda s: jnp.sum(entropy(log_probabilities(s, inside), inside)))(jnp.asarray(scores))
    assert np.isfinite(slope).all()
    assert (np.asarray(slope)[~mask] == 0.0).all()


def test_the_loss_is_the_formula() -> None:
    random = np.random.default_rng(1)
    networks = ActorCritic(random_network(0, (3, 4, 5, 1)), random_network(1, (2, 4, 1)))
    inputs, mask = random.normal(size=(6, 4, 3)), np.ones((6, 4), bool)
    mask[2, 1:], mask[4, 3] = False, False
    time, choice = random.random((6, 2)), np.array([0, 3, 0, 1, 2, 2])
    before, advantage, target = -random.random(6), random.normal(size=6), random.normal(size=6)
    settings = PolicyGradient(clip=0.2, value_weight=0.7, entropy_weight=0.3)
    batch = Transitions(*map(jnp.asarray, (inputs, mask, time, choice, before, advantage, target)))
    loss_of = jax.jit(loss, static_argnums=2)
    found = loss_of(networks, batch, settings)

    scores = np.where(mask, network_by_hand(networks.policy, inputs), -np.inf)
    after = scores - logsumexp(scores, axis=1, keepdims=True)
    ratio = np.exp(after[np.arange(6), choice] - before)
    standard = (advantage - advantage.mean()) / advantage.std()
    gain = np.minimum(ratio * standard, np.clip(ratio, 0.8, 1.2) * standard).mean()
    squares = (network_by_hand(networks.value, time) - target) ** 2
    without_gain = 0.7 * squares.mean() - 0.3 * np.mean(entropy_of(np.exp(after), axis=1))
    np.testing.assert_allclose(found, without_gain - gain, rtol=1e-10)
    # Equal advantages gain nothing, and divide nothing by their deviation.
    equal = loss_of(networks, replace(batch, advantage=jnp.full(6, 3.0)), settings)
    np.testing.assert_allclose(equal, without_gain, rtol=1e-10)


# What the network sees, and a task's Gaussian process


def test_the_network_sees_the_textbook_posterior() -> None:
    random = np.random.default_rng(2)
    x, picks = random.random((CANDIDATES, 2)), [4, 0, 4, 6]
    y = random.normal(size=len(picks))
    gp = random_structure(3, ARCHITECTURE)
    noise = float(softplus(gp.raw_noise_variance))
    network = random_network(2, (6, 5, 5, 1))
    policy = MAFPolicy(network, gp, horizon=3)
    assert isinstance(policy, Policy)
    see = jax.jit(network_inputs, static_argnums=3)
    score, observe = jax.jit(policy.score), jax.jit(policy.observe)
    state = policy.start(jnp.asarray(x), jnp.ones(CANDIDATES, bool), len(picks))
    for step in range(len(picks) + 1):
        seen = picks[:step]
        mean, covariance = structure_moments(ARCHITECTURE, gp, x, x)
        gain = np.linalg.solve(covariance[np.ix_(seen, seen)] + noise * np.eye(step), covariance[seen]).T
        posterior_mean = mean + gain @ (y[:step] - mean[seen])
        variance = np.diag(covariance - gain @ covariance[seen])
        time = np.tile([min(step, 2), 3], (CANDIDATES, 1))  # the last step of an episode of three is 2
        expected = np.column_stack([posterior_mean, np.sqrt(variance), x, time])
        found = see(state.posterior, state.candidates, jnp.asarray(step), 3)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        state, scores = score(state, jnp.asarray(step), jax.random.key(0))
        np.testing.assert_allclose(scores.values, network_by_hand(network, expected), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(scores.mean, posterior_mean, rtol=1e-9)
        np.testing.assert_allclose(scores.deviation, np.sqrt(variance + noise), rtol=1e-9)
        if step < len(picks):
            state = observe(state, jnp.asarray(step), jnp.asarray(picks[step]), jnp.asarray(y[step]))


SMALL_GP = TaskGP(points=16, iterations=25)


def nll(gp: Any, x: np.ndarray, y: np.ndarray) -> float:
    mean, covariance = structure_moments(ARCHITECTURE, gp, x, x)
    noise = float(softplus(gp.raw_noise_variance))
    return -float(multivariate_normal(mean, covariance + noise * np.eye(len(x))).logpdf(y))


@pytest.mark.parametrize("count", [9, 40])
def test_a_task_gp_maximises_the_likelihood_of_points_of_its_task(count: int) -> None:
    random = np.random.default_rng(4)
    x = random.random((count, 2))
    y = 3.0 + np.sin(5.0 * x[:, 0]) + 0.1 * random.normal(size=count)
    rows = SMALL_GP.rows(count)
    assert len(set(rows)) == min(count, 16)
    assert set(rows) <= set(range(count))
    gp = SMALL_GP.fit(make_task("sine", "d", x, y))
    lowest = nll(gp, x[rows], y[rows])
    leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, gp))
    for place, leaf in enumerate(leaves):
        for change in (-0.1, 0.1):
            moved = [*leaves[:place], leaf + change * np.maximum(abs(leaf), 1.0), *leaves[place + 1 :]]
            assert nll(jax.tree.unflatten(structure, moved), x[rows], y[rows]) > lowest - 1e-6


def test_a_task_gp_that_is_not_finite_names_its_task() -> None:
    task = make_task("huge", "d", np.random.default_rng(0).random((16, 2)), np.zeros(16))
    with pytest.raises(NumericalError, match="the Gaussian process of task 'huge' has parameters"):
        SMALL_GP.fit(replace(task, y=1e200 * np.arange(16.0)))


@pytest.mark.parametrize(
    "y", [np.zeros(16), np.full(16, 5.0), np.sin(np.arange(16.0))], ids=["0", "5", "exact"]
)
def test_equal_or_noiseless_values_leave_a_gp_that_can_be_conditioned(y: np.ndarray) -> None:
    x = np.column_stack([np.arange(16.0), np.zeros(16)]) / 16.0
    gp = SMALL_GP.fit(make_task("flat", "d", x, y))
    assert float(softplus(gp.raw_noise_variance)) > 0.0
    assert np.isfinite(inputs_after_repeats(gp, jnp.asarray(x), jnp.asarray(y))).all()


@jax.jit
def inputs_after_repeats(gp: Any, x: jax.Array, y: jax.Array) -> jax.Array:
    """What the network sees after one candidate was observed four times."""
    posterior = CandidatePosterior.of(gp, x, 4)
    for step in range(4):
        posterior = posterior.observe(jnp.asarray(step), jnp.asarray(3), y[3])
    return network_inputs(posterior, x, jnp.asarray(4), 5)


# Episodes


def known_tasks(sizes: tuple[int, ...], padding: float) -> KnownTasks:
    random = np.random.default_rng(6)
    longest = max(sizes)
    x, y = random.random((len(sizes), longest, 2)), random.normal(size=(len(sizes), longest))
    mask = np.arange(longest) < np.array(sizes)[:, None]
    gps = [random_structure(number, ARCHITECTURE) for number in range(len(sizes))]
    stacked: Any = jax.tree.map(lambda *leaves: jnp.stack(leaves), *gps)
    padded_x, padded_y = np.where(mask[:, :, None], x, padding), np.where(mask, y, padding)
    return KnownTasks(jnp.asarray(padded_x), jnp.asarray(padded_y), jnp.asarray(mask), stacked)


@jax.jit
def draw_and_play(tasks: KnownTasks, key: jax.Array) -> Any:
    def one(key: jax.Array) -> Any:
        problem = tasks.draw(jnp.array([1, 0]), jnp.array([0.0, 2.0]), 5, key)
        return problem, play(random_network(2, (6, 4, 1)), problem, HORIZON, jax.random.categorical, key)

    return jax.vmap(one)(jax.random.split(key, 40))


@pytest.mark.parametrize("size", [3, 9])
def test_an_episode_is_played_on_points_of_the_task_with_its_best_among_them(size: int) -> None:
    tasks = known_tasks((size, 11), padding=0.0)  # the weight of the second is zero
    problems, episodes = draw_and_play(tasks, jax.random.key(0))
    own = np.asarray(tasks.y)[0, :size]
    drawn = [y[mask] for y, mask in zip(np.asarray(problems.y), np.asarray(problems.mask), strict=True)]
    assert {len(y) for y in drawn} == {min(size, 5)}
    for y, choices, regret in zip(
        drawn, np.asarray(episodes.choice), np.asarray(episodes.regret), strict=True
    ):
        assert set(y) <= set(own)
        assert len(set(y)) == len(y)
        assert own.max() in y
        assert choices.max() < len(y)  # padding is never chosen
        np.testing.assert_array_equal(regret, own.max() - np.maximum.accumulate(y[choices]))
    assert {float(value) for y in drawn for value in y} == set(own)  # every point has its chance
    assert len({tuple(choices) for choices in np.asarray(episodes.choice)}) > 5  # choices are drawn


def test_what_stands_in_the_padding_changes_nothing() -> None:
    zeros, other = (draw_and_play(known_tasks((3, 11), padding), jax.random.key(1)) for padding in (0.0, 0.9))
    for field in ("choice", "log_probability", "regret"):
        np.testing.assert_array_equal(getattr(zeros[1], field), getattr(other[1], field))
    # What the network saw of the candidates is the same; of the padding it is not.
    of_candidates = np.broadcast_to(np.asarray(zeros[0].mask)[:, None, :, None], zeros[1].inputs.shape)
    same = np.asarray(zeros[1].inputs) == np.asarray(other[1].inputs)
    assert same[of_candidates].all()
    assert not same[~of_candidates].all()


# Training


def related_tasks(seed: int, count: int) -> list[Task]:
    """Bowls whose optima lie close to one place, each seen at inputs of its own."""
    random = np.random.default_rng(seed)
    tasks = []
    for number in range(count):
        x = random.random((random.integers(30, 40), 2))
        centre = np.array([0.75, 0.3]) + 0.05 * random.normal(size=2)
        y = -5.0 * ((x - centre) ** 2).sum(axis=1) + 0.02 * random.normal(size=len(x))
        tasks.append(make_task(f"{seed}-{number}", f"d{number}", x, y))
    return tasks


def job(tasks: list[Task], seed: int) -> Job:
    return Job(TuningData(SPACE, tuple(tasks), (), Provenance("case/bowls:1.0.0", "hash", "paper")), seed)


TRAINING = MAFTraining(
    hidden=(16, 16),
    weight_scale=0.1,
    horizon=HORIZON,
    episodes=16,
    candidates=20,
    iterations=60,
    validation_tasks=3,
    iterations_per_call=30,
    optimization=PolicyGradient(learning_rate=3e-3, minibatch=24),
)
METHOD = MAF(SMALL_GP, TRAINING)
KNOWN, NEW = related_tasks(0, 4), related_tasks(1, 8)


@pytest.fixture(scope="module")
def fitted() -> list[TrainedAcquisition]:
    calls: list[tuple[int, int]] = []
    results = METHOD.fit([job(KNOWN, seed) for seed in (0, 1, 0)], lambda *call: calls.append(call))
    assert calls == [(0, 60), (30, 60), (60, 60)]
    return results


@pytest.fixture(scope="module")
def simulation(fitted: list[TrainedAcquisition]) -> Simulation:
    runs = [Run(METHOD.policy(fitted[0], task), task, 0) for task in (*KNOWN, *NEW)]
    return simulate(runs, HORIZON, repeats=True)  # as in its training


@pytest.mark.slow
def test_the_same_seed_gives_the_same_network(fitted: list[TrainedAcquisition]) -> None:
    jax.tree.map(np.testing.assert_array_equal, fitted[0], fitted[2])
    assert not np.array_equal(fitted[0].rewards, fitted[1].rewards)
    assert not np.array_equal(fitted[0].network.weights[0], fitted[1].network.weights[0])


@pytest.mark.slow
def test_training_raises_its_own_reward(fitted: list[TrainedAcquisition]) -> None:
    for result in fitted[:2]:
        assert result.rewards[-10:].mean() > result.rewards[:10].mean() + 0.3


def regrets(tasks: list[Task], choices: Iterable[np.ndarray]) -> np.ndarray:
    return np.array(
        [task.y.max() - np.maximum.accumulate(task.y[row]) for task, row in zip(tasks, choices, strict=True)]
    )


def test_the_lowest_validation_regret_decides_which_network_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    # Updates that add 1 to every parameter, and a regret that is zero where the last bias is 3.
    monkeypatch.setattr(maf_training, "record", lambda *_: (None, jnp.zeros(())))
    monkeypatch.setattr(
        maf_training,
        "improve",
        lambda networks, state, *_: (jax.tree.map(lambda leaf: leaf + 1, networks), state),
    )
    monkeypatch.setattr(
        maf_training, "validate", lambda network, *_: jnp.abs(network.biases[0][0] - 3.0).astype(jnp.float64)
    )
    training = MAFTraining(hidden=(), iterations=5, iterations_per_call=5)
    own = maf_training.TasksOfJob(jnp.arange(3), jnp.ones(3), jnp.arange(3), jnp.asarray(0))
    course = maf_training.start_course(training, 2, own)
    course, (_, found) = maf_training.run_iterations(training, known_tasks((3, 3, 3), 0.0), own, course)
    assert found.tolist() == [2.0, 1.0, 0.0, 1.0, 2.0]
    assert float(course.best.biases[0][0]) == 3.0
    assert float(course.networks.policy.biases[0][0]) == 5.0


def test_the_iteration_kept_is_the_best_of_the_validation(
    fitted: list[TrainedAcquisition], simulation: Simulation
) -> None:
    found = np.asarray(fitted[0].validation_regrets)
    assert found.shape == (60,)
    # Which three of the four training tasks it was is the seed's: a run of the policy kept must do as well.
    of_tasks = regrets(KNOWN, simulation.choices[:4]).mean(axis=1)
    of_threes = [np.mean(three) for three in itertools.combinations(of_tasks, 3)]
    assert np.isclose(of_threes, found.min(), rtol=1e-9, atol=0.0).any()


def test_it_beats_rand_on_related_tasks(simulation: Simulation) -> None:
    learned = regrets(NEW, simulation.choices[4:]).mean(axis=0)
    random = np.random.default_rng(7)
    drawn = np.mean(
        [regrets(NEW, [random.integers(len(task.y), size=HORIZON) for task in NEW]) for _ in range(200)],
        axis=(0, 1),
    )
    assert (learned < 0.5 * drawn).all()


def test_most_probable_takes_the_largest() -> None:
    assert int(most_probable(jax.random.key(0), jnp.log(jnp.array([0.2, 0.5, 0.3])))) == 1


# What is refused


def test_jobs_that_cannot_be_trained_on() -> None:
    with pytest.raises(InvalidInputError, match="validation_tasks = 3, but a job has 2 tasks"):
        METHOD.fit([job(KNOWN, 0), job(KNOWN[:2], 0)])
    with pytest.raises(InvalidInputError, match="no model to pre-train"):
        METHOD.fit([])


@pytest.mark.slow
def test_a_task_without_a_gp_costs_only_the_jobs_that_train_on_it() -> None:
    huge = replace(KNOWN[0], name="huge", y=1e200 * np.arange(len(KNOWN[0].y), dtype=float))
    with pytest.raises(TrainingError, match=r"task 'huge' .* \(1 of a batch of 2 failed\)") as raised:
        METHOD.fit([job((huge, *KNOWN[1:]), 0), job(KNOWN, 1)])
    failed, learned = raised.value.outcomes
    assert isinstance(failed, NumericalError)
    jax.tree.map(np.testing.assert_array_equal, learned, METHOD.fit([job(KNOWN, 1)])[0])


def test_a_training_that_is_not_finite_names_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(training: MAFTraining, tasks: Any, own: Any, course: Any) -> Any:
        return course, (jnp.zeros(2), jnp.full(2, jnp.nan))

    monkeypatch.setattr(maf_method, "run_iterations", broken)
    method = MAF(SMALL_GP, MAFTraining(hidden=(), iterations=2, iterations_per_call=2))
    with pytest.raises(NumericalError, match="with seed 5 is not finite"):
        method.fit([job(KNOWN, 5)])
