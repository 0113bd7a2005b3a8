"""The commands `hyperbo evaluate` and `hyperbo study`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

import typer

from hyperbo.errors import InvalidInputError
from hyperbo.storage.installation import require_extras
from hyperbo_flows.cli.jobs import command_line, run_chain, start
from hyperbo_flows.cli.options import (
    DataDir,
    Iterations,
    Repeats,
    Runs,
    Seeds,
    Settings,
    Steps,
    optional,
    refuse_given,
)
from hyperbo_flows.process.environment import prepare_process

# The names in `studies` and `protocols` of `hyperbo_flows.experiments`, which `--help` need not import.
StudyName = Literal[
    "points-per-task", "training-tasks", "acquisition", "structure", "negative-transfer", "held-out"
]
ProtocolChoice = Literal["held-out-related", "all-but-test-task", "hpob"]

Dataset = Annotated[str, typer.Option(help="<name>/<config>:<version>.")]
Raw = Annotated[Path | None, optional("Folder of raw files, where the version is to be built from them.")]
Preparation = Annotated[
    str | None,
    optional("A named way to read the version; the card lists them. Default: that of the dataset."),
]
Train = Annotated[
    list[str] | None,
    optional("A task that is trained on, or a pattern such as 'imdb_*'; in place of a protocol.", "--train"),
]
Test = Annotated[list[str] | None, optional("A task that is tested, or a pattern; likewise.", "--test")]
NotTested = Annotated[list[str] | None, optional("A task that is trained on, not tested.", "--not-tested")]


def evaluate(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Experiment file (TOML); it replaces all options but --runs and --data.",
            show_default=False,
        ),
    ] = None,
    dataset: Dataset = "pd1/mini:1.0.0",
    method: Annotated[
        list[str] | None,
        optional(
            "A method: its name, <name>-<n> for at most n points per training task, or <module>:<class> "
            "for one of your own. The report is about the first."
        ),
    ] = None,
    protocol: Annotated[ProtocolChoice | None, optional("By default the paper's for the dataset.")] = None,
    train: Train = None,
    test: Test = None,
    not_tested: NotTested = None,
    preparation: Preparation = None,
    raw: Raw = None,
    seeds: Seeds = 5,
    iterations: Iterations = 100,
    repeats: Repeats = False,
    steps: Steps = None,
    settings: Settings = "default",
    runs: Runs = Path("runs"),
    data: DataDir = None,
) -> None:
    """Compare methods: pre-train, simulate, report. Only what is missing is done.

    Methods are at their defaults, or at the paper's settings; an experiment file configures them.
    """
    overruled = [name for name in context.params if name not in ("file", "runs", "data")]
    if file is not None:
        refuse_given(context, overruled, "an experiment file says this itself")
    elif not method:
        raise typer.BadParameter("name an experiment file, or methods, such as --method H-NLL --method Rand")
    elif train or test:
        refuse_given(context, ["protocol"], "--train and --test stand in place of a protocol")
    require_extras("report", purpose="an evaluation")
    if file is None:
        start(dataset, data, raw=raw)
    elif named := _dataset_of(file):
        start(named, data)
    prepare_process()
    from hyperbo_flows.experiments.arms import arms_by_name
    from hyperbo_flows.experiments.experiment import Experiment
    from hyperbo_flows.experiments.experiment_file import read_experiment
    from hyperbo_flows.experiments.protocols import default_protocol
    from hyperbo_flows.experiments.retrain import retrain

    if file is not None:
        run_chain(retrain, read_experiment(file, runs, data), command_line(context, without=overruled))
        return
    experiment = Experiment(
        arms_by_name(method or (), dataset, steps, settings),
        runs,
        data,
        dataset,
        raw,
        preparation,
        protocol or default_protocol(dataset),
        tuple(not_tested or ()),
        tuple(range(seeds)),
        iterations,
        repeats,
        tuple(train or ()),
        tuple(test or ()),
    )
    run_chain(retrain, experiment, command_line(context))


def _dataset_of(file: Path) -> str | None:
    """The dataset of an experiment file, read before JAX is imported; None where a later check will fail."""
    if not file.is_file():
        raise InvalidInputError(
            "there is no such file", where=str(file), fix="name an experiment file (TOML)"
        )
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("experiment")
    except (OSError, ValueError, RecursionError):
        return None
    named = table.get("dataset") if isinstance(table, dict) and "raw" not in table else None
    return named if isinstance(named, str) else None


def study(
    context: typer.Context,
    name: Annotated[StudyName, typer.Argument(help="Which study of the paper.")],
    dataset: Dataset = "pd1/mini:1.0.0",
    method: Annotated[list[str] | None, optional("A method to vary; by default those of the paper.")] = None,
    not_tested: NotTested = None,
    preparation: Preparation = None,
    raw: Raw = None,
    seeds: Seeds = 5,
    iterations: Iterations = 100,
    repeats: Repeats = False,
    steps: Steps = None,
    settings: Settings = "default",
    runs: Runs = Path("runs"),
    data: DataDir = None,
) -> None:
    """Do a study of the paper on a dataset version. Only what is missing is done."""
    require_extras("report", purpose="a study")
    start(dataset, data, raw=raw)
    prepare_process()
    from hyperbo_flows.experiments.arms import arms_by_name
    from hyperbo_flows.experiments.experiment import Experiment
    from hyperbo_flows.experiments.protocols import default_protocol
    from hyperbo_flows.experiments.retrain import run_study
    from hyperbo_flows.experiments.studies import STUDIES

    experiment = Experiment(
        arms_by_name(method or STUDIES[name].methods, dataset, steps, settings),
        runs,
        data,
        dataset,
        raw,
        preparation,
        default_protocol(dataset),
        tuple(not_tested or ()),
        tuple(range(seeds)),
        iterations,
        repeats,
    )
    run_chain(run_study, experiment, command_line(context), name=name, chosen=method is not None)
