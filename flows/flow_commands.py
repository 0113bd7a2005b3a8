"""The commands `hyperbo flows`: the unattended flows by hand."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.jobs import start_prefect

flows_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="The unattended flows, by hand: run one, backfill versions, see how far each version is.",
)
ServiceFile = Annotated[
    Path, typer.Option("--service", envvar="HYPERBO_SERVICE", help="Service file.", show_default=False)
]


class FlowName(StrEnum):
    """Flows that can be run by hand."""

    REFRESH = "refresh"
    PRETRAIN = "pretrain"
    EVALUATE = "evaluate"
    PROMOTE = "promote"
    FEEDBACK = "feedback"
    RETRAIN = "retrain"


@flows_app.command("run")
def flows_run(
    flow: Annotated[FlowName, typer.Argument(help="Which flow.")],
    service: ServiceFile,
    version: Annotated[
        str | None, typer.Option(help="Of the dataset; by default the newest.", show_default=False)
    ] = None,
    evaluation: Annotated[
        str | None,
        typer.Option(help="Folder of an evaluation, for promote and feedback.", show_default=False),
    ] = None,
) -> None:
    """Run a flow in this process; what is done already is not done again."""
    of_version = flow in (FlowName.PRETRAIN, FlowName.EVALUATE, FlowName.PROMOTE)
    if version is not None and not of_version:
        raise typer.BadParameter(f"{flow.value} is of no version", param_hint="--version")
    if evaluation is not None and flow not in (FlowName.PROMOTE, FlowName.FEEDBACK):
        raise typer.BadParameter(f"{flow.value} needs no evaluation", param_hint="--evaluation")
    if flow is FlowName.PROMOTE and evaluation is None:
        raise typer.BadParameter("name the folder of an evaluation", param_hint="--evaluation")
    of = _prepare(service)
    import importlib

    from flows.intake import newest

    if of_version and version is None:
        here = newest(of)
        if here is None:
            raise typer.BadParameter(f"{of.dataset} has no version yet; run refresh first")
        version = here.version
    given: dict[str, Any] = {"service": str(service)}
    if of_version:
        given["version"] = version
    if evaluation is not None:
        given["evaluation"] = evaluation
    getattr(importlib.import_module(f"flows.deployed.{flow.value}"), flow.value)(**given)


@flows_app.command("backfill")
def flows_backfill(
    service: ServiceFile,
    first: Annotated[str, typer.Option("--from", help="First version.")],
    last: Annotated[str, typer.Option("--to", help="Last version.")],
    failed_only: Annotated[
        bool, typer.Option(help="Only versions that were begun and not finished.")
    ] = False,
) -> None:
    """Pre-train and evaluate what is missing of every version in a range; nothing is promoted."""
    _prepare(service)
    from flows.deployed.backfill import backfill

    backfill(str(service), first, last, failed_only)


@flows_app.command("status")
def flows_status(service: ServiceFile) -> None:
    """How far every version is: simulations that are there and missing, and what was decided on its prior."""
    of = _prepare(service)
    import rich
    from rich.table import Table

    from flows.champion import line_of
    from flows.contest_failures import failure_of
    from flows.deployed.backfill import progress_of
    from pd1_builder.catalog import versions

    line = line_of(of)
    decisions = {each.evidence.get("dataset"): each for each in line.history} if line else {}
    table = Table("version", "simulations", "missing", "decision", "prior")
    for each in versions(of.design.data_dir):
        if each.dataset == of.dataset:
            present, missing = progress_of(of, each.version)
            decision = decisions.get(f"{each.dataset}:{each.version}")
            failed = "" if decision or failure_of(of, each.version) is None else "none: runs failed"
            table.add_row(
                each.version,
                str(present),
                str(missing),
                decision.action.replace("_", " ") if decision else failed,
                decision.prior if decision else "",
            )
    rich.print(table)
    typer.echo(f"in service: {line.current if line and line.current else 'none'} ({of.promotion.line})")


def _prepare(service: Path) -> Any:
    from flows.jobs import prepare_process

    prepare_process()
    from flows.service import read_service

    of = read_service(service)
    start_prefect(of.design.runs)
    return of
