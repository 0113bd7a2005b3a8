"""`hyperbo tune`, for a training command of your own, and `hyperbo online`, for tasks of a benchmark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from hyperbo.storage.installation import require_extras
from hyperbo_flows.cli.completion import prior_names
from hyperbo_flows.cli.jobs import start
from hyperbo_flows.cli.options import DataDir, Seeds, Settings, Steps, optional, refuse_given
from hyperbo_flows.process.environment import prepare_process


def tune(
    prior: Annotated[
        str,
        typer.Option(
            help="Folder of a pre-trained prior; or its name, such as pd1-mini/h-ekl; or universal, for any "
            "space, which is then given whole, with its direction.",
            autocompletion=prior_names,
        ),
    ],
    command: Annotated[
        str,
        typer.Option(
            help='What a trial runs, such as "python train.py --lr {learning_rate}": {name} stands for a '
            "value, {trial_folder} for the trial's folder, {{ for a brace. The command is split into words "
            "like in a shell, but runs without a shell."
        ),
    ],
    trials: Annotated[int, typer.Option(min=1, help="Number of trials; those of an earlier run count.")] = 50,
    out: Annotated[Path, typer.Option(help="Folder of the run; an interrupted run continues.")] = Path(
        "tuning"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the run.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Commands that run at the same time.")] = 1,
    parameter: Annotated[
        list[str] | None,
        optional(
            "learning_rate=1e-4:1e-1, layers=1:8:int, width=8:512:int:log, batch_size=32,64,128, or "
            "power=1.0, which is held fixed. Parameters of the prior that are not given have the prior's "
            "range. Parameters that the prior does not know are sampled without it."
        ),
    ] = None,
    space: Annotated[Path | None, optional("TOML file with such ranges.")] = None,
    direction: Annotated[
        Literal["minimize", "maximize"] | None,
        optional(
            "Of the objective. Default: that of the prior. A prior of error rates takes maximize for an "
            "accuracy from 0 to 1; universal needs a direction."
        ),
    ] = None,
    objective_file: Annotated[
        str | None,
        optional("File in the trial's folder that holds the objective; by default the command prints it."),
    ] = None,
    timeout: Annotated[float | None, optional("Seconds after which a command is stopped.", min=0.001)] = None,
    storage: Annotated[
        str | None, optional("Address of the database; by default sqlite:///OUT/runs.db.")
    ] = None,
    name: Annotated[str, typer.Option(help="Of the run in the database.")] = "tuning",
    batch: Annotated[
        str,
        typer.Option(
            help="How running trials change the next one: kriging_believer, constant_liar, "
            "local_penalization or thompson_sampling."
        ),
    ] = "kriging_believer",
) -> None:
    """Tune a training command of your own with a pre-trained prior.

    The last line that a command prints is its objective: a number, or name=number. It is minimised or
    maximised like the objective of the prior, which `hyperbo prior info` shows, or as --direction says. A
    trial is infeasible if its command ends with another code than 0, prints nan or inf, or takes too long.
    The run stops if the command cannot be started, prints no number, or gives no number in its first three
    trials. Run the same command again to continue.
    """
    require_extras("optuna", purpose="tuning")
    # The user's command must not inherit what this process sets for itself, nor find the GPU's memory taken.
    environment = dict(os.environ)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    prepare_process()
    from hyperbo_flows.command.template import CommandTuning
    from hyperbo_flows.command.tune import tune_command

    tuning = CommandTuning(
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
        batch=batch,  # pyright: ignore[reportArgumentType]
        seed=seed,
        direction=direction,
        environment=environment,
    )
    best = tune_command(tuning)
    if best is None:
        typer.echo(f"{tuning.folder}: every trial was infeasible")
        return
    trial, its_command = best
    typer.echo(f"{tuning.folder}: best objective {trial.objective:.6g} in trial {trial.number}")
    for each, value in trial.hyperparameters.items():
        typer.echo(f"  {each} = {value}")
    typer.echo(f"its command: {its_command}")


def online(
    context: typer.Context,
    tasks: Annotated[list[str], typer.Option("--task", help="A task of the preset that is tuned.")],
    out: Annotated[Path, typer.Option(help="Folder of the comparison; an interrupted one continues.")],
    preset: Annotated[str, typer.Option(help="mini, tiny, or the path of a .toml file.")] = "mini",
    dataset: Annotated[
        str, typer.Option(help="<name>/<config>:<version> to pre-train on.")
    ] = "pd1/mini:2.0.0",
    method: Annotated[list[str] | None, optional("A method; by default all five.")] = None,
    prior: Annotated[
        str | None,
        optional(
            "Tune with this prior only: its name, such as pd1-mini/h-ekl, or its folder. Nothing is "
            "pre-trained then."
        ),
    ] = None,
    seeds: Seeds = 5,
    trials: Annotated[
        int, typer.Option(min=1, help="Number of trials of each run; those of an earlier run count.")
    ] = 50,
    steps: Steps = None,
    settings: Settings = "default",
    data: DataDir = None,
) -> None:
    """Tune tasks of a preset by real training runs: compare methods, or try a given prior.

    Priors are pre-trained without the dataset of the task that is tuned. What the folder holds is not done
    again. A single run shows its trials.
    """
    if prior is not None:
        refuse_given(context, ("dataset", "method", "steps", "settings"), "a given prior decides this")
    require_extras("build", "collect", "optuna", "report", purpose="a comparison by real training runs")
    if prior is None:
        start(dataset, data, builds=False)
    prepare_process()
    from hyperbo.bayesopt.online_methods import ONLINE_METHODS
    from hyperbo_flows.command.display import shown_online
    from hyperbo_flows.experiments.online import OnlineComparison, compare_online

    comparison = OnlineComparison(
        preset,
        tuple(tasks),
        out,
        data,
        dataset,
        tuple(method or ONLINE_METHODS),
        tuple(range(seeds)),
        trials,
        steps,
        prior,
        settings,
    )
    with shown_online(comparison.run_count, trials) as show:
        results = compare_online(comparison, show)
    typer.echo(f"{out}: {len(results.records)} trials, {results.records['infeasible'].sum()} infeasible")
    for run, reason in results.failures.items():
        typer.secho(f"hyperbo: {'/'.join(map(str, run))} failed: {reason}", fg="red", err=True)
    if results.failures:
        raise typer.Exit(1)
