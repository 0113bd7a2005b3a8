from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import multivariate_t, norm, rankdata

from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Condition, Parameter
from hyperbo.data.search_space import SearchSpace
from hyperbo.data.tuning_data import Provenance, Task, TuningData
from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.methods.mixture.scale import DEGREES
from hyperbo.methods.universal import (
    Group,
    HyperPrior,
    HyperPriorFit,
    UniversalPolicy,
    columns_of,
    fit_hyperprior,
    role_of,
)
from hyperbo.methods.universal.columns import KINDS, Column
from hyperbo.methods.universal.effects import effects
from hyperbo.methods.universal.extended import EXTENDED, extended_mixture, unit_of_prior
from hyperbo.methods.universal.file import read_hyperprior, write_hyperprior
from hyperbo.methods.universal.hyperprior import CONSTANT_VARIANCE, process
from hyperbo.methods.universal.values import normal_scores

pytestmark = pytest.mark.usefixtures("x64")

MIXED = SearchSpace(
    (
        Parameter("lr", 1e-4, 1.0, "log"),
        Parameter("layers", 1, 4, integer=True),
        Choice("optimizer", ("adam", "sgd", "lion")),
        Parameter("momentum", 0.0, 0.99, "log1m", condition=Condition("optimizer", ("sgd",))),
        Choice("bias", (False, True)),
        Choice("batch", (16, 32, 64), ordered=True, role="batch_size"),
        Choice("seed", (1,)),
    )
)
KNOWN = HyperPrior(
    {
        **{kind: Group((0.5, 0.4), (0.0, -0.2), (0.1, 0.2)) for kind in KINDS},
        "number/learning_rate": Group((-1.0, 0.3), (0.1, -0.4), (0.3, 0.5)),
    },
    (-2.0, 0.5),
)


def matern(a: np.ndarray, b: np.ndarray, lengthscales: np.ndarray) -> np.ndarray:
    scaled = np.sqrt(5.0) * cdist(a / lengthscales, b / lengthscales)
    return (1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled)


def plain(row: np.ndarray, weights: np.ndarray, variances: np.ndarray, a: np.ndarray, b: np.ndarray):
    """Mean at a and covariance of a and b, as the head of `effects` defines them."""
    basis = [np.hstack([2.0 * x - 1.0, (2.0 * x - 1.0) ** 2 - 1.0 / 3.0]) for x in (a, b)]
    covariance = matern(a, b, np.exp(row[:-1])) + basis[0] @ np.diag(variances) @ basis[1].T
    return basis[0] @ weights, covariance + CONSTANT_VARIANCE


def data_of(space: SearchSpace, tasks: list[tuple[np.ndarray, np.ndarray]]) -> TuningData:
    made = [
        Task(f"task{i}", f"task{i}", x, y, y, tuple(map(str, range(len(y)))))
        for i, (x, y) in enumerate(tasks)
    ]
    return TuningData(space, tuple(made), (), Provenance("test", "0" * 64, "observed"))


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("learning_rate", "learning_rate"),
        ("optimizer.lr", "learning_rate"),
        ("learningRateInit", "learning_rate"),
        ("weight_decay", "weight_decay"),
        ("lambda_l2", "weight_decay"),
        ("min_samples_leaf", "min_samples"),
        ("max_leaf_nodes", "width"),
        ("num_layers", "depth"),
        ("colour", "generic"),
        ("malarkey", "generic"),
    ],
)
def test_a_name_tells_the_role(name: str, role: str) -> None:
    assert role_of(name) == role


def test_every_column_of_a_mixed_space_has_a_kind_and_a_role() -> None:
    columns = columns_of(MIXED)
    assert len(columns) == MIXED.dimension
    assert columns == (
        Column("number", "learning_rate"),
        Column("number", "depth"),
        *[Column("level", "generic")] * 3,
        Column("number", "momentum"),
        Column("active", "momentum"),
        Column("binary", "generic"),
        Column("number", "batch_size"),
    )


def test_normal_scores_are_those_of_ranks_and_no_monotone_map_changes_them() -> None:
    y = np.array([3.0, -1.0, 3.0, 8.0, 0.5, 99.0])
    seen = np.array([True, True, True, True, True, False])
    expected = norm.ppf((rankdata(y[:5]) - 0.375) / 5.25)
    found = np.asarray(normal_scores(jnp.asarray(y), jnp.asarray(seen)))
    np.testing.assert_allclose(found, [*expected, 0.0], atol=1e-12)
    np.testing.assert_array_equal(normal_scores(jnp.exp(jnp.asarray(y)), jnp.asarray(seen)), found)


def test_an_infeasible_value_has_the_lowest_score() -> None:
    scores = np.asarray(normal_scores(jnp.array([0.3, -jnp.inf, 0.1]), jnp.ones(3, bool)))
    assert scores.argmin() == 1
    assert np.isfinite(scores).all()


def test_a_process_is_matern_with_effects_and_a_constant() -> None:
    random = np.random.default_rng(0)
    a, b = random.uniform(size=(2, 5, 3))
    row, weights, variances = random.normal(size=4), random.normal(size=6), random.uniform(size=6)
    gp = process(jnp.asarray(row), jnp.asarray(weights), jnp.asarray(variances))
    mean, covariance = plain(row, weights, variances, a, b)
    np.testing.assert_allclose(gp.mean(jnp.asarray(a)), mean, atol=1e-12)
    np.testing.assert_allclose(gp.kernel(jnp.asarray(a), jnp.asarray(b)), covariance, atol=1e-10)
    whole = gp.kernel(jnp.asarray(a), jnp.asarray(a))
    np.testing.assert_allclose(gp.kernel.diagonal(jnp.asarray(a)), np.diagonal(whole), atol=1e-10)
    np.testing.assert_allclose(gp.noise_variance, np.exp(2.0 * row[-1]), rtol=1e-12)


def test_components_are_spread_as_the_hyperprior_says() -> None:
    columns = columns_of(MIXED)
    gp = KNOWN.components(columns, 512)
    logarithms = np.log(np.asarray(jax.nn.softplus(gp.kernel.inner.raw_lengthscales)))
    stretch = 0.5 * np.log(len(columns) / 5.0)
    np.testing.assert_allclose(logarithms[:, 0].mean(), -1.0 + stretch, atol=0.02)
    np.testing.assert_allclose(logarithms[:, 0].std(), 0.3, atol=0.02)
    np.testing.assert_allclose(logarithms[:, 1].mean(), 0.5 + stretch, atol=0.02)
    # Of a role that is not known, the kind counts; a column of two values has no curvature.
    weights = np.asarray(gp.mean.weights)[0].reshape(2, -1)
    assert weights[:, 0].tolist() == [0.1, -0.4]
    assert weights[1].tolist() == [-0.4, -0.2, 0.0, 0.0, 0.0, -0.2, 0.0, 0.0, -0.2]


@pytest.fixture(scope="module")
def drawn_tasks() -> dict[str, TuningData]:
    """Tasks of two spaces: a learning rate with an effect and short length scales, a width with neither."""
    random = np.random.default_rng(0)
    found = {}
    for name, others in (("two", ["width"]), ("three", ["width", "colour"])):
        columns = ["lr", *others]
        space = SearchSpace(tuple(Parameter(each, 0.0, 1.0) for each in columns))
        tasks = []
        for _ in range(8):
            x = random.uniform(size=(60, len(columns)))
            covariance = matern(x, x, np.array([0.4, *[20.0] * len(others)])) + 1e-6 * np.eye(60)
            u = 2.0 * x[:, 0] - 1.0
            y = 0.7 * np.linalg.cholesky(covariance) @ random.normal(size=60) + 1.5 * u - 1.5 * u**2
            tasks.append((x, y + 0.02 * random.normal(size=60)))
        found[name] = data_of(space, tasks)
    return found


def test_a_fit_finds_length_scales_and_effects_of_the_roles(drawn_tasks: dict[str, TuningData]) -> None:
    learned = fit_hyperprior(drawn_tasks, HyperPriorFit(points=40, tasks=4, rounds=3))
    rate, width = learned.groups["number/learning_rate"], learned.groups["number/width"]
    assert rate.lengthscale[0] < width.lengthscale[0] - 0.7
    assert rate.effect_mean[0] > 0.2
    assert rate.effect_mean[1] < -0.3
    assert abs(width.effect_mean[0]) < 0.1
    assert rate.effect_variance[0] > width.effect_variance[0]
    # What no history has stays as it was before.
    assert learned.groups["level"].lengthscale == (0.0, 1.0)


def test_which_level_comes_first_is_never_learned() -> None:
    random = np.random.default_rng(1)
    space = SearchSpace((Choice("bias", (False, True)), Parameter("lr", 0.0, 1.0)))
    x = np.stack([random.integers(0, 2, 40).astype(float), random.uniform(size=40)], axis=1)
    learned = fit_hyperprior({"one": data_of(space, [(x, 3.0 * x[:, 0] + x[:, 1])])}, HyperPriorFit(rounds=2))
    assert learned.groups["binary/generic"].effect_mean == (0.0, 0.0)
    assert learned.groups["binary/generic"].effect_variance[0] > 0.05


def test_a_fit_needs_histories() -> None:
    with pytest.raises(InvalidInputError):
        fit_hyperprior({})


def test_a_choice_is_that_of_plain_numpy() -> None:
    random = np.random.default_rng(2)
    columns = columns_of(MIXED)
    candidates = random.uniform(size=(12, len(columns)))
    x, y = candidates[:5], np.array([0.3, 0.9, 0.1, 0.5, 0.4])
    policy = UniversalPolicy(KNOWN.components(columns, 3))
    state = policy.start(jnp.asarray(candidates), jnp.ones(12, bool), 8)
    for step in range(5):
        state = policy.observe(state, jnp.asarray(step), jnp.asarray(step), jnp.asarray(y[step]))
    _, scores = policy.score(state, jnp.asarray(5), jax.random.key(0))

    z = norm.ppf((rankdata(y) - 0.375) / 5.25)
    moments = KNOWN.moments(columns)
    evidence, means, variances = [], [], []
    for number in range(3):
        gp = jax.tree.map(lambda leaf, i=number: leaf[i], policy.components)
        row = np.log([*jax.nn.softplus(gp.kernel.inner.raw_lengthscales), np.sqrt(gp.noise_variance)])
        of = moments.effect_mean, moments.effect_variance
        mean, covariance = plain(row, *of, x, x)
        noise = np.exp(2.0 * row[-1])
        noisy = covariance + noise * np.eye(5)
        at, cross = plain(row, *of, candidates, x)
        inverse = np.linalg.inv(noisy)
        quadratic = (z - mean) @ inverse @ (z - mean)
        factor = (DEGREES + quadratic) / (DEGREES + 5 - 2)
        evidence.append(multivariate_t(mean, noisy, df=DEGREES).logpdf(z))
        means.append(at + cross @ inverse @ (z - mean))
        own = np.diagonal(plain(row, *of, candidates, candidates)[1])
        variances.append(factor * (own - np.sum(cross @ inverse * cross, axis=1) + noise))
    weights = np.exp(evidence - np.logaddexp.reduce(evidence))
    deviation = np.sqrt(variances)
    improvement = (np.array(means) - z.max()) / deviation
    expected = weights @ (deviation * (improvement * norm.cdf(improvement) + norm.pdf(improvement)))
    np.testing.assert_allclose(np.exp(scores.values), expected, rtol=1e-6)
    np.testing.assert_allclose(scores.mean, weights @ np.array(means), atol=1e-8)


def test_the_first_choice_is_the_largest_expected_effect() -> None:
    columns = (Column("number", "learning_rate"), Column("number", "generic"))
    candidates = np.random.default_rng(3).uniform(size=(30, 2))
    policy = UniversalPolicy(KNOWN.components(columns, 4))
    state = policy.start(jnp.asarray(candidates), jnp.ones(30, bool), 4)
    _, scores = policy.score(state, jnp.asarray(0), jax.random.key(0))
    expected = np.asarray(effects(jnp.asarray(candidates))) @ np.array([0.1, 0.0, -0.4, -0.2])
    np.testing.assert_allclose(scores.values, expected, atol=1e-12)


def test_an_extended_process_is_the_prior_plus_what_is_new() -> None:
    random = np.random.default_rng(4)
    prior = GaussianProcess.from_values(
        lengthscales=[0.3, 0.8], signal_variance=0.5, noise_variance=0.01, constant=1.5
    )
    columns = (Column("number", "width"), Column("number", "learning_rate"), Column("number", "depth"))
    mixture = extended_mixture(prior, [2, 0], columns, KNOWN, 0.9)
    a = random.uniform(size=(6, 3))
    centre, unit = unit_of_prior(prior, 2)
    np.testing.assert_allclose(np.exp(mixture.log_weights).reshape(2, -1).sum(axis=1), [0.9, 0.1])
    first, last = (jax.tree.map(lambda leaf, i=i: leaf[i], mixture.processes) for i in (0, EXTENDED))
    # The new column is the learning rate; the prior's columns are in its own order.
    u = 2.0 * a[:, 1] - 1.0
    expected = 1.5 + float(unit) * (0.1 * u - 0.4 * (u**2 - 1.0 / 3.0))
    np.testing.assert_allclose(first.mean(jnp.asarray(a)), expected, atol=1e-10)
    known = 0.5 * matern(a[:, [2, 0]], a[:, [2, 0]], np.array([0.3, 0.8]))
    rest = np.asarray(first.kernel(jnp.asarray(a), jnp.asarray(a))) - known
    basis = np.stack([u, u**2 - 1.0 / 3.0], axis=1)
    residual = rest - float(unit) ** 2 * basis @ np.diag([0.3, 0.5]) @ basis.T
    share = np.sqrt(np.diagonal(residual)) / float(unit)
    np.testing.assert_allclose(share, share[0], rtol=1e-8)
    assert 0.1 <= share[0] <= 1.0
    np.testing.assert_allclose(first.noise_variance, 0.01, rtol=1e-8)
    # Without the prior: the universal one, around the centre of the prior's values.
    np.testing.assert_allclose(
        last.mean(jnp.full((1, 3), 0.5)), float(centre) + float(unit) * (0.4 + 0.2 + 0.2) / 3.0
    )


def test_a_file_holds_the_hyperprior(tmp_path: Path) -> None:
    write_hyperprior(tmp_path / "universal.json", KNOWN)
    assert read_hyperprior(tmp_path / "universal.json") == KNOWN


def test_a_file_that_is_missing_or_damaged_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "universal.json"
    with pytest.raises(NotAvailableError):
        read_hyperprior(path)
    write_hyperprior(path, KNOWN)
    whole = json.loads(path.read_text())
    without = {name: each for name, each in whole["groups"].items() if name != "level"}
    for broken, kind in (
        (whole | {"format": 99}, VersionConflictError),
        (whole | {"noise": "quiet"}, InvalidInputError),
        (whole | {"groups": without}, InvalidInputError),
        (whole | {"noise": [0.0, 0.0]}, InvalidInputError),
    ):
        path.write_text(json.dumps(broken))
        with pytest.raises(kind, match=r"universal\.json"):
            read_hyperprior(path)
    path.write_text("{")
    with pytest.raises(InvalidInputError):
        read_hyperprior(path)


def test_a_group_without_tasks_of_its_role_is_that_of_its_kind() -> None:
    assert KNOWN.group(Column("number", "nothing")) == KNOWN.groups["number"]
    renamed = replace(KNOWN, groups={**KNOWN.groups, "number/nothing": Group((9.0, 1.0))})
    assert renamed.group(Column("number", "nothing")).lengthscale == (9.0, 1.0)
