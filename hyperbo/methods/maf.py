"""MAF: an acquisition function learned by reinforcement learning on the training tasks.

Volpp et al., "Meta-learning acquisition functions for transfer learning in Bayesian optimization", ICLR 2020,
whose settings are its defaults (hyperparameter optimization of support vector machines); and the paper's
appendix "MAF Implementation Details".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.gp.pytree import pytree
from hyperbo.methods.acquisition_network import ReLUNetwork, network_inputs
from hyperbo.methods.maf_fit import TrainedAcquisition, train_acquisition
from hyperbo.methods.maf_training import MAFTraining
from hyperbo.methods.protocol import Scores
from hyperbo.methods.task_gp import TaskGP
from hyperbo.pretrain import Job, Progress, no_progress
from hyperbo.tuning_data import Task


@dataclass(frozen=True)
class MAF:
    """Settings of MAF, section "Description of All Compared Methods".

    Its Gaussian process is an oracle's: the hyperparameters for a test task are fitted to values of the test
    task itself, before the run has observed any. That is the paper's protocol; no other method has this.

    The paper removes repeated inputs and gives every task the same number of points, for the sake of the code
    it used. Here tasks are padded and masked, and a repeated input is one more noisy observation.

    Attributes:
      task_gp: how the Gaussian process of a task, of training or test, is fitted.
      training: of the network.
    """

    task_gp: TaskGP = field(default_factory=TaskGP)
    training: MAFTraining = field(default_factory=MAFTraining)

    @double_precision
    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[TrainedAcquisition]:
        """Train one acquisition function per job.

        Raises:
          InvalidInputError: there is no job, the search spaces differ, or a job has fewer tasks than the
            validation takes.
          TrainingError: the Gaussian process of a job's task, or the course of its training, is not finite;
            what was learned from the other jobs comes with the error.
        """
        return train_acquisition(jobs, self.task_gp, self.training, progress)

    @double_precision
    def policy(self, fitted: TrainedAcquisition, task: Task) -> MAFPolicy:
        """The policy for one test task, whose values are looked at: see the class.

        Raises:
          NumericalError: the Gaussian process of the task is not finite.
        """
        return MAFPolicy(fitted.network, self.task_gp.fit(task), self.training.horizon)


@pytree
class MAFState:
    """The posterior over the candidates, and their inputs."""

    posterior: CandidatePosterior
    candidates: Float[Array, "c d"]


@pytree
class MAFPolicy:
    """Scores candidates by the network; the highest score is the most probable choice of its training.

    Attributes:
      network: the acquisition function.
      gp: prior of the test task.
      horizon: T of the training.
    """

    network: ReLUNetwork
    gp: GaussianProcess
    horizon: int = field(metadata={"static": True})

    def start(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int) -> MAFState:
        """The prior over the candidates."""
        return MAFState(CandidatePosterior.of(self.gp, candidates, capacity), candidates)

    def score(self, state: MAFState, step: Int[Array, ""], key: PRNGKeyArray) -> tuple[MAFState, Scores]:
        """The network's output at every candidate."""
        posterior = state.posterior
        values = self.network(network_inputs(posterior, state.candidates, step, self.horizon))
        deviation = jnp.sqrt(posterior.variance + posterior.noise_variance)
        return state, Scores(values, posterior.mean, deviation)

    def observe(
        self, state: MAFState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> MAFState:
        """Condition on one more observation."""
        return replace(state, posterior=state.posterior.observe(step, candidate, y))
