"""The comparison of methods by online tuning: pre-trained without each task's dataset, tuned for real."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from flows.arms import nll_training
from flows.progress import progress_line, say
from hyperbo.code_version import code_version
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.files import write_atomically
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.methods import HNLL
from hyperbo.online import ONLINE_METHODS, Journal, OnlineMethod, OnlineRun, Retrained, RunName, tune
from hyperbo.online.records import online_records
from hyperbo.pretrain import Job, Pretrained, outcomes_of
from hyperbo.prior import Prior, PriorDescription, load_prior, save_prior
from hyperbo.tuning_data import TuningData
from pd1_builder.load import load
from pipelines.collect.objective import LiveObjective
from pipelines.collect.preset import load_preset
from pipelines.collect.records import to_json_lines

PREPARATION = "online"
RECORDS_NAME = "records.parquet"
FIGURES_NAME = "figures"
# As raw files of a dataset are named: with them, the trials can be built into one.
ROWS_NAME = "trials/pd1_unmatched_phase0_results.jsonl.gz"


@dataclass(frozen=True)
class OnlineComparison:
    """What is compared, on what, and where it goes.

    Attributes:
      preset: collection whose tasks are tuned.
      tasks: which of them, by their study names.
      out: folder of the journal, the priors and the results.
      data_dir: folder of dataset versions; None: the default one.
      dataset: version that priors are pre-trained on.
      methods: by name.
      seeds: of the runs, and of the priors.
      trials: of each run.
      steps: Adam steps of H-NLL; None: the paper's.
    """

    preset: str
    tasks: tuple[str, ...]
    out: Path
    data_dir: Path | None
    dataset: str = "pd1/mini:2.0.0"
    methods: tuple[str, ...] = tuple(ONLINE_METHODS)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    trials: int = 50
    steps: int | None = None

    def settings(self) -> dict[str, OnlineMethod]:
        """The methods by name.

        Raises:
          InvalidInputError: a name is unknown.
        """
        unknown = [name for name in self.methods if name not in ONLINE_METHODS]
        if unknown:
            raise InvalidInputError(
                f"unknown method {', '.join(unknown)}", fix=f"use some of {', '.join(ONLINE_METHODS)}"
            )
        return {name: with_steps(ONLINE_METHODS[name], self.steps) for name in self.methods}


class Outcome(NamedTuple):
    """What came of a comparison.

    Attributes:
      records: a row per trial, as `online_records` makes them.
      failures: runs without a usable prior or proposal, and why.
    """

    records: pd.DataFrame
    failures: Mapping[RunName, str]


def compare_online(comparison: OnlineComparison) -> Outcome:
    """Pre-train what is missing, go on with all runs, write records, raw rows and figures.

    Raises:
      HyperBOError: a name is unknown, data are not here, or the folder holds other runs.
    """
    methods = comparison.settings()
    if not comparison.tasks or not comparison.seeds:
        raise InvalidInputError("no task or no seed to compare on", fix="name at least one")
    preset = load_preset(comparison.preset)
    data = load(comparison.dataset, PREPARATION, data_dir=comparison.data_dir)
    lanes = len(methods) * len(comparison.seeds)
    identity = {
        "dataset": asdict(data.provenance),
        "preset": preset.sha256,
        "methods": {name: [type(method).__name__, asdict(method)] for name, method in methods.items()},  # type: ignore[call-overload]
        # Of another number, trials may differ in the last bit.
        "trials_at_once": lanes,
        "code_version": code_version("hyperbo", "pipelines"),
    }
    journal = Journal(comparison.out, identity)
    origin = origin_of(identity)
    objectives = {study: LiveObjective(preset, study, lanes, origin) for study in comparison.tasks}
    runs, failures = _runs(comparison, methods, data, objectives)
    total = comparison.trials * len(runs)
    with progress_line("online", "trials") as progress:
        progress(len(journal.trials), total)
        failures |= tune(
            runs, objectives, journal, comparison.trials, lambda _: progress(len(journal.trials), total)
        )
    warpings = {study: objective.warping for study, objective in objectives.items()}
    records = online_records(journal.trials, warpings)
    write_results(comparison.out, records, journal)
    _draw(comparison, records)
    return Outcome(records, failures)


def origin_of(identity: Mapping[str, Any]) -> str:
    """A name for the trials of runs that one identity describes.

    >>> origin_of({"preset": "none"})
    'online-56dda634'
    """
    text = json.dumps(identity, sort_keys=True)
    return f"online-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def write_results(folder: Path, records: pd.DataFrame, journal: Journal) -> None:
    """Write the records, and the raw rows as a file of the release's layout."""
    buffer = io.BytesIO()
    records.to_parquet(buffer, engine="pyarrow", index=False)
    write_atomically(folder / RECORDS_NAME, buffer.getvalue())
    lines = to_json_lines([dict(trial.row) for trial in journal.trials])
    write_atomically(folder / ROWS_NAME, gzip.compress(lines, mtime=0))


def _draw(comparison: OnlineComparison, records: pd.DataFrame) -> None:
    from hyperbo.evaluation.figure_style import line_styles
    from hyperbo.evaluation.online_figure import online_figure

    styles = line_styles(comparison.methods)
    for study, of_task in records.groupby("task"):
        methods = [method for method in comparison.methods if method in set(of_task["method"])]
        drawn = online_figure(str(study), records, str(study), methods, styles)
        write_atomically(comparison.out / FIGURES_NAME / f"{study}.svg", drawn.encode())


def with_steps(method: OnlineMethod, steps: int | None) -> OnlineMethod:
    """A method with so many Adam steps; methods that take none, and None, change nothing."""
    if steps is None or not isinstance(method, Retrained) or not isinstance(method.method, HNLL):
        return method
    return replace(method, method=replace(method.method, training=nll_training(steps)))


def _runs(
    comparison: OnlineComparison,
    methods: Mapping[str, OnlineMethod],
    data: TuningData,
    objectives: Mapping[str, LiveObjective],
) -> tuple[list[OnlineRun], dict[RunName, str]]:
    """All runs that can begin, and why others cannot."""
    held_out = {study: objective.dataset_name for study, objective in objectives.items()}
    # A task whose dataset no training task has is new anyway.
    training = {
        name: data.hold_out(name) if name in data.task_datasets else data for name in held_out.values()
    }
    jobs = {(name, seed): Job(training[name], seed) for name in training for seed in comparison.seeds}
    runs: list[OnlineRun] = []
    failures: dict[RunName, str] = {}
    for label, method in methods.items():
        learned = _learned(comparison, label, method, jobs)
        for study in comparison.tasks:
            for seed in comparison.seeds:
                name, fitted = RunName(label, study, seed), learned[held_out[study], seed]
                if isinstance(fitted, NumericalError):
                    failures[name] = str(fitted)
                else:
                    runs.append(OnlineRun(name, method, fitted))
    return runs, failures


def _learned(
    comparison: OnlineComparison, label: str, method: OnlineMethod, jobs: Mapping[tuple[str, int], Job]
) -> dict[tuple[str, int], Any]:
    """What a method has learned from each job, or why it has not; priors are files, made where missing."""
    if not isinstance(method, Retrained):
        return dict(zip(jobs, method.fit(list(jobs.values())), strict=True))
    folders = {
        (held_out, seed): comparison.out / "priors" / label / held_out / f"seed{seed}"
        for held_out, seed in jobs
    }
    missing = [key for key, folder in folders.items() if not (folder / "prior.json").is_file()]
    outcomes: dict[tuple[str, int], Any] = {}
    if missing:
        say(f"pretrain {label}: {len(missing)} priors")
        with progress_line(f"pretrain {label}", "steps") as progress:
            trained = outcomes_of(lambda: method.pretrain([jobs[key] for key in missing], progress))
        for key, outcome in zip(missing, trained, strict=True):
            if isinstance(outcome, NumericalError):
                outcomes[key] = outcome
            else:
                description = describe(label, method, jobs[key], key[0], outcome)
                save_prior(folders[key], Prior(outcome.gp, description))
    usable = [key for key in jobs if key not in outcomes]
    priors: list[GaussianProcess] = [load_prior(folders[key]).gp for key in usable]
    fitted = method.with_priors([jobs[key] for key in usable], priors) if usable else []
    return outcomes | dict(zip(usable, fitted, strict=True))


def describe(label: str, method: Retrained, job: Job, held_out: str, result: Pretrained) -> PriorDescription:
    """What a pre-trained prior is and was made from."""
    provenance = job.training.provenance
    return PriorDescription(
        method=label,
        search_space=job.training.search_space,
        output_warping="negative_log",
        architecture=method.method.architecture,
        training=asdict(method.method.training),
        dataset=provenance.dataset,
        manifest_hash=provenance.manifest_hash,
        preparation=provenance.preparation,
        training_tasks=tuple(task.name for task in job.training.tasks),
        held_out=held_out,
        seed=job.seed,
        losses=tuple(result.losses.tolist()),
        largest_jitter=result.largest_jitter,
        seconds=result.seconds,
        code_version=code_version("hyperbo"),
    )
