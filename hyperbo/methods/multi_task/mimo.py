"""MIMO: Bayesian optimization with an ensemble of networks within one network, trained on all tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int32, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.errors import InvalidInputError, require_positive
from hyperbo.gp.numerics import softplus
from hyperbo.methods.decision import AcquisitionDecision
from hyperbo.methods.multi_task.fit import FittedSurrogate, fit_surrogate
from hyperbo.methods.multi_task.model import MultiTaskTraining
from hyperbo.methods.multi_task.policy import MultiTaskPolicy
from hyperbo.pretrain.jobs import Job, Progress, no_progress


@pytree
class MIMONetwork:
    """Members that share the first layer, which sees the inputs of them all side by side.

    Attributes:
      shared: weights and biases of the first layer.
      hidden: of the layers that each member has for itself.
      output: of each member's mean and unconstrained standard deviation.
    """

    shared: tuple[Float32[Array, "_ h"], Float32[Array, " h"]]
    hidden: tuple[tuple[Float32[Array, "m _ _"], Float32[Array, "m 1 _"]], ...]
    output: tuple[Float32[Array, "m _ 2"], Float32[Array, "m 1 2"]]


@dataclass(frozen=True)
class MIMO:
    """Settings of MIMO, section 7.2 "Description of All Compared Methods".

    The ensemble is that of Havasi et al., "Training independent subnetworks for robust prediction" (ICLR
    2021): in training each member sees an observation of its own, so that it learns to ignore the others'; in
    prediction all see the same input.

    Attributes:
      training: of the model and the task embeddings.
      learning_rate: of Adam.
      members: of the ensemble; the paper does not say. Havasi et al. have 3 in their main experiments, with
        inputs drawn independently (their input repetition 0).
      shared_units: units of the layer that all members share.
      unshared_units: units of the layers that each member has for itself.
      smallest_deviation: of a member, in units of the standardised y: softplus(10^-4, 1) of the paper is read
        as ln(1 + exp(raw)) + 10^-4, the softplus of lower limit 10^-4 and sharpness 1.
      decision: how candidates are chosen.
    """

    training: MultiTaskTraining = field(default_factory=MultiTaskTraining)
    learning_rate: float = 1e-4
    members: int = 3
    shared_units: int = 10
    unshared_units: tuple[int, ...] = (10, 10)
    smallest_deviation: float = 1e-4
    decision: AcquisitionDecision = field(default_factory=AcquisitionDecision)

    def __post_init__(self) -> None:
        self.decision.require_no_correction("MIMO")
        require_positive(self, "learning_rate", "members", "shared_units", "smallest_deviation")
        if not self.unshared_units or min(self.unshared_units) < 1:
            raise InvalidInputError(
                f"unshared_units = {self.unshared_units}",
                where="MIMO",
                fix="give at least one layer, none empty",
            )

    @property
    def draws(self) -> int:
        """One minibatch for each member."""
        return self.members

    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[FittedSurrogate]:
        """Train one ensemble per job on all its tasks."""
        return fit_surrogate(self, jobs, progress)

    def policy(self, fitted: FittedSurrogate, task: Task) -> MultiTaskPolicy:
        """Bayesian optimization with the ensemble; of the test task it uses the observations only."""
        return MultiTaskPolicy(fitted, self)

    def initialise(self, key: PRNGKeyArray, inputs: int) -> tuple[MIMONetwork, tuple[()]]:
        """Glorot-normal weights, zero biases."""
        sizes = (self.shared_units, *self.unshared_units, 2)
        shapes = [(self.members * inputs, self.shared_units)]
        shapes += [(self.members, above, below) for above, below in pairwise(sizes)]
        # One draw for all: every call of the generator takes a second to compile.
        ends = list(accumulate(map(math.prod, shapes)))
        draws = jnp.split(jax.random.normal(key, (ends[-1],), jnp.float32), ends[:-1])
        shared, *own = (
            draw.reshape(shape) * math.sqrt(2.0 / (shape[-2] + shape[-1]))
            for draw, shape in zip(draws, shapes, strict=True)
        )
        layers = [(weight, jnp.zeros((self.members, 1, weight.shape[-1]), jnp.float32)) for weight in own]
        biases = jnp.zeros(self.shared_units, jnp.float32)
        return MIMONetwork((shared, biases), tuple(layers[:-1]), layers[-1]), ()

    def members_moments(
        self, network: MIMONetwork, inputs: Float32[Array, "m n i"]
    ) -> tuple[Float32[Array, "m n"], Float32[Array, "m n"]]:
        """Mean and standard deviation of each member, whose inputs stand in its own row."""
        side_by_side = jnp.moveaxis(inputs, 0, 1).reshape(inputs.shape[1], -1)
        weight, bias = network.shared
        units = jnp.tanh(side_by_side @ weight + bias)
        for weight, bias in network.hidden:
            units = jnp.tanh(units @ weight + bias)
        weight, bias = network.output
        outputs = units @ weight + bias
        return outputs[..., 0], softplus(outputs[..., 1]) + self.smallest_deviation

    def loss(
        self,
        parameters: MIMONetwork,
        constants: tuple[()],
        inputs: Float32[Array, "m b i"],
        y: Float32[Array, "m b"],
        mask: Bool[Array, " b"],
        count: Int32[Array, ""],
    ) -> Float32[Array, ""]:
        r"""Negative log density of normal observations, up to a constant, summed over members.

        .. math:: \sum_m \frac{1}{b} \sum_i \ln \sigma_m(x_i) + \frac{(y_i - \mu_m(x_i))^2}{2 \sigma_m(x_i)^2}
        """
        mean, deviation = self.members_moments(parameters, inputs)
        terms = jnp.log(deviation) + 0.5 * ((y - mean) / deviation) ** 2
        return jnp.sum(jnp.mean(terms, axis=1, where=mask))

    def predict(
        self,
        parameters: MIMONetwork,
        constants: tuple[()],
        inputs: Float32[Array, "n i"],
        y: Float32[Array, " n"],
        mask: Bool[Array, " n"],
        at: Float32[Array, "c i"],
    ) -> tuple[Float32[Array, " c"], Float32[Array, " c"]]:
        """Moments of the members' mixture; the observations are in the parameters."""
        repeated = jnp.broadcast_to(at, (self.members, *at.shape))
        return mixture_moments(*self.members_moments(parameters, repeated))


def mixture_moments(
    means: Float[Array, "m n"], deviations: Float[Array, "m n"]
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    r"""Mean and variance of an equal mixture of M normal distributions, by the law of total variance.

    .. math:: \bar\mu = \frac{1}{M} \sum_m \mu_m, \quad
              \frac{1}{M} \sum_m \sigma_m^2 + \frac{1}{M} \sum_m (\mu_m - \bar\mu)^2

    >>> mean, variance = mixture_moments(jnp.array([[0.0], [2.0]]), jnp.array([[1.0], [3.0]]))
    >>> mean.tolist(), variance.tolist()
    ([1.0], [6.0])
    """
    return jnp.mean(means, axis=0), jnp.mean(deviations**2, axis=0) + jnp.var(means, axis=0)
