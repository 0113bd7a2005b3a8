"""The command `hyperbo tune`: hyperparameters of one's own training command, or of a task that ships."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.data_commands import DataDir
from flows.jobs import prepare_process

# Options that say nothing for a task of a preset, and for a command.
_OF_COMMANDS = ("jobs", "parameter", "space", "objective_file", "timeout", "storage", "name", "batch")
_OF_TASKS = ("data",)


def tune(
    context: typer.Context,
    prior: Annotated[
        str, typer.Option(help="Folder of a pre-trained prior; or its name, such as pd1-mini/h-ekl.")
    ],
    command: Annotated[
        str | None,
        typer.Option(
            help='What a trial runs, such as "python train.py --lr {learning_rate}": {name} stands for a '
            "value, {trial_folder} for the trial's folder, {{ for a brace. It is split into words as a shell "
            "does, and run without one.",
            show_default=False,
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            help="Instead of a command: a task of a preset, such as pd1-mini:digits_simple_cnn_20, trained "
            "for real; with the folder of a prior that `hyperbo online` has pre-trained.",
            show_default=False,
        ),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Trials in all, those counted that are there.")] = 50,
    out: Annotated[Path, typer.Option(help="Folder of the run; one that was broken off goes on.")] = Path(
        "tuning"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the run.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Commands that run at the same time.")] = 1,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            help="learning_rate=1e-4:1e-1, layers=1:8:int, width=8:512:int:log, batch_size=32,64,128, or "
            "power=1.0, which is held. Others have the prior's range; those that it does not know are "
            "sampled without it.",
            show_default=False,
        ),
    ] = None,
    space: Annotated[
        Path | None, typer.Option(help="TOML file with such ranges.", show_default=False)
    ] = None,
    objective_file: Annotated[
        str | None,
        typer.Option(
            help="File in the trial's folder to which the command writes its objective, instead of "
            "printing it.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=0.001, help="Seconds after which a command is ended.", show_default=False),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(help="Address of the database; by default sqlite:///OUT/runs.db.", show_default=False),
    ] = None,
    name: Annotated[str, typer.Option(help="Of the run in the database.")] = "tuning",
    batch: Annotated[
        str,
        typer.Option(
            help="What trials that run mean for the next one: kriging_believer, constant_liar, "
            "local_penalization or thompson_sampling."
        ),
    ] = "kriging_believer",
    data: DataDir = None,
) -> None:
    """Tune a training command of one's own with a pre-trained prior; or a task of a preset.

    The last line that a command prints is its objective: a number, or name=number. It is to be minimised
    where that of the prior is, as an error rate or a loss; `hyperbo prior info` shows which it was. A command
    that ends with another code than 0, prints nan or inf, or takes too long makes its trial infeasible. One
    that cannot be started, prints no number, or gives none in its first three trials stops the run. The same
    command again goes on.
    """
    if (command is None) == (objective is None):
        raise typer.BadParameter("give one of the two", param_hint="--command, --objective")
    if objective is not None:
        _refuse(context, _OF_COMMANDS, "it is for a --command")
        _tune_task(objective, Path(prior), out, trials, seed, data)
        return
    _refuse(context, _OF_TASKS, "it is for an --objective")
    _tune_command(
        command=command,
        prior=prior,
        trials=trials,
        out=out,
        space=space,
        parameters=tuple(parameter or ()),
        jobs=jobs,
        objective_file=objective_file,
        timeout=timeout,
        storage=storage,
        name=name,
        batch=batch,
        seed=seed,
    )


def _refuse(context: typer.Context, options: tuple[str, ...], why: str) -> None:
    """Options that would say nothing; a variable of the environment may be there for other commands."""
    for option in options:
        source = context.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(why, param_hint=f"--{option.replace('_', '-')}")


def _tune_task(objective: str, prior: Path, out: Path, trials: int, seed: int, data: Path | None) -> None:
    prepare_process()
    from flows.tune import Tuning, described, tune_task

    best = tune_task(Tuning(objective, prior, trials, seed, out, data))
    if best is None:
        typer.echo(f"{out}: every trial was infeasible")
    else:
        typer.echo(f"{out}: best error {best.objective:.4f} in trial {best.iteration}: {described(best)}")


def _tune_command(**settings: Any) -> None:
    # The user's command must not inherit what this process sets for itself, nor find its GPU's memory taken.
    environment = dict(os.environ)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    prepare_process()
    from flows.command_tuning import CommandTuning
    from flows.tune_command import tune_command

    # Optuna tells of every study and trial, in lines of its own.
    logging.getLogger("optuna").setLevel(logging.WARNING)
    tuning = CommandTuning(**settings, environment=environment)
    best = tune_command(tuning)
    if best is None:
        typer.echo(f"{tuning.folder}: every trial was infeasible")
        return
    typer.echo(f"{tuning.folder}: best objective {best.trial.objective:.6g} in trial {best.trial.number}")
    for parameter, value in best.trial.hyperparameters.items():
        typer.echo(f"  {parameter} = {value}")
    typer.echo(f"its command: {best.command}")
