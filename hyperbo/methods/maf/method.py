"""MAF: an acquisition function learned by reinforcement learning on the training tasks.

Volpp et al., "Meta-learning acquisition functions for transfer learning in Bayesian optimization", ICLR 2020,
whose settings are its defaults (hyperparameter optimization of support vector machines); and the paper's
appendix D.5 "MAF Implementation Details".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.compute.parallel import batched, pad_batch, stack, unstack
from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.methods.maf.episodes import KnownTasks, ReLUNetwork, network_inputs
from hyperbo.methods.maf.training import MAFTraining, TasksOfJob, run_iterations, start_course
from hyperbo.methods.protocol import Scores
from hyperbo.pretrain.jobs import Job, Progress, all_trained, check_jobs, no_progress
from hyperbo.pretrain.task_gp import TaskGP
from hyperbo.pretrain.task_table import tasks_of_jobs


@dataclass(frozen=True)
class MAF:
    """Settings of MAF, section 7.2 "Description of All Compared Methods".

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
        """Train one acquisition function per job, all in one compiled loop spread over the devices.

        Tasks are drawn for episodes in proportion to their weights.

        Raises:
          InvalidInputError: there is no job, the search spaces differ, or a job has fewer tasks than the
            validation takes.
          TrainingError: the Gaussian process of a job's task, or the course of its training, is not finite;
            what was learned from the other jobs comes with the error.
        """
        check_jobs(jobs)
        for job in jobs:
            if len(job.training.tasks) < self.training.validation_tasks:
                raise InvalidInputError(
                    f"validation_tasks = {self.training.validation_tasks}, but a job has "
                    f"{len(job.training.tasks)} tasks",
                    where=job.training.provenance.dataset,
                    fix="lower validation_tasks",
                )
        # Jobs share most of their tasks: each is fitted once.
        tasks = {id(task): task for job in jobs for task in job.training.tasks}
        gps = {key: _fit(self.task_gp, task) for key, task in tasks.items()}
        unfit = [_first_failure([gps[id(task)] for task in job.training.tasks]) for job in jobs]
        left = [job for job, failure in zip(jobs, unfit, strict=True) if failure is None]
        trained = iter(_train(left, gps, self.training, progress) if left else [])
        return all_trained([next(trained) if failure is None else failure for failure in unfit])

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
    """Scores candidates by the network; the highest score is the most probable choice of its training."""

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


@pytree
class TrainedAcquisition:
    """What a training leaves, as NumPy arrays.

    Attributes:
      network: the policy after the best iteration.
      rewards: mean reward per step of the episodes of every iteration, before its updates.
      validation_regrets: mean simple regret, over the steps and the validation tasks, after every iteration.
    """

    network: ReLUNetwork
    rewards: Float[np.ndarray | Array, " i"]
    validation_regrets: Float[np.ndarray | Array, " i"]


def _fit(task_gp: TaskGP, task: Task) -> GaussianProcess | NumericalError:
    try:
        return task_gp.fit(task)
    except NumericalError as error:
        return error


def _first_failure(gps: Sequence[GaussianProcess | NumericalError]) -> NumericalError | None:
    return next((gp for gp in gps if isinstance(gp, NumericalError)), None)


def _train(
    jobs: Sequence[Job], gps: Mapping[int, Any], training: MAFTraining, progress: Progress
) -> list[TrainedAcquisition | NumericalError]:
    """Train on the tasks that have a Gaussian process in `gps`; its keys are the `id` of the task objects."""
    in_jobs = tasks_of_jobs(jobs)
    in_row = {
        row: task
        for job, rows in zip(jobs, in_jobs.rows, strict=True)
        for row, task in zip(rows, job.training.tasks, strict=False)  # padding follows a job's own tasks
    }
    of_rows = [gps[id(in_row[row])] for row in range(len(in_row))]
    table = in_jobs.table
    tasks = KnownTasks(table.x, table.y, table.mask, stack(of_rows))
    validation = np.stack(
        [
            rows[np.random.default_rng(job.seed).choice(count, training.validation_tasks, replace=False)]
            for job, rows, count in zip(jobs, in_jobs.rows, in_jobs.counts, strict=True)
        ]
    )
    seeds = np.array([job.seed for job in jobs])
    own = pad_batch(TasksOfJob(*map(jnp.asarray, (in_jobs.rows, in_jobs.weights, validation, seeds))))
    dimension = jobs[0].training.search_space.dimension
    course = batched(partial(start_course, training, dimension))(own)
    run = batched(partial(run_iterations, training), shared=1)
    curves: list[tuple[np.ndarray, np.ndarray]] = []
    for done in range(0, training.iterations, training.iterations_per_call):
        progress(done, training.iterations)
        course, (rewards, regrets) = run(tasks, own, course)
        curves.append((np.asarray(rewards), np.asarray(regrets)))
    progress(training.iterations, training.iterations)
    rewards, regrets = (np.concatenate(parts, axis=1) for parts in zip(*curves, strict=True))
    networks = unstack(course.best, len(jobs))
    return [
        _usable(job, TrainedAcquisition(*learned))
        for job, *learned in zip(jobs, networks, rewards, regrets, strict=False)  # padding follows the jobs
    ]


def _usable(job: Job, trained: TrainedAcquisition) -> TrainedAcquisition | NumericalError:
    if np.isfinite(trained.rewards).all() and np.isfinite(trained.validation_regrets).all():
        return trained
    return NumericalError(
        f"the training of an acquisition function on {job.training.provenance.dataset} with seed {job.seed} "
        "is not finite; lower the learning rate, or look for extreme y values"
    )
