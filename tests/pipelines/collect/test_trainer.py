"""Training against plain NumPy, divergence, and the independence of trials that train together."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hyperbo_pipelines.collect.datasets import Split, TaskDataset, load_task_dataset
from hyperbo_pipelines.collect.models import MODELS, Model, Start
from hyperbo_pipelines.collect.plan import matched_points
from hyperbo_pipelines.collect.preset import load_preset
from hyperbo_pipelines.collect.trainer import (
    Curves,
    Trainer,
    TrainingSettings,
    batch_order,
    cross_entropy,
    learning_rates,
    nesterov_step,
)
from hypothesis import given
from hypothesis import strategies as st

SETTINGS = TrainingSettings(batch_size=20, steps=24, evaluations=3, l2=0.0, seed=5)
GOOD = [0.02, 1.0, 0.9, 0.5]
DIVERGING = [10.0, 1.0, 0.999, 0.99]


@given(
    eta=st.floats(1e-5, 10.0),
    p=st.floats(0.1, 2.0),
    lam=st.floats(0.01, 0.99),
    steps=st.integers(1, 50),
)
def test_schedule_is_the_papers_equation(eta, p, lam, steps):
    rates = learning_rates(np.array([eta]), np.array([p]), np.array([lam]), steps)
    for t in range(steps):
        fraction = 1 - min(t, lam * steps) / (lam * steps)
        assert rates[0, t] == pytest.approx(eta / 1000 + (eta - eta / 1000) * fraction**p, rel=1e-12)


def test_every_epoch_is_a_permutation():
    order = batch_order(examples=10, batch_size=3, steps=7, seed=0)
    assert order.shape == (7, 3)
    for epoch in (order[:3], order[3:6]):
        assert len(set(epoch.reshape(-1).tolist())) == 9
    np.testing.assert_array_equal(order, batch_order(10, 3, 7, 0))
    assert not np.array_equal(order, batch_order(10, 3, 7, 1))


def test_cross_entropy_is_the_negative_log_probability():
    logits = np.array([[1.0, 2.0, 3.0], [1000.0, 0.0, -1000.0]])
    losses = cross_entropy(jnp.asarray(logits, jnp.float32), jnp.array([0, 1]))
    expected = np.log(np.exp(logits[0]).sum()) - 1.0
    np.testing.assert_allclose(losses, [expected, 1000.0], rtol=1e-6)


def softmax_regression() -> Model:
    return Model(
        "regression",
        "table",
        lambda generator, dataset: Start(
            {"a/w": jnp.asarray(generator.normal(size=(5, dataset.classes)), jnp.float32)}, {}
        ),
        lambda parameters, statistics, x, training: (x @ parameters["a/w"], statistics),
    )


def train(model: Model, dataset: TaskDataset, settings: TrainingSettings, points: np.ndarray) -> Curves:
    return Trainer(model, dataset, settings, len(points)).train(points)


def small(name: str) -> TaskDataset:
    """A task dataset cut short, so that a test takes little more than the compiler."""
    dataset = load_task_dataset(name)

    def cut(split: Split) -> Split:
        return Split(split.inputs[:40], split.labels[:40])

    return replace(dataset, train=cut(dataset.train), valid=cut(dataset.valid), test=cut(dataset.test))


def small_table(examples: int = 40) -> TaskDataset:
    generator = np.random.default_rng(3)

    def split(count: int) -> Split:
        inputs = generator.normal(size=(count, 5)).astype(np.float32)
        return Split(inputs, (inputs[:, 0] > 0.3).astype(np.int32))

    return TaskDataset("small", "table", 2, split(examples), split(130), split(30))


def test_nesterov_step_walks_the_look_ahead_points_of_the_textbook_form():
    """u <- beta u - eta grad(w + beta u), w <- w + u (Sutskever et al. 2013, Eq. 3, 4), in float64."""
    generator = np.random.default_rng(0)
    factor = generator.normal(size=(4, 4))
    hessian, start = factor @ factor.T / 4, generator.normal(size=4)
    eta, beta = 0.05, 0.9
    parameters, velocity = {"w": jnp.asarray(start, jnp.float32)}, {"w": jnp.zeros(4)}
    w, u = start, np.zeros(4)
    for _ in range(20):
        np.testing.assert_allclose(parameters["w"], w + beta * u, rtol=1e-4, atol=1e-5)
        u = beta * u - eta * hessian @ (w + beta * u)
        w = w + u
        gradient = {"w": jnp.asarray(hessian, jnp.float32) @ parameters["w"]}
        parameters, velocity = nesterov_step(
            parameters, velocity, gradient, jnp.float32(eta), jnp.float32(beta)
        )


def test_training_agrees_with_numpy_in_float64():
    dataset, settings = small_table(), TrainingSettings(8, 30, 3, 0.01, 5)
    eta, p, beta, lam = 0.3, 1.5, 0.8, 0.7
    curves = train(softmax_regression(), dataset, settings, np.array([[eta, p, beta, lam]]))

    def scores_and_loss(w, inputs, labels):
        scores = inputs.astype(np.float64) @ w
        normalizer = np.log(np.exp(scores).sum(axis=1))
        return scores, (normalizer - scores[np.arange(len(labels)), labels]).mean()

    w, v = np.random.default_rng(5).normal(size=(5, 2)), np.zeros((5, 2))
    costs, rates = [], []
    for t, rows in enumerate(batch_order(len(dataset.train), 8, 30, 5)):
        inputs, labels = dataset.train.inputs[rows], dataset.train.labels[rows]
        scores, loss = scores_and_loss(w, inputs, labels)
        costs.append(loss + 0.005 * np.sum(w**2))
        rates.append(eta / 1000 + (eta - eta / 1000) * (1 - min(t, lam * 30) / (lam * 30)) ** p)
        probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        gradient = inputs.T @ (probabilities - np.eye(2)[labels]) / 8 + 0.01 * w
        v = beta * v + gradient
        w = w - rates[-1] * (gradient + beta * v)

    np.testing.assert_allclose(curves.train_cost[0], np.reshape(costs, (3, 10)).mean(axis=1), rtol=1e-5)
    np.testing.assert_allclose(curves.learning_rate[0], np.array(rates)[[9, 19, 29]], rtol=1e-6)
    for name, split in (("train", dataset.train), ("valid", dataset.valid), ("test", dataset.test)):
        scores, loss = scores_and_loss(w, split.inputs, split.labels)
        assert curves.metrics[f"{name}/ce_loss"][0, -1] == pytest.approx(loss, rel=1e-5)
        wrong = (scores.argmax(axis=1) != split.labels).mean()
        assert curves.metrics[f"{name}/error_rate"][0, -1] == pytest.approx(wrong, rel=1e-6)


def test_divergence_is_flagged_and_metrics_are_nan_from_there():
    settings = replace(SETTINGS, evaluations=SETTINGS.steps)
    curves = train(MODELS["transformer"], small("characters"), settings, np.array([GOOD, DIVERGING]))
    assert curves.diverged.tolist() == [False, True]
    assert np.isfinite(curves.train_cost[1, 0])
    for values in (curves.train_cost, *curves.metrics.values()):
        assert np.isfinite(values[0]).all()
        assert np.isnan(values[1, -1])
        nan = np.isnan(values[1])
        assert (nan == np.maximum.accumulate(nan)).all(), "a metric came back after divergence"


def test_weights_that_overflow_in_the_last_step_count_as_diverged():
    """No minibatch cost is NaN then: the cost on the training set, after the last step, is."""
    dataset = small_table()
    huge = replace(dataset, train=Split(dataset.train.inputs * np.float32(1e25), dataset.train.labels))
    settings = TrainingSettings(batch_size=40, steps=1, evaluations=1, l2=0.0, seed=5)
    curves = train(softmax_regression(), huge, settings, np.array([DIVERGING]))
    assert curves.diverged.tolist() == [True]
    assert np.isnan(curves.metrics["valid/error_rate"]).all()


@pytest.mark.parametrize("l2", [0.01, 0.0])
def test_an_infinite_cost_alone_is_no_divergence(l2):
    """The penalty overflows for weights of 1e25, while the gradient stays finite."""
    start = softmax_regression()
    model = start._replace(
        init=lambda *arguments: Start({"a/w": start.init(*arguments).parameters["a/w"] * 1e25}, {})
    )
    dataset = small_table()
    still = replace(dataset, train=Split(dataset.train.inputs * 0, dataset.train.labels))
    settings = TrainingSettings(batch_size=40, steps=2, evaluations=2, l2=l2, seed=5)
    curves = train(model, still, settings, np.array([[1e-5, 1.0, 0.0, 0.5]]))
    assert np.isinf(curves.train_cost).all() == (l2 > 0)
    assert curves.diverged.tolist() == [False]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dataset", "variant"),
    [
        ("digits", "simple_cnn"),
        ("digits", "max_pool_relu"),
        ("diabetes", "mlp"),
        ("sample_patches", "wide_resnet"),
        ("characters", "transformer"),
        ("pages", "token_encoder"),
        ("texture_rows", "sequence_encoder"),
    ],
)
def test_a_trial_does_not_depend_on_the_trials_beside_it(dataset, variant):
    """Bit for bit: in another place of the block, beside others, beside fillings, beside NaN."""
    settings = TrainingSettings(batch_size=20, steps=6, evaluations=2, l2=1e-4, seed=5)
    points = np.concatenate([matched_points(load_preset("tiny"), 0)[:5], [GOOD, DIVERGING]])
    order = np.array([4, 6, 0, 3, 5, 2, 1])
    filled = np.concatenate([points[2:4], np.repeat(points[2:3], 5, axis=0)])
    trainer = Trainer(MODELS[variant], small(dataset), settings, len(points))
    together, permuted, beside = (trainer.train(each) for each in (points, points[order], filled))
    np.testing.assert_array_equal(permuted.train_cost, together.train_cost[order])
    np.testing.assert_array_equal(beside.train_cost[:2], together.train_cost[2:4])
    for name, values in together.metrics.items():
        np.testing.assert_array_equal(permuted.metrics[name], values[order])
        np.testing.assert_array_equal(beside.metrics[name][:2], values[2:4])


def test_float64_switched_on_elsewhere_changes_nothing():
    points = np.array([GOOD])
    dataset = small("diabetes")
    plain = train(MODELS["mlp"], dataset, SETTINGS, points)
    with jax.enable_x64(True):
        wide = train(MODELS["mlp"], dataset, SETTINGS, points)
    assert wide.train_cost.dtype == np.float32
    np.testing.assert_array_equal(wide.train_cost, plain.train_cost)
    for name, values in plain.metrics.items():
        np.testing.assert_array_equal(wide.metrics[name], values)
