"""Options that several commands share."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hyperbo_flows.cli.completion import references

if TYPE_CHECKING:
    from hyperbo_pipelines.run.execution import Execution


def optional(help_text: str, *names: str, **settings: Any) -> Any:
    """An option of Typer whose default says nothing, so `--help` leaves it out.

    Args:
      help_text: what the option means.
      names: its names, where the parameter's own does not do.
      settings: further settings of `typer.Option`.
    """
    return typer.Option(*names, help=help_text, show_default=False, **settings)


DataDir = Annotated[
    Path | None,
    optional(
        "Data folder: the folder of dataset versions. Default: hyperbo in the user's folder of data.",
        "--data",
        envvar="HYPERBO_DATA_DIR",
    ),
]
Reference = Annotated[
    str,
    typer.Argument(
        help="<name>/<config>:<version>, such as pd1/mini:1.0.0.",
        autocompletion=references,
    ),
]
NextVersion = Annotated[str | None, optional("Version number. Default: the next one.")]
MaxRejectShare = Annotated[
    float, typer.Option(min=0.0, max=1.0, help="Largest share of rows that may be rejected.")
]
Runs = Annotated[Path, typer.Option(help="Folder of finished runs.")]
Seeds = Annotated[int, typer.Option(min=1, help="Number of seeds.")]
Iterations = Annotated[int, typer.Option(min=1, help="Observations per run.")]
Repeats = Annotated[
    bool,
    typer.Option(
        "--repeats",
        help="Runs may observe a trial again before they have observed all, as in the paper's PD1 "
        "experiments.",
        show_default=False,
    ),
]
Steps = Annotated[
    int | None,
    optional(
        "Most Adam steps of methods that pre-train by NLL, such as H-NLL: a multiple of 100 (500 at the "
        "paper's settings), or fewer. Refused where no method does; RFGP, MIMO and MAF train in another way.",
        min=1,
    ),
]
# The names in `hyperbo.methods.paper`, which `--help` need not import.
SettingsChoice = Literal["default", "paper"]
Settings = Annotated[
    SettingsChoice, typer.Option(help="Settings of the methods: the defaults, or the paper's.")
]
Workers = Annotated[int, typer.Option(min=1, help="Worker processes of Beam.")]
WorkerPool = Annotated[str, optional("host:port of a pool of Beam workers that sees the same files.")]
BeamArguments = Annotated[str, optional("Arguments of Beam in place of the two above, for another runner.")]


def beam_execution(workers: int, worker_pool: str, beam_arguments: str) -> Execution:
    """Where the options say that Beam runs.

    Args:
      workers: worker processes.
      worker_pool: address of a pool of workers, or empty.
      beam_arguments: Beam's own, quoted as for a shell, or empty.

    Raises:
      typer.BadParameter: the quotes of Beam's arguments do not match.
    """
    from hyperbo_pipelines.run.execution import Execution

    from hyperbo_flows.process.environment import quiet_tfds

    quiet_tfds()
    mode = "external" if worker_pool else "multi_processing" if workers > 1 else "in_memory"
    try:
        arguments = tuple(shlex.split(beam_arguments))
    except ValueError as error:
        raise typer.BadParameter(f"{beam_arguments}: {error}", param_hint="--beam-arguments") from error
    return Execution(mode, workers, worker_pool, arguments)


def refuse_given(context: typer.Context, names: Iterable[str], reason: str) -> None:
    """Refuse options on the command line that something else overrules: they must not seem to count.

    A variable of the environment may be set for other commands, and is not refused.

    Raises:
      typer.BadParameter: one of the options is given.
    """
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(reason, param_hint=f"--{name.replace('_', '-')}")
