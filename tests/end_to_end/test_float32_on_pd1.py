"""What float32 costs in accuracy on real trials: the loss of a trained model, and where training ends."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pd1_builder
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.objectives.nll import task_nll
from hyperbo.pretrain import Job, NLLTraining, pretrain_nll

pytestmark = pytest.mark.slow


def test_float32_costs_less_than_1e_4_of_the_loss_on_pd1_mini(tmp_path):
    pd1_builder.build("pd1/mini", "1.0.0", data_dir=tmp_path)
    data = pd1_builder.load("pd1/mini:1.0.0", data_dir=tmp_path)
    trained = {}
    for precision in ("float64", "float32"):
        training = NLLTraining(steps=800, steps_per_call=400, precision=precision)
        (trained[precision],) = pretrain_nll([Job(data, 0)], Architecture(), training)
        assert trained[precision].largest_jitter == 0.0
    np.testing.assert_allclose(trained["float32"].losses, trained["float64"].losses, rtol=1e-3)

    random = np.random.default_rng(0)
    with jax.enable_x64(True):
        nlls = jax.jit(jax.vmap(task_nll, in_axes=(None, 0, 0, 0)))
        for _ in range(5):
            points = [random.choice(len(task.y), 50, replace=False) for task in data.tasks]
            x = np.stack([task.x[rows] for task, rows in zip(data.tasks, points, strict=True)])
            y = np.stack([task.y[rows] for task, rows in zip(data.tasks, points, strict=True)])

            def loss(model, dtype, x=x, y=y):
                gp, x, y = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), (model.gp, x, y))
                values, jitters = nlls(gp, x, y, jnp.ones(y.shape, bool))
                assert (jitters == 0.0).all()
                return float(jnp.sum(values))

            exact = loss(trained["float64"], jnp.float64)
            assert loss(trained["float64"], jnp.float32) == pytest.approx(exact, rel=1e-4)
            assert loss(trained["float32"], jnp.float64) == pytest.approx(exact, rel=1e-3)
