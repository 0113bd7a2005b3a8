"""Bayesian optimization with a model of all tasks, refitted before each choice: MIMO and RFGP."""

from __future__ import annotations

from dataclasses import field, replace

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Float64, Int, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.methods.multi_task.fit import FittedSurrogate
from hyperbo.methods.multi_task.model import Model, Surrogate, TaskObservations, network_inputs, train
from hyperbo.methods.protocol import Scores


@pytree
class MultiTaskState:
    """The model as last refitted, and the observations of the test task so far, standardised."""

    candidates: Float32[Array, "c d"]
    mask: Bool[Array, " c"]
    x: Float32[Array, "t d"]
    y: Float32[Array, " t"]
    best: Float64[Array, ""]
    model: Model


@pytree
class MultiTaskPolicy:
    """Refit the model of all tasks before each choice, then score."""

    fitted: FittedSurrogate
    surrogate: Surrogate = field(metadata={"static": True})

    def start(
        self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int
    ) -> MultiTaskState:
        """The state without observations: the model that was fitted to the training tasks."""
        x = jnp.zeros((capacity, candidates.shape[1]), jnp.float32)
        y = jnp.zeros(capacity, jnp.float32)
        best = jnp.asarray(-jnp.inf, jnp.float64)
        return MultiTaskState(candidates.astype(jnp.float32), mask, x, y, best, self.fitted.model)

    def score(
        self, state: MultiTaskState, step: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[MultiTaskState, Scores]:
        """Refit to all observations and score; before the first of the test task there is no refit."""
        surrogate, data = self.surrogate, self.fitted.data
        refit_key, decision_key = jax.random.split(key)
        observations = self.observations(state, step)
        zero = jnp.zeros((), jnp.int32)
        epochs = jnp.where(step > 0, surrogate.training.refit_epochs, zero)
        model = train(surrogate, observations, state.model, refit_key, zero, epochs)
        shape = len(state.candidates), model.embeddings.shape[1]
        embeddings = jnp.broadcast_to(model.embeddings[-1], shape)
        mean, variance = surrogate.predict(
            model.parameters,
            model.constants,
            network_inputs(observations.x, model.embeddings[observations.task]),
            observations.y,
            observations.mask,
            network_inputs(state.candidates, embeddings),
        )
        # The variance is that of an observation and differs in its noise from candidate to candidate.
        scores = surrogate.decision.scores(
            data.mean + data.deviation * mean.astype(jnp.float64),
            data.deviation**2 * variance.astype(jnp.float64),
            jnp.zeros((), jnp.float64),
            state.best,
            state.mask,
            data.tasks,
            step,
            decision_key,
            data.spread,
        )
        return replace(state, model=model), scores

    def observations(self, state: MultiTaskState, step: Int[Array, ""]) -> TaskObservations:
        """The observations of the test task, whose number is the last, then those of the training tasks.

        In this order the padding of the training tasks comes last, where it changes nothing.
        """
        capacity, test_task = len(state.y), len(state.model.embeddings) - 1
        task = jnp.full(capacity, test_task, jnp.int32)
        own = TaskObservations(state.x, state.y, task, jnp.arange(capacity) < step)
        return jax.tree.map(lambda *parts: jnp.concatenate(parts), own, self.fitted.data.observations)

    def observe(
        self, state: MultiTaskState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> MultiTaskState:
        """Record the observation."""
        standardised = ((y - self.fitted.data.mean) / self.fitted.data.deviation).astype(jnp.float32)
        return replace(
            state,
            x=state.x.at[step].set(state.candidates[candidate]),
            y=state.y.at[step].set(standardised),
            best=jnp.maximum(state.best, y),
        )
