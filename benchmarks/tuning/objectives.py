"""The tasks of `benchmarks.tuning`: tasks of PD1 mini, trained for real, and the tables of TaskSet.

Each task has priors that have not seen it: those of `hyperbo online` for a task of PD1 mini, priors that are
pre-trained here on the other tables for a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from hyperbo_flows.experiments.arms import at_most_steps
from hyperbo_flows.process.progress import progress_line, say
from hyperbo_pipelines.collect.objective import PresetTask
from hyperbo_pipelines.collect.preset import Preset, load_preset
from jaxtyping import Bool, Float64

from benchmarks.tuning.peers import WITH_PRIOR, Point, Told
from hyperbo.bayesopt.journal import RunName
from hyperbo.bayesopt.online import TrialResults
from hyperbo.bayesopt.online_methods import ONLINE_METHODS, Retrained
from hyperbo.data.search_space import SearchSpace
from hyperbo.data.tuning_data import MatchedBlock, Task, TuningData
from hyperbo.data.warping import INFEASIBLE, OutputWarping, online_map, output_warping
from hyperbo.methods import HNLL
from hyperbo.pretrain import Job
from hyperbo.priors.file import Prior, PriorDescription, read_prior, save_prior
from hyperbo.storage.code_version import NUMERIC, code_version
from pd1_builder.read.load import load
from pd1_builder.release.next_version import add

LIVE_TASKS = (
    "breast_cancer_mlp_10",
    "segments_mlp_20",
    "phishing_mlp_20",
    "digits_simple_cnn_20",
    "patches_simple_cnn_20",
    "textures_max_pool_tanh_20",
    "words_transformer_16",
)
PRESET, STEPS = "mini", 3_000
SPACE_FILE = Path(__file__).parent.parent / "docs" / "examples" / "taskset.toml"


class LiveTask:
    """A task of PD1 mini; a point is tried by training.

    Args:
      study: name of the task.
      lanes: number of points that are trained at once.
      folder: folder of `hyperbo online`, with its priors.
    """

    # The value of a diverged trial for methods without infeasible trials: the largest error rate.
    worst = 1.0

    def __init__(self, study: str, lanes: int, folder: Path) -> None:
        preset: Preset = load_preset(PRESET)
        self.name, self._folder = study, folder
        self._task = PresetTask(preset, study, lanes, "benchmark")

    @property
    def space(self) -> SearchSpace:
        """The search space of PD1."""
        return self._task.space

    @property
    def warping(self) -> OutputWarping:
        """The logarithm of the error rate."""
        return self._task.warping

    def run_trials(
        self, points: Float64[np.ndarray, "n d"], runs: Sequence[RunName], iteration: int
    ) -> TrialResults:
        """Train at each point; no rows are kept."""
        found = self._task.run_trials(points, runs, iteration)
        return TrialResults(found.objective, [{} for _ in found.rows])

    def place(self, point: Point, told: Sequence[Told]) -> Point:
        """A proposal is tried where it is."""
        return point

    def prior(self, method: str, seed: int) -> Prior:
        """A prior pre-trained without this task's dataset."""
        return read_prior(self._folder / "priors" / method / self._task.dataset_name / f"seed{seed}")


class TabularTask:
    """A table of trials; a proposal is tried at the nearest row in the unit cube.

    Args:
      data: all tables, from `tables_of`.
      name: name of the table.
      folder: folder of the priors.
      repeats: if False, only rows that the run has not tried count, and the method is told the row's point.
        If True, all rows count, and the method is told the row's result at its own point.
    """

    def __init__(self, data: TuningData, name: str, folder: Path, repeats: bool) -> None:
        self._repeats = repeats
        self.name, self.space, self._folder = name, data.search_space, folder
        self.warping = output_warping("negative_log")
        task = data.task(name)
        self._x, self._objective = task.x, task.objective
        self.worst = float(np.nanmax(self._objective))

    def run_trials(
        self, points: Float64[np.ndarray, "n d"], runs: Sequence[RunName], iteration: int
    ) -> TrialResults:
        """Look each point up."""
        rows = np.argmin(self._apart(points), axis=1)
        return TrialResults(self._objective[rows], [{"row": row} for row in rows.tolist()])

    def place(self, point: Point, told: Sequence[Told]) -> Point:
        """The nearest row."""
        if self._repeats:
            return point
        apart = self._apart(point[None])[0]
        if told:
            apart[np.argmin(self._apart(np.array([each.point for each in told])), axis=1)] = np.inf
        return self.space.from_unit(self._x[np.argmin(apart)][None])[0]

    def _apart(self, points: Float64[np.ndarray, "n d"]) -> Float64[np.ndarray, "n rows"]:
        return np.linalg.norm(self.space.to_unit(points)[:, None] - self._x, axis=2)

    def prior(self, method: str, seed: int) -> Prior:
        """A prior pre-trained on the other tables."""
        return read_prior(prior_folder(self._folder, method, self.name, seed))


def tables_of(folder: Path, data_dir: Path) -> TuningData:
    """The tables of TaskSet, with values mapped to [-2, 2] as by the preparation `online` for PD1.

    Args:
      folder: folder of the files, `imdb_*.jsonl.gz`.
      data_dir: folder in which the dataset version is built.

    Returns:
      Tasks with all inputs; a diverged trial has y = -2 and no objective.
    """
    add("taskset", sorted(folder.glob("*.jsonl.gz")), SPACE_FILE, data_dir=data_dir)
    data = load("trials/taskset:1.0.0", "observed", data_dir=data_dir)
    (block,) = data.blocks
    feasible: Bool[np.ndarray, "m n"] = np.isfinite(block.y)
    mapped = np.stack([online_map(block.y[:, i], feasible[:, i]) for i in range(len(block.tasks))], axis=1)
    objective = np.where(feasible, output_warping("negative_log").unwarp(block.y), np.nan)
    rows = tuple(f"row{number:04d}" for number in range(len(block.x)))
    tasks = tuple(
        Task(name, name, block.x, mapped[:, i], objective[:, i], rows) for i, name in enumerate(block.tasks)
    )
    provenance = replace(data.provenance, preparation=f"observed, mapped, infeasible {INFEASIBLE}")
    return replace(
        data, tasks=tasks, blocks=(MatchedBlock(block.tasks, block.x, mapped),), provenance=provenance
    )


def prior_folder(folder: Path, method: str, task: str, seed: int) -> Path:
    """The folder of a table's prior."""
    return folder / "priors" / method / task / f"seed{seed}"


def pretrain_tables(data: TuningData, folder: Path, seeds: Sequence[int]) -> None:
    """Pre-train the priors that are missing, each on all tables but one."""
    for label in WITH_PRIOR:
        method = ONLINE_METHODS[label]
        assert isinstance(method, Retrained)
        if isinstance(method.method, HNLL):
            method = replace(
                method, method=replace(method.method, training=at_most_steps(method.method.training, STEPS))
            )
        for seed in seeds:
            jobs = {
                task.name: Job(data.hold_out(task.dataset), seed)
                for task in data.tasks
                if not (prior_folder(folder, label, task.name, seed) / "prior.json").is_file()
            }
            if not jobs:
                continue
            say(f"{label}: {len(jobs)} priors with seed {seed}")
            with progress_line(label, "steps") as progress:
                trained = method.pretrain(list(jobs.values()), progress)
            for (name, job), result in zip(jobs.items(), trained, strict=True):
                description = PriorDescription(
                    method=label,
                    search_space=data.search_space,
                    output_warping="negative_log",
                    architecture=method.method.architecture,
                    training=asdict(method.method.training),
                    dataset=data.provenance.dataset,
                    manifest_hash=data.provenance.manifest_hash,
                    preparation="online",
                    training_tasks=tuple(task.name for task in job.training.tasks),
                    held_out=name,
                    seed=seed,
                    losses=tuple(result.losses.tolist()),
                    largest_jitter=result.largest_jitter,
                    seconds=result.seconds,
                    code_version=code_version(*NUMERIC),
                )
                save_prior(prior_folder(folder, label, name, seed), Prior(result.gp, description))
