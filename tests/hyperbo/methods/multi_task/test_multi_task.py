from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multi_task_cases import TEST_TASKS, bowl, bowls
from scipy.stats import chisquare

from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.methods.decision import AcquisitionDecision
from hyperbo.methods.multi_task.fit import FittedSurrogate, fit_surrogate, training_data
from hyperbo.methods.multi_task.model import Model, MultiTaskTraining, TaskObservations, shuffled, train
from hyperbo.methods.multi_task.policy import MultiTaskPolicy
from hyperbo.pretrain import Job, TrainingError, no_progress

pytestmark = pytest.mark.usefixtures("x64")


@dataclass(frozen=True)
class Line:
    """A surrogate simple enough for its training to be written out: y = w . inputs, of variance w_0^2 + 1."""

    training: MultiTaskTraining = field(default_factory=MultiTaskTraining)
    learning_rate: float = 0.05
    decision: AcquisitionDecision = field(default_factory=AcquisitionDecision)
    draws: int = 2

    def initialise(self, key: Any, inputs: int) -> tuple[Any, Any]:
        return jax.random.normal(key, (inputs,), jnp.float32), ()

    def loss(self, parameters: Any, constants: Any, inputs: Any, y: Any, mask: Any, count: Any) -> Any:
        return 0.5 * jnp.sum(jnp.mean((y - inputs @ parameters) ** 2, axis=1, where=mask))

    def predict(self, parameters: Any, constants: Any, inputs: Any, y: Any, mask: Any, at: Any) -> Any:
        return at @ parameters, jnp.full(len(at), parameters[0] ** 2 + 1.0)


def line(**settings: int) -> Line:
    return Line(MultiTaskTraining(**{"epochs": 3, "refit_epochs": 1, "batch_size": 8, **settings}))


# Order of observations

shuffle = jax.jit(shuffled, static_argnames=("draws", "length"))


@given(st.lists(st.booleans(), min_size=9, max_size=9), st.integers(0, 2**31))
def test_an_epoch_passes_once_through_every_row_of_the_mask(mask: list[bool], seed: int) -> None:
    orders = np.asarray(shuffle(jax.random.key(seed), jnp.array(mask), draws=3, length=12))
    assert orders.shape == (3, 12)
    for order in orders:
        np.testing.assert_array_equal(np.sort(order[: sum(mask)]), np.flatnonzero(mask))


def test_orders_are_uniform_and_independent_between_draws() -> None:
    orders = np.asarray(shuffle(jax.random.key(3), jnp.ones(3, bool), draws=6000, length=3))
    _, numbers = np.unique(orders, axis=0, return_inverse=True)
    assert chisquare(np.bincount(numbers)).pvalue > 1e-3
    assert chisquare(np.bincount(numbers[::2] * 6 + numbers[1::2], minlength=36)).pvalue > 1e-3


def test_padding_at_the_end_does_not_change_the_order() -> None:
    mask = jnp.array([True, False, True, True, True])
    padded = shuffle(jax.random.key(1), jnp.pad(mask, (0, 11)), draws=2, length=16)
    np.testing.assert_array_equal(padded[:, :4], shuffle(jax.random.key(1), mask, draws=2, length=8)[:, :4])


# Training


def adam_by_hand(
    surrogate: Line,
    x: Any,
    y: Any,
    task: Any,
    mask: Any,
    embeddings: Any,
    weights: Any,
    key: Any,
    epochs: int,
) -> tuple[Any, Any]:
    """Kingma and Ba, Algorithm 1, on the gradients of the squared error written out."""
    size, count = surrogate.training.batch_size, int(mask.sum())
    parameters = [embeddings.astype(float), weights.astype(float)]
    first, second = [[np.zeros_like(p) for p in parameters] for _ in range(2)]
    t = 0
    for epoch in range(epochs):
        order = shuffled(jax.random.fold_in(key, epoch), jnp.asarray(mask), 2, 24)
        for begin in range(0, count, size):
            embeddings, weights = parameters
            gradients = [np.zeros_like(p) for p in parameters]
            for rows in np.asarray(order)[:, begin : min(begin + size, count)]:
                inputs = np.column_stack([(x[rows] - 0.5) * np.sqrt(12.0), embeddings[task[rows]]])
                residual = (inputs @ weights - y[rows]) / len(rows)
                gradients[1] += residual @ inputs
                np.add.at(gradients[0], task[rows], residual[:, None] * weights[x.shape[1] :])
            t += 1
            for i, gradient in enumerate(gradients):
                first[i] = 0.9 * first[i] + 0.1 * gradient
                second[i] = 0.999 * second[i] + 0.001 * gradient**2
                step = (first[i] / (1 - 0.9**t)) / (np.sqrt(second[i] / (1 - 0.999**t)) + 1e-8)
                parameters[i] = parameters[i] - surrogate.learning_rate * step
    return parameters[0], parameters[1]


def test_training_is_adam_on_minibatches_of_shuffled_epochs() -> None:
    random, surrogate, key = np.random.default_rng(0), line(), jax.random.key(8)
    x, y = random.random((19, 2)).astype(np.float32), random.normal(size=19).astype(np.float32)
    task, mask = random.integers(0, 3, 19).astype(np.int32), random.random(19) < 0.8
    assert mask.sum() % surrogate.training.batch_size  # the last batch of an epoch is short
    embeddings, weights = (random.normal(size=shape).astype(np.float32) for shape in ((4, 5), 7))
    state = optax.adam(surrogate.learning_rate).init(jnp.zeros(4 * 5 + 7, jnp.float32))
    model = Model(jnp.asarray(embeddings), jnp.asarray(weights), (), state)
    observations = TaskObservations(*map(jnp.asarray, (x, y, task, mask)))
    run = jax.jit(train, static_argnums=0)
    model = run(surrogate, observations, model, key, jnp.asarray(0), jnp.asarray(1))
    model = run(surrogate, observations, model, key, jnp.asarray(1), jnp.asarray(4))
    expected = adam_by_hand(surrogate, x, y, task, mask, embeddings, weights, key, 4)
    np.testing.assert_allclose(model.embeddings, expected[0], rtol=0, atol=2e-5)
    np.testing.assert_allclose(model.parameters, expected[1], rtol=0, atol=2e-5)
    np.testing.assert_array_equal(model.embeddings[3], embeddings[3])  # a task without observations


# Fitting

DATA = bowls(tasks=3, size=10)
LONGER = replace(DATA, tasks=(*DATA.tasks, bowl("long", 9, 23)))


def fit(surrogate: Line, *jobs: Job) -> list[FittedSurrogate]:
    return fit_surrogate(surrogate, jobs, no_progress)


@pytest.fixture(scope="module")
def fitted() -> list[FittedSurrogate]:
    return fit(line(), Job(DATA, 0), Job(LONGER, 0), Job(DATA, 1))


def test_y_is_standardised_over_all_training_observations() -> None:
    data = training_data([Job(DATA, 0), Job(LONGER, 0)], None)
    assert data.tasks.tolist() == [3, 4]
    for row, tuning in enumerate((DATA, LONGER)):
        y = np.concatenate([task.y for task in tuning.tasks])
        np.testing.assert_allclose([data.mean[row], data.deviation[row]], [y.mean(), y.std()], rtol=1e-12)
        own = jax.tree.map(lambda leaf, row=row: leaf[row], data.observations)
        np.testing.assert_array_equal(own.mask, np.arange(53) < len(y))
        np.testing.assert_allclose(own.y[own.mask], (y - y.mean()) / y.std(), rtol=0, atol=1e-6)
        sizes = [len(task.y) for task in tuning.tasks]
        np.testing.assert_array_equal(own.task[own.mask], np.repeat(np.arange(len(sizes)), sizes))
        x = np.concatenate([task.x for task in tuning.tasks])
        np.testing.assert_allclose(own.x[own.mask], x, rtol=1e-6)


def test_tasks_that_are_flat_have_the_deviation_one() -> None:
    flat = replace(DATA, tasks=tuple(replace(task, y=np.full_like(task.y, 2.5)) for task in DATA.tasks))
    data = training_data([Job(flat, 0)], None)
    assert (data.mean.tolist(), data.deviation.tolist()) == ([2.5], [1.0])
    assert not data.observations.y.any()


def test_the_new_task_starts_at_the_mean_embedding(fitted: list[FittedSurrogate]) -> None:
    for one, tasks in zip(fitted, (3, 4, 3), strict=True):
        embeddings = one.model.embeddings
        assert len(embeddings) == 5  # four tasks of the longest job, and the one to come
        np.testing.assert_allclose(embeddings[-1], embeddings[:tasks].mean(axis=0), rtol=1e-5)


def test_a_job_does_not_depend_on_the_others_of_its_batch(fitted: list[FittedSurrogate]) -> None:
    alone = fit(line(), Job(DATA, 0))[0].model
    np.testing.assert_allclose(fitted[0].model.parameters, alone.parameters, rtol=1e-5)
    np.testing.assert_allclose(fitted[0].model.embeddings[[0, 1, 2, -1]], alone.embeddings, rtol=1e-5)
    assert not np.allclose(fitted[2].model.parameters, alone.parameters, rtol=1e-2)


def test_max_points_per_task_draws_rows_by_the_seed() -> None:
    observations = training_data([Job(LONGER, 0), Job(LONGER, 0), Job(LONGER, 5)], 6).observations
    assert observations.mask.all()
    np.testing.assert_array_equal(observations.task[0], np.repeat([0, 1, 2, 3], 6))
    for number, task in enumerate(LONGER.tasks):
        rows = observations.x[0][6 * number : 6 * number + 6]
        found = (np.abs(task.x[:, None] - rows[None]).max(axis=2) < 1e-6).argmax(axis=0)
        assert len(set(found.tolist())) == 6
        np.testing.assert_allclose(task.x[found], rows, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(observations.x[0], observations.x[1])
    assert (observations.x[0] != observations.x[2]).any()


def test_progress_counts_epochs() -> None:
    calls: list[tuple[int, int]] = []
    fit_surrogate(line(), [Job(DATA, 0)], lambda *call: calls.append(call))
    assert calls == [(0, 3), (1, 3), (2, 3), (3, 3)]


# The policy


def observe(policy: MultiTaskPolicy, state: Any, step: int, candidate: int, y: float) -> Any:
    return policy.observe(state, jnp.asarray(step), jnp.asarray(candidate), jnp.asarray(y))


@pytest.fixture(scope="module")
def policy(fitted: list[FittedSurrogate]) -> MultiTaskPolicy:
    return MultiTaskPolicy(jax.tree.map(jnp.asarray, fitted[0]), line())


@pytest.fixture(scope="module")
def state(policy: MultiTaskPolicy) -> Any:
    x = jnp.asarray(TEST_TASKS[0].x)
    return policy.start(x, jnp.ones(len(x), bool), 4)


score = jax.jit(lambda policy, state, step: policy.score(state, step, jax.random.key(2)))


def test_before_the_first_observation_the_fitted_model_decides(policy: MultiTaskPolicy, state: Any) -> None:
    after, scores = score(policy, state, jnp.asarray(0))
    jax.tree.map(np.testing.assert_array_equal, after.model, policy.fitted.model)
    embedding, weights = policy.fitted.model.embeddings[-1], np.asarray(policy.fitted.model.parameters, float)
    inputs = (TEST_TASKS[0].x - 0.5) * np.sqrt(12.0)
    mean = policy.fitted.data.mean + policy.fitted.data.deviation * (
        inputs @ weights[:2] + np.asarray(embedding) @ weights[2:]
    )
    deviation = policy.fitted.data.deviation * np.sqrt(weights[0] ** 2 + 1.0)
    np.testing.assert_allclose(scores.mean, mean, rtol=0, atol=1e-5)
    np.testing.assert_allclose(scores.deviation, deviation, rtol=1e-5)
    np.testing.assert_allclose(scores.values, mean / deviation, rtol=0, atol=1e-5)  # PI with the target 0


def test_a_refit_is_training_on_all_observations_from_the_last_model(
    policy: MultiTaskPolicy, state: Any
) -> None:
    task, data = TEST_TASKS[0], policy.fitted.data
    for step, candidate in enumerate((7, 2)):
        state = observe(policy, state, step, candidate, task.y[candidate])
    assert state.best == max(task.y[[7, 2]])
    seen = data.observations.mask
    own = (task.y[[7, 2]] - float(data.mean)) / float(data.deviation)
    everything = TaskObservations(
        jnp.asarray(np.concatenate([task.x[[7, 2]], data.observations.x[seen]]), jnp.float32),
        jnp.asarray(np.concatenate([own, data.observations.y[seen]]), jnp.float32),
        jnp.asarray(np.concatenate([[4, 4], data.observations.task[seen]]), jnp.int32),
        jnp.ones(2 + int(seen.sum()), bool),
    )
    used = policy.observations(state, jnp.asarray(2))
    for name in ("x", "y", "task"):
        np.testing.assert_array_equal(getattr(used, name)[used.mask], getattr(everything, name))
    after, scores = score(policy, state, jnp.asarray(2))
    refit_key, _ = jax.random.split(jax.random.key(2))
    expected = train(policy.surrogate, used, state.model, refit_key, jnp.asarray(0), jnp.asarray(1))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), after.model, expected)
    moved = np.abs(after.model.embeddings - state.model.embeddings).max(axis=1)
    assert (moved[[0, 1, 2, 4]] > 1e-3).all()  # the new task's embedding is trained too
    again, _ = score(policy, after, jnp.asarray(2))
    assert (
        np.abs(again.model.embeddings - after.model.embeddings).max() > 1e-3
    )  # goes on, does not start anew
    np.testing.assert_allclose(
        scores.values, (scores.mean - state.best - 0.1 * data.spread) / scores.deviation, rtol=0, atol=1e-6
    )


def test_rows_beyond_the_observations_so_far_count_for_nothing(policy: MultiTaskPolicy, state: Any) -> None:
    state = observe(policy, state, 0, 5, 1.0)
    dirty = observe(policy, state, 1, 6, -3.0)
    dirty = replace(dirty, best=state.best)
    results = [score(policy, one, jnp.asarray(1))[1] for one in (state, dirty)]
    jax.tree.map(np.testing.assert_array_equal, results[0], results[1])


def test_padding_changes_nothing(policy: MultiTaskPolicy, state: Any) -> None:
    """Neither that of the training tasks, up to the longest job, nor that of the candidates."""
    kept, x = 6, jnp.asarray(TEST_TASKS[0].x)
    observations = jax.tree.map(lambda leaf: leaf[:30], policy.fitted.data.observations)
    assert observations.mask.all()
    assert not policy.fitted.data.observations.mask.all()
    data = replace(policy.fitted.data, observations=observations)
    unpadded = replace(policy, fitted=replace(policy.fitted, data=data))
    few = observe(unpadded, unpadded.start(x[:kept], jnp.ones(kept, bool), 4), 0, 3, 1.0)
    many = observe(policy, policy.start(x, jnp.arange(len(x)) < kept, 4), 0, 3, 1.0)
    for name in ("values", "mean", "deviation"):
        found, expected = (
            getattr(score(one, start, jnp.asarray(1))[1], name)[:kept]
            for one, start in ((policy, many), (unpadded, few))
        )
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


# What is refused


def test_task_weights_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="Line: a job has task weights"):
        fit(line(), Job(DATA, 0, (1.0, 1.0, 2.0)))


def test_no_job_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no model"):
        fit(line())


def test_of_a_batch_only_the_job_with_extreme_values_fails() -> None:
    extreme = replace(DATA, tasks=tuple(replace(task, y=task.y * 1e200) for task in DATA.tasks))
    with pytest.raises(TrainingError, match=r"with seed 4 ended with .* extreme y values") as raised:
        fit(line(), Job(DATA, 3), Job(extreme, 4), Job(DATA, 5))
    learned = raised.value.outcomes
    assert isinstance(learned[1], NumericalError)
    expected = fit(line(), Job(DATA, 3), Job(DATA, 4), Job(DATA, 5))
    for place in (0, 2):
        jax.tree.map(np.testing.assert_array_equal, learned[place], expected[place])


def test_a_training_that_diverges_is_an_error_that_names_the_job() -> None:
    with pytest.raises(NumericalError, match=r"Line: training on 3 tasks of case/tiny:1.0.0 with seed 4"):
        fit(replace(line(), learning_rate=1e38), Job(DATA, 4))
