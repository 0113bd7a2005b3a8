"""The commands `hyperbo evaluate` and `hyperbo study`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from flows.data_commands import DataDir
from flows.jobs import end_with_outcome, prepare_process, start_prefect

if TYPE_CHECKING:
    from flows.experiment import Experiment

# Named here so that `--help` need not import what they are: `flows.studies`, `flows.protocols`.
StudyName = Literal[
    "points-per-task", "training-tasks", "acquisition", "structure", "negative-transfer", "held-out"
]
ProtocolChoice = Literal["held-out-related", "all-but-test-task", "hpob"]

Runs = Annotated[Path, typer.Option(help="Folder of finished runs.")]
Dataset = Annotated[str, typer.Option(help="<name>/<config>:<version>.")]
Raw = Annotated[
    Path | None,
    typer.Option(help="Folder of raw files, where the version is to be built from them.", show_default=False),
]
Preparation = Annotated[
    str | None, typer.Option(help="Reading of the version; by default the dataset's own.", show_default=False)
]
Seeds = Annotated[int, typer.Option(min=1, help="Number of seeds.")]
Iterations = Annotated[int, typer.Option(min=1, help="Observations per run.")]
Steps = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Adam steps of methods that pre-train by NLL: a multiple of 500, or fewer; by default the "
        "paper's 50,000.",
        show_default=False,
    ),
]
NotTested = Annotated[
    list[str] | None,
    typer.Option("--not-tested", help="A task that is trained on, not tested.", show_default=False),
]


def evaluate(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Experiment file (TOML); it says what the options from --dataset on would.",
            show_default=False,
        ),
    ] = None,
    runs: Runs = Path("runs"),
    data: DataDir = None,
    dataset: Dataset = "pd1/mini:1.0.0",
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="A method: its name, <name>-<n> for at most n points per training task, or <module>:<class> "
            "for one of your own. The report is about the first.",
            show_default=False,
        ),
    ] = None,
    protocol: Annotated[
        ProtocolChoice | None,
        typer.Option(help="By default the paper's for the dataset.", show_default=False),
    ] = None,
    not_tested: NotTested = None,
    preparation: Preparation = None,
    raw: Raw = None,
    seeds: Seeds = 5,
    iterations: Iterations = 100,
    steps: Steps = None,
) -> None:
    """Compare methods: pre-train, simulate, report. Only what is missing is done.

    Methods are at the paper's settings; an experiment file configures them.
    """
    given = _options(
        dataset=dataset,
        method=method,
        protocol=protocol,
        not_tested=not_tested,
        preparation=preparation,
        raw=raw,
        seeds=seeds,
        iterations=iterations,
        steps=steps,
    )
    prepare_process()
    if file is not None:
        _refuse_beside_a_file(context, given)
        from flows.experiment_file import read_experiment

        experiment = read_experiment(file, runs, data)
        command = _command(f"evaluate {shlex.quote(str(file))}", _options(runs=runs, data=data))
    else:
        if not method:
            raise typer.BadParameter("name an experiment file, or methods with --method")
        from flows.arms import arms_by_name

        experiment = _experiment(arms_by_name(method, dataset, steps), runs, data, given)
        command = _command("evaluate", given | _options(runs=runs, data=data))
    start_prefect(runs)
    from flows.retrain import retrain

    folder = retrain(experiment, command)
    end_with_outcome(folder)


def study(
    name: Annotated[StudyName, typer.Argument(help="Which study of the paper.")],
    runs: Runs = Path("runs"),
    data: DataDir = None,
    dataset: Dataset = "pd1/mini:1.0.0",
    method: Annotated[
        list[str] | None,
        typer.Option(help="A method to vary; by default those of the paper.", show_default=False),
    ] = None,
    not_tested: NotTested = None,
    preparation: Preparation = None,
    raw: Raw = None,
    seeds: Seeds = 5,
    iterations: Iterations = 100,
    steps: Steps = None,
) -> None:
    """Do a study of the paper on a dataset version. Only what is missing is done."""
    given = _options(
        dataset=dataset,
        method=method,
        not_tested=not_tested,
        preparation=preparation,
        raw=raw,
        seeds=seeds,
        iterations=iterations,
        steps=steps,
    )
    prepare_process()
    from flows.arms import arms_by_name
    from flows.studies import STUDIES

    names = method or STUDIES[name].methods
    experiment = _experiment(arms_by_name(names, dataset, steps), runs, data, given)
    command = _command(f"study {name}", given | _options(runs=runs, data=data))
    start_prefect(runs)
    from flows.study import run_study

    folder = run_study(name, experiment, command, chosen=method is not None)
    end_with_outcome(folder)


def _options(**values: Any) -> dict[str, Any]:
    """Values of options by what is typed for them."""
    return {f"--{name.replace('_', '-')}": value for name, value in values.items()}


def _refuse_beside_a_file(context: typer.Context, options: Mapping[str, Any]) -> None:
    """An option that the file overrules must not seem to count."""
    for option in options:
        source = context.get_parameter_source(option.removeprefix("--").replace("-", "_"))
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter("an experiment file says this itself", param_hint=option)


def _experiment(
    arms: Mapping[str, Any], runs: Path, data: Path | None, given: Mapping[str, Any]
) -> Experiment:
    from flows.experiment import Experiment
    from flows.protocols import default_protocol

    return Experiment(
        arms,
        runs,
        data,
        dataset=given["--dataset"],
        raw=given["--raw"],
        preparation=given["--preparation"],
        protocol=given.get("--protocol") or default_protocol(given["--dataset"]),
        not_tested=tuple(given["--not-tested"] or ()),
        seeds=tuple(range(given["--seeds"])),
        iterations=given["--iterations"],
    )


def _command(words: str, options: Mapping[str, Any]) -> str:
    """What to type to run it again."""
    typed = []
    for option, value in options.items():
        values: Sequence[Any] = value if isinstance(value, list) else [] if value is None else [value]
        typed += [f"{option} {shlex.quote(str(each))}" for each in values]
    return " ".join(["hyperbo", words, *typed])
