"""The command `hyperbo`. What a command needs is imported when it runs, so that `--help` is quick."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hyperbo import __version__
from hyperbo.errors import HyperBOError
from hyperbo.storage.installation import DISTRIBUTION, check_environment, missing_extra, require_extras
from hyperbo.storage.printable import printable
from hyperbo_flows.cli import experiments as study_commands
from hyperbo_flows.cli import tune as tune_commands
from hyperbo_flows.cli.arena import arena_app
from hyperbo_flows.cli.data import data_app
from hyperbo_flows.cli.jobs import command_line, run_chain, start, tell_how_to_remove, tell_outcome
from hyperbo_flows.cli.options import (
    BeamArguments,
    DataDir,
    Iterations,
    Repeats,
    Runs,
    Seeds,
    WorkerPool,
    Workers,
    beam_execution,
    optional,
)
from hyperbo_flows.cli.places import catalogue, prune, publish, pull
from hyperbo_flows.cli.prior import prior_app
from hyperbo_flows.cli.service import flows_app
from hyperbo_flows.cli.trials import add, space
from hyperbo_flows.process.environment import prepare_process
from hyperbo_flows.process.interrupts import interruptible

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class _Commands(TyperGroup):
    """Turns an error that a user can meet into one line and exit code 1; ends when asked to."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Read the command line, and run the command that it names."""
        try:
            return super().main(*args, **options)
        except (HyperBOError, OSError, ImportError) as error:
            line = _line(error)
            if line is None:
                raise
            typer.secho(f"hyperbo: {printable(line)}", fg="red", err=True)
            sys.exit(1)

    def invoke(self, ctx: Any) -> Any:
        """Run the command named on the command line."""
        with interruptible():
            check_environment()
            return super().invoke(ctx)


def _line(error: Exception) -> str | None:
    """What a user is told about an error; None where it is not the user's to mend."""
    if isinstance(error, HyperBOError):
        return str(error)
    if isinstance(error, ImportError):
        missing = missing_extra(error)
        return None if missing is None else str(missing)
    if not isinstance(error, OSError):
        return None
    if error.errno in _NO_ROOM:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}; free some space and start the same command again"
    if error.filename is None:
        return None
    return f"{error.filename}: {error.strerror}; choose another path, or make this one usable"


def _tell_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        python = sys.version.split()[0]
        typer.echo(f"{DISTRIBUTION} {__version__}, Python {python}, JAX {version('jax')}")
        raise typer.Exit


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help in plain text: half the time to import
    help="Versioned tuning data, pre-trained Gaussian-process priors, and the evidence that they are good.",
)


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the versions and exit.", is_eager=True, callback=_tell_version),
    ] = False,
) -> None:
    pass


app.add_typer(data_app, name="data")
app.add_typer(prior_app, name="prior")
app.add_typer(flows_app, name="flows")
app.add_typer(arena_app, name="arena")


@app.command()
def demo(
    context: typer.Context,
    runs: Runs = Path("runs"),
    data: DataDir = None,
    seeds: Seeds = 5,
    iterations: Iterations = 50,
    repeats: Repeats = False,
    steps: Annotated[
        int, typer.Option(min=1, help="Most Adam steps of H-NLL: a multiple of 100, or fewer.")
    ] = 2000,
) -> None:
    """The main job: build PD1 mini, pre-train, evaluate against Rand and STBO, report.

    What the folder of runs holds already is not done again. At the end it prints how all of it is removed.
    """
    require_extras("build", "report", purpose="the demo")
    start("pd1/mini:1.0.0", data)
    prepare_process()
    from hyperbo_flows.experiments.arms import demonstration
    from hyperbo_flows.experiments.retrain import retrain

    experiment = demonstration(
        runs, data, seeds=tuple(range(seeds)), iterations=iterations, repeats=repeats, steps=steps
    )
    run_chain(retrain, experiment, command_line(context))
    tell_how_to_remove(experiment)


app.command()(study_commands.evaluate)
app.command()(study_commands.study)
app.command()(tune_commands.tune)
for command in (add, space, publish, pull, prune, catalogue):
    data_app.command()(command)
app.command()(tune_commands.online)


@app.command()
def collect(
    preset: Annotated[str, typer.Option(help="mini, tiny, tfds, or the path of a .toml file.")],
    out: Annotated[
        Path | None, optional("Folder for the files; by default collected/<preset>-<version>.")
    ] = None,
    workers: Workers = 1,
    worker_pool: WorkerPool = "",
    beam_arguments: BeamArguments = "",
) -> None:
    """Train all trials of a preset. A collection that was broken off goes on where it was."""
    from hyperbo_pipelines.collect.preset import load_preset
    from hyperbo_pipelines.collect.sweep import collect as collect_trials

    from hyperbo_flows.process.progress import progress_line

    require_extras("build", "collect", purpose="collecting trials")
    execution = beam_execution(workers, worker_pool, beam_arguments)
    chosen = load_preset(preset)
    folder = out or Path("collected") / f"{chosen.name}-{chosen.version}"
    with progress_line(f"collect {preset}", "trials") as progress:
        collection = collect_trials(chosen, folder, execution=execution, progress=progress)
    trials = ", ".join(f"{count} {split}" for split, count in collection.trials.items())
    typer.echo(f"{collection.folder}: {trials} trials; {collection.trained} of them trained now")


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="Folder of an evaluation, or several to be joined.")],
    out: Annotated[Path | None, optional("Folder for the joined evaluation of several.")] = None,
) -> None:
    """Write the report of an evaluation again, from its records and metadata; or join several to one.

    Evaluations of several machines can be joined where they have data and protocol in common.
    """
    require_extras("report", purpose="a report")
    from hyperbo_flows.experiments import evaluation_folder

    if len(folders) == 1 and out is None:
        folder = folders[0]
        evaluation_folder.write_report_again(folder)
    elif out is None:
        raise typer.BadParameter("name a new folder for the joined evaluation", param_hint="--out")
    else:
        folder = out
        evaluation_folder.write_joined(folders, folder)
    tell_outcome(folder)
