from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled_programs import compiled_once
from gp_cases import SPACE, matched_block, random_gp, tuning_data, with_blocks
from jaxtyping import Array

from hyperbo.compute.checkpoints import CheckpointFolder
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.objectives import euclidean, wasserstein
from hyperbo.pretrain import Job, Pretrained, SumTraining, pretrain_sum
from hyperbo.pretrain.ekl import BlocksOfModel, blocks_of_jobs, mean_ekl_minimised
from hyperbo.pretrain.lbfgs import _best, _start
from hyperbo.pretrain.task_table import tasks_of_jobs
from hyperbo.pretrain.weighted_sum import _Own, _weighted_sum

ARCHITECTURE = Architecture((3,), noise_variance=0.05)
PLAIN = tuning_data((3, 6, 4))
BLOCKS = (matched_block(("t0", "t1", "t2"), 4, seed=1), matched_block(("t0", "t2"), 3, seed=2))
DATA = with_blocks(PLAIN, *BLOCKS)


def initial(seed: int) -> GaussianProcess:
    with jax.enable_x64(True):
        weight_key, _ = jax.random.split(jax.random.key(seed))
        return initialise(weight_key, SPACE.dimension, ARCHITECTURE)


def terms(gp: GaussianProcess, weights: tuple[float, ...] = (1.0, 1.0, 1.0)) -> dict[str, float]:
    """Every objective by its definition; EKL is minimised as the mean NLL of the block's tasks."""
    moments = [(reference.mean(gp, b.x), reference.noisy_covariance(gp, b.x), b.y) for b in BLOCKS]
    nlls = [reference.nll(gp, task.x, task.y) for task in DATA.tasks]
    return {
        "ekl": float(np.mean([np.mean([reference.nll(gp, b.x, y) for y in b.y.T]) for b in BLOCKS])),
        "nll": float(np.average(nlls, weights=weights)),
        "squared_euclidean": float(np.mean([euclidean(*m) ** 2 for m in moments])),
        "squared_wasserstein": float(np.mean([wasserstein(*m) ** 2 for m in moments])),
    }


WEIGHTS = (1.0, 5.0, 2.0)
JOBS = (Job(DATA, 0), Job(DATA, 1, WEIGHTS))


TRAINING = SumTraining(iterations=10, iterations_per_call=4)


@pytest.fixture(scope="module", autouse=True)
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with compiled_once(tmp_path_factory.mktemp("programs")):
        yield


@pytest.fixture(scope="module")
def models(programs: None) -> list[Pretrained]:
    return pretrain_sum(JOBS, ARCHITECTURE, TRAINING)


@pytest.mark.slow
def test_a_training_that_was_interrupted_goes_on_to_the_same_result(
    models: list[Pretrained], tmp_path: Path
) -> None:
    folder = CheckpointFolder(tmp_path / "checkpoints", every_calls=1)

    def interrupt(done: int, total: int) -> None:
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pretrain_sum(JOBS, ARCHITECTURE, TRAINING, interrupt, folder)
    calls: list[int] = []
    resumed = pretrain_sum(JOBS, ARCHITECTURE, TRAINING, lambda done, _: calls.append(done), folder)
    assert calls == [4, 8, 10]
    for a, b in zip(resumed, models, strict=True):
        np.testing.assert_array_equal(a.losses, b.losses)
        jax.tree.map(np.testing.assert_array_equal, a.gp, b.gp)


def test_the_default_is_the_online_objective_of_the_paper_with_task_weights_in_the_nll(
    models: list[Pretrained],
) -> None:
    for model, job in zip(models, JOBS, strict=True):
        for gp, loss in [(initial(job.seed), model.losses[0]), (model.gp, model.losses[-1])]:
            found = terms(gp, job.task_weights or (1.0, 1.0, 1.0))
            assert loss == pytest.approx(found["ekl"] + 0.1 * found["nll"], rel=1e-9)
        assert model.losses[-1] < model.losses[0] - 0.5


@pytest.mark.usefixtures("x64")
def test_of_several_starts_the_best_is_kept_and_one_start_is_the_first_of_them() -> None:
    own = jax.tree.map(lambda leaf: leaf[0], blocks_of_jobs(JOBS[:1], "mle"))

    def objective(gp: GaussianProcess, shared: None, blocks: BlocksOfModel) -> tuple[Array, Array]:
        return mean_ekl_minimised(gp, blocks)

    training = SumTraining(iterations=10, restarts=3)
    seed = jnp.asarray(JOBS[0].seed)
    state = _start(SPACE.dimension, ARCHITECTURE, training, objective, None, own, seed)
    starts = [jax.tree.map(lambda leaf, i=i: leaf[i], state.params) for i in range(3)]
    jax.tree.map(np.testing.assert_array_equal, starts[0], initial(JOBS[0].seed))
    ends = [terms(gp)["ekl"] for gp in starts]
    assert len(set(ends)) == 3
    # Nothing was minimised yet, so that the starts are the ends.
    gp, losses, jitter = jax.jit(partial(_best, objective))(None, own, state)
    jax.tree.map(np.testing.assert_array_equal, gp, starts[int(np.argmin(ends))])
    assert losses.shape == (11,)
    assert float(losses[-1]) == pytest.approx(min(ends), rel=1e-9)
    assert float(jitter) == 0.0


@pytest.mark.usefixtures("x64")
def test_all_terms_add_up() -> None:
    training = SumTraining(ekl=0.7, nll=0.3, squared_euclidean=0.2, squared_wasserstein=0.5)
    tasks, gp = tasks_of_jobs(JOBS[1:]), random_gp(0)
    blocks = jax.tree.map(lambda leaf: leaf[0], blocks_of_jobs(JOBS[1:], "mle"))
    own = _Own(jnp.asarray(tasks.rows[0]), jnp.asarray(tasks.weights[0] / 3.0), blocks)
    value, jitter = jax.jit(partial(_weighted_sum, training))(gp, tasks.table, own)
    expected = sum(getattr(training, name) * term for name, term in terms(gp, WEIGHTS).items())
    assert float(value) == pytest.approx(expected, rel=1e-9)
    assert float(jitter) == 0.0


def test_a_term_on_blocks_needs_matched_data() -> None:
    with pytest.raises(InvalidInputError, match="no matched input"):
        pretrain_sum([Job(PLAIN, 0)], ARCHITECTURE, SumTraining(nll=0.0, ekl=0.0, squared_wasserstein=1.0))


def test_estimates_are_those_of_the_estimator_asked_for() -> None:
    blocks = blocks_of_jobs([Job(DATA, 0), Job(with_blocks(PLAIN, BLOCKS[1]), 0)], "unbiased")
    np.testing.assert_array_equal(blocks.weights, [[0.5, 0.5], [1.0, 0.0]])
    for job, number, block in [(0, 0, BLOCKS[0]), (0, 1, BLOCKS[1]), (1, 0, BLOCKS[1])]:
        root = np.asarray(blocks.estimates.root)[job, number, : len(block.x)]
        np.testing.assert_allclose(root @ root.T, np.cov(block.y), rtol=1e-6)
