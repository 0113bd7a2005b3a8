"""The command `hyperbo online`: methods compared by training for real."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.data_commands import DataDir
from flows.jobs import prepare_process


def online(
    tasks: Annotated[list[str], typer.Option("--task", help="A task of the preset that is tuned.")],
    out: Annotated[Path, typer.Option(help="Folder of the comparison; one that was broken off goes on.")],
    preset: Annotated[str, typer.Option(help="mini, tiny, or the path of a .toml file.")] = "mini",
    dataset: Annotated[
        str, typer.Option(help="<name>/<config>:<version> to pre-train on.")
    ] = "pd1/mini:2.0.0",
    method: Annotated[
        list[str] | None, typer.Option(help="A method; by default all five.", show_default=False)
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 5,
    trials: Annotated[
        int, typer.Option(min=1, help="Trials of each run, those counted that are there.")
    ] = 50,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Adam steps of H-NLL: a multiple of 500, or fewer; by default the paper's 50,000.",
            show_default=False,
        ),
    ] = None,
    data: DataDir = None,
) -> None:
    """Compare methods by real training runs over the whole search space, infeasible trials included.

    Priors are pre-trained without the dataset of the task that is tuned. What the folder holds is not done
    again.
    """
    prepare_process()
    from flows.online import OnlineComparison, compare_online
    from hyperbo.online import ONLINE_METHODS

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
    )
    outcome = compare_online(comparison)
    typer.echo(f"{out}: {len(outcome.records)} trials, {outcome.records['infeasible'].sum()} infeasible")
    for run, reason in outcome.failures.items():
        typer.secho(f"hyperbo: {'/'.join(map(str, run))} failed: {reason}", fg="red", err=True)
    if outcome.failures:
        raise typer.Exit(1)
