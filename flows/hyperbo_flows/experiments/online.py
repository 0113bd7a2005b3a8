"""Methods compared by online tuning: priors are pre-trained or given, and every trial is really trained."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from hyperbo_pipelines.collect.objective import PresetTask
from hyperbo_pipelines.collect.preset import load_preset
from hyperbo_pipelines.collect.rows import to_json_lines

from hyperbo.bayesopt.journal import Journal, OnlineTrial, RunName
from hyperbo.bayesopt.online import OnlineRun, online_records, tune
from hyperbo.bayesopt.online_methods import ONLINE_METHODS, Retrained, paper_online
from hyperbo.bayesopt.propose import OnlineMethod
from hyperbo.data.search_space import PD1_SEARCH_SPACE
from hyperbo.data.subsets import only_tasks
from hyperbo.data.tuning_data import TuningData
from hyperbo.errors import InvalidInputError, NumericalError, VersionConflictError
from hyperbo.methods.paper import SettingsName
from hyperbo.pretrain import Job, outcomes_of
from hyperbo.priors.file import Prior, read_prior, save_prior
from hyperbo.priors.names import load_prior
from hyperbo.storage.atomic import write_atomically
from hyperbo.storage.code_version import NUMERIC, code_version
from hyperbo.storage.validation import suggestion
from hyperbo_flows.experiments.make_prior import PREPARATION, prior_of_job, warping_of, with_steps
from hyperbo_flows.process.progress import progress_line, say
from pd1_builder.read.load import load

# As raw files of a dataset are named: with them, the trials can be built into one.
ROWS_NAME = "trials/pd1_unmatched_phase0_results.jsonl.gz"

# Called with all trials so far and the new ones among them.
ShowTrials = Callable[[Sequence[OnlineTrial], Sequence[OnlineTrial]], object]


@dataclass(frozen=True)
class OnlineComparison:
    """What is compared, on which tasks, and where the results go.

    Attributes:
      preset: collection that the tuned tasks belong to.
      tasks: which of its tasks are tuned, by their study names.
      out: folder of the journal, the priors and the results.
      data_dir: folder of dataset versions; None: the default one.
      dataset: version that priors are pre-trained on.
      methods: by name.
      seeds: of the runs, and of the priors.
      trials: number of trials of each run.
      steps: Adam steps of H-NLL, at most; None: those of its settings.
      prior: name or folder of a prior to tune with. Its method, with the settings and the dataset of the
        prior, then takes the place of `methods`, `dataset`, `steps` and `settings`. None: priors are
        pre-trained.
      settings: `paper` for those of the paper.
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
    prior: str | None = None
    settings: SettingsName = "default"

    @property
    def run_count(self) -> int:
        """Number of runs."""
        return len(self.tasks) * len(self.seeds) * (len(self.methods) if self.prior is None else 1)

    def configured(self) -> dict[str, OnlineMethod]:
        """The methods by name, with their settings.

        Raises:
          InvalidInputError: a name is unknown.
        """
        unknown = [name for name in self.methods if name not in ONLINE_METHODS]
        if unknown:
            raise InvalidInputError(
                f"unknown method {', '.join(unknown)}", fix=suggestion(unknown[0], ONLINE_METHODS)
            )
        chosen = {name: ONLINE_METHODS[name] for name in self.methods}
        if self.settings == "paper":
            chosen = {name: paper_online(method) for name, method in chosen.items()}
        return {name: with_steps(method, self.steps) for name, method in chosen.items()}


class ComparisonResults(NamedTuple):
    """The results of a comparison.

    Attributes:
      records: all trials, as `online_records` makes them.
      failures: the runs that ended early or did not begin, and why.
    """

    records: pd.DataFrame
    failures: Mapping[RunName, str]


def compare_online(comparison: OnlineComparison, show: ShowTrials | None = None) -> ComparisonResults:
    """Pre-train the missing priors, continue all runs, write records, raw rows and figures.

    Args:
      comparison: what is compared.
      show: shows the trials; None: a line of progress counts them.

    Raises:
      InvalidInputError: a name is unknown, there is no task or no seed, or the prior cannot be used.
      NotAvailableError: the dataset version, the prior, or the library that brings a task is missing.
      VersionConflictError: the folder holds other runs, or the prior was trained on other data.
    """
    if not comparison.tasks or not comparison.seeds:
        raise InvalidInputError("no task or no seed to compare on", fix="name at least one")
    preset = load_preset(comparison.preset)
    if comparison.prior is None:
        prior, methods, dataset = None, comparison.configured(), comparison.dataset
    else:
        prior = load_prior(comparison.prior)
        methods = {prior.description.method: _method_of(prior, comparison.prior)}
        dataset = prior.description.dataset
    data = load(dataset, PREPARATION, data_dir=comparison.data_dir)
    runs_at_once = len(methods) * len(comparison.seeds)
    identity = {
        "dataset": asdict(data.provenance),
        "preset": preset.sha256,
        "methods": {name: [type(method).__name__, asdict(method)] for name, method in methods.items()},  # type: ignore[call-overload]
        "prior": None if prior is None else prior.identity,
        # With another number, trials may differ in the last bit.
        "trials_at_once": runs_at_once,
        "code_version": code_version(*NUMERIC, "hyperbo_pipelines.collect"),
    }
    journal = Journal(comparison.out, identity)
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    origin = f"online-{digest[:8]}"
    tasks = {study: PresetTask(preset, study, runs_at_once, origin) for study in comparison.tasks}
    if prior is None:
        runs, failures = _pretrained_runs(comparison, methods, data, tasks)
    else:
        runs, failures = _runs_with(prior, methods, comparison, data), {}
    with _shown(journal, comparison.trials * len(runs), show) as on_trials:
        failures |= tune(runs, tasks, journal, comparison.trials, on_trials)
    records = online_records(journal.trials, {study: task.warping for study, task in tasks.items()})
    _write_results(comparison.out, records, journal)
    _draw(comparison.out, records, tuple(methods))
    return ComparisonResults(records, failures)


@contextmanager
def _shown(
    journal: Journal, total: int, show: ShowTrials | None
) -> Iterator[Callable[[Sequence[OnlineTrial]], object]]:
    if show is not None:
        show(journal.trials, ())
        yield lambda new: show(journal.trials, new)
        return
    with progress_line("online", "trials") as progress:
        progress(len(journal.trials), total)
        yield lambda _: progress(len(journal.trials), total)


def _write_results(folder: Path, records: pd.DataFrame, journal: Journal) -> None:
    """Write the records, and the raw rows as a file in the layout of the PD1 release."""
    write_atomically(folder / "records.parquet", records.to_parquet(engine="pyarrow", index=False))
    lines = to_json_lines([dict(trial.row) for trial in journal.trials])
    write_atomically(folder / ROWS_NAME, gzip.compress(lines, mtime=0))


def _draw(folder: Path, records: pd.DataFrame, labels: Sequence[str]) -> None:
    from hyperbo.evaluation.figures.online import online_figure
    from hyperbo.evaluation.figures.style import line_styles

    styles = line_styles(labels)
    for study, of_task in records.groupby("task"):
        methods = [label for label in labels if label in set(of_task["method"])]
        drawn = online_figure(str(study), records, str(study), methods, styles)
        write_atomically(folder / "figures" / f"{study}.svg", drawn.encode())


def _method_of(prior: Prior, reference: str) -> Retrained:
    """The method that a prior belongs to, with the prior's own settings."""
    description = prior.description
    known = ONLINE_METHODS.get(description.method)
    if not isinstance(known, Retrained) or description.preparation != PREPARATION:
        raise InvalidInputError(
            f"a prior of {description.method} on the preparation {description.preparation!r} does not fit "
            "values that are mapped to [-2, 2]",
            where=reference,
            fix="use one from `hyperbo prior train`, or from the folder of `hyperbo online`",
        )
    if description.search_space != PD1_SEARCH_SPACE:
        raise InvalidInputError("the prior has another search space than PD1", where=reference)
    training: Any = type(known.method.training)(**description.training)
    return replace(
        known, method=replace(known.method, architecture=description.architecture, training=training)
    )


def _runs_with(
    prior: Prior, methods: Mapping[str, OnlineMethod], comparison: OnlineComparison, data: TuningData
) -> list[OnlineRun]:
    """The runs of the method of a given prior, which is re-trained on the data that it was trained on."""
    description = prior.description
    if data.provenance.manifest_hash != description.manifest_hash:
        raise VersionConflictError(
            f"{comparison.prior}: the prior was trained on another {description.dataset}: content "
            f"{description.manifest_hash}, but the one here has {data.provenance.manifest_hash}"
        )
    job = Job(only_tasks(data, description.training_tasks), description.seed)
    ((label, method),) = methods.items()
    assert isinstance(method, Retrained)
    (fitted,) = method.with_priors([job], [prior.gp])
    return [
        OnlineRun(RunName(label, study, seed), method, fitted)
        for study in comparison.tasks
        for seed in comparison.seeds
    ]


def _pretrained_runs(
    comparison: OnlineComparison,
    methods: Mapping[str, OnlineMethod],
    data: TuningData,
    tasks: Mapping[str, PresetTask],
) -> tuple[list[OnlineRun], dict[RunName, str]]:
    """All runs that can begin, with priors trained without the task's dataset; and why others cannot."""
    held_out = {study: task.dataset_name for study, task in tasks.items()}
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
    """What a method has learned from each job, or why it failed; priors are files, trained where missing."""
    if not isinstance(method, Retrained):
        return dict(zip(jobs, method.fit(list(jobs.values())), strict=True))
    folders = {
        (held_out, seed): comparison.out / "priors" / label / held_out / f"seed{seed}"
        for held_out, seed in jobs
    }
    missing = [key for key, folder in folders.items() if not (folder / "prior.json").is_file()]
    failed: dict[tuple[str, int], Any] = {}
    if missing:
        say(f"pretrain {label}: {len(missing)} priors")
        with progress_line(f"pretrain {label}", "steps") as progress:
            outcomes = outcomes_of(lambda: method.pretrain([jobs[key] for key in missing], progress))
        warping = warping_of(comparison.dataset, comparison.data_dir)
        for key, outcome in zip(missing, outcomes, strict=True):
            if isinstance(outcome, NumericalError):
                failed[key] = outcome
            else:
                save_prior(folders[key], prior_of_job(label, method, jobs[key], key[0], warping, outcome))
    usable = [key for key in jobs if key not in failed]
    priors = [read_prior(folders[key]).gp for key in usable]
    fitted = method.with_priors([jobs[key] for key in usable], priors) if usable else []
    return failed | dict(zip(usable, fitted, strict=True))
