"""What `benchmarks.tuning` tunes: tasks of PD1 mini, trained for real, and the tables of TaskSet.

Each brings the priors that have not seen it: of a PD1 mini task those that `hyperbo online` left, of a table
those that are pre-trained here on the other tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float64

from benchmarks.tuning_peers import WITH_PRIOR, Point, Told
from flows.arms import nll_training
from flows.progress import progress_line, say
from hyperbo.code_version import code_version
from hyperbo.methods import HNLL
from hyperbo.online import ONLINE_METHODS, Evaluation, Retrained, RunName
from hyperbo.pretrain import Job
from hyperbo.prior import Prior, PriorDescription, load_prior, save_prior
from hyperbo.search_space import SearchSpace
from hyperbo.tuning_data import MatchedBlock, Task, TuningData
from hyperbo.warping import INFEASIBLE, OutputWarping, online_map, output_warping
from pd1_builder.additions import add
from pd1_builder.load import load
from pipelines.collect.objective import LiveObjective
from pipelines.collect.preset import Preset, load_preset

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
      study: the task.
      lanes: how many points are trained at once.
      folder: of `hyperbo online`, with its priors.
    """

    # What a trial that diverged counts as, where a method knows no infeasible ones: the largest error rate.
    worst = 1.0

    def __init__(self, study: str, lanes: int, folder: Path) -> None:
        preset: Preset = load_preset(PRESET)
        self.name, self._folder = study, folder
        self._objective = LiveObjective(preset, study, lanes, "benchmark")

    @property
    def space(self) -> SearchSpace:
        """That of PD1."""
        return self._objective.space

    @property
    def warping(self) -> OutputWarping:
        """The logarithm of the error rate."""
        return self._objective.warping

    def evaluate(
        self, points: Float64[np.ndarray, "n d"], runs: Sequence[RunName], iteration: int
    ) -> Evaluation:
        """Train at each point; of the rows nothing is kept."""
        found = self._objective.evaluate(points, runs, iteration)
        return Evaluation(found.objective, [{} for _ in found.rows])

    def place(self, point: Point, told: Sequence[Told]) -> Point:
        """Where a proposal is tried: there."""
        return point

    def prior(self, method: str, seed: int) -> Prior:
        """One that was pre-trained without this task's dataset."""
        return load_prior(self._folder / "priors" / method / self._objective.dataset_name / f"seed{seed}")


class TabularTask:
    """A table of trials; a proposal is tried as the row that is nearest in the unit cube.

    Args:
      data: all tables, as `tables_of` makes them.
      name: which.
      folder: of the priors.
      repeats: False: of the rows that the run has not tried, and the method is told where that row is.
        True: of all rows, and the method is told the row's result as that of its own point.
    """

    def __init__(self, data: TuningData, name: str, folder: Path, repeats: bool) -> None:
        self._repeats = repeats
        self.name, self.space, self._folder = name, data.search_space, folder
        self.warping = output_warping("negative_log")
        task = data.task(name)
        self._x, self._objective = task.x, task.objective
        self.worst = float(np.nanmax(self._objective))

    def evaluate(
        self, points: Float64[np.ndarray, "n d"], runs: Sequence[RunName], iteration: int
    ) -> Evaluation:
        """Look each point up."""
        rows = np.argmin(self._apart(points), axis=1)
        return Evaluation(self._objective[rows], [{"row": row} for row in rows.tolist()])

    def place(self, point: Point, told: Sequence[Told]) -> Point:
        """Where a proposal is tried."""
        if self._repeats:
            return point
        apart = self._apart(point[None])[0]
        if told:
            apart[np.argmin(self._apart(np.array([each.point for each in told])), axis=1)] = np.inf
        return self.space.from_unit(self._x[np.argmin(apart)][None])[0]

    def _apart(self, points: Float64[np.ndarray, "n d"]) -> Float64[np.ndarray, "n rows"]:
        return np.linalg.norm(self.space.to_unit(points)[:, None] - self._x, axis=2)

    def prior(self, method: str, seed: int) -> Prior:
        """One that was pre-trained on the other tables."""
        return load_prior(prior_folder(self._folder, method, self.name, seed))


def tables_of(folder: Path, data_dir: Path) -> TuningData:
    """The tables of TaskSet, values mapped to [-2, 2] as the preparation `online` maps those of PD1.

    Args:
      folder: of the files, `imdb_*.jsonl.gz`.
      data_dir: where the dataset version is made.

    Returns:
      Tasks with all inputs, y = -2 and no objective where a trial diverged.
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
    """Where a table's prior is."""
    return folder / "priors" / method / task / f"seed{seed}"


def pretrain_tables(data: TuningData, folder: Path, seeds: Sequence[int]) -> None:
    """Pre-train the priors that are missing, each on all tables but one."""
    for label in WITH_PRIOR:
        method = ONLINE_METHODS[label]
        assert isinstance(method, Retrained)
        if isinstance(method.method, HNLL):
            method = replace(method, method=replace(method.method, training=nll_training(STEPS)))
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
                    code_version=code_version("hyperbo"),
                )
                save_prior(prior_folder(folder, label, name, seed), Prior(result.gp, description))
