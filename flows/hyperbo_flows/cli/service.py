"""The commands `hyperbo flows`: the unattended flows by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hyperbo.storage.installation import require_extras
from hyperbo_flows.cli.options import optional
from hyperbo_flows.process.environment import prepare_prefect, prepare_process, start_prefect_server

if TYPE_CHECKING:
    from hyperbo_flows.service.settings import Service

flows_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="The unattended flows, by hand: run one, backfill versions, see how far each version is.",
)
FlowName = Literal["refresh", "pretrain", "evaluate", "promote", "feedback", "retrain"]
ServiceFile = Annotated[Path, optional("Service file.", "--service", envvar="HYPERBO_SERVICE")]


@flows_app.command("run")
def flows_run(
    flow: Annotated[FlowName, typer.Argument(help="Which flow.")],
    service: ServiceFile,
    version: Annotated[str | None, optional("Of the dataset; by default the newest.")] = None,
    evaluation: Annotated[str | None, optional("Folder of an evaluation, for promote and feedback.")] = None,
) -> None:
    """Run a flow in this process; what is done already is not done again."""
    of_version = flow in ("pretrain", "evaluate", "promote")
    if version is not None and not of_version:
        raise typer.BadParameter(f"{flow} takes no version", param_hint="--version")
    if evaluation is not None and flow not in ("promote", "feedback"):
        raise typer.BadParameter(f"{flow} takes no evaluation", param_hint="--evaluation")
    if flow == "promote" and evaluation is None:
        raise typer.BadParameter("name the folder of an evaluation", param_hint="--evaluation")
    settings = _prepare(service)
    import importlib

    from hyperbo_flows.service.intake import newest

    if of_version and version is None:
        here = newest(settings)
        if here is None:
            raise typer.BadParameter(f"{settings.dataset} has no version yet; run refresh first")
        version = here.version
    given: dict[str, Any] = {"version": version, "evaluation": evaluation}
    given = {name: value for name, value in given.items() if value is not None}
    getattr(importlib.import_module(f"hyperbo_flows.service.{flow}"), flow)(str(service), **given)


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
    from hyperbo_flows.service.backfill import backfill

    backfill(str(service), first, last, failed_only)


@flows_app.command("status")
def flows_status(service: ServiceFile) -> None:
    """How far every version is: simulations that are there and missing, and what was decided on its prior."""
    settings = _prepare(service)
    import rich
    from rich.table import Table

    from hyperbo_flows.experiments.plan import make_plan
    from hyperbo_flows.service.contest import failure_of, line_of
    from pd1_builder.version.catalog import versions

    line = line_of(settings)
    decisions = {each.evidence.get("dataset"): each for each in line.history} if line else {}
    table = Table("version", "simulations", "missing", "decision", "prior")
    for each in versions(settings.design.data_dir):
        if each.dataset == settings.dataset:
            present, missing = make_plan(settings.experiment(each.version)).simulations_recorded()
            decision = decisions.get(f"{each.dataset}:{each.version}")
            failed = "" if decision or failure_of(settings, each.version) is None else "none: runs failed"
            table.add_row(
                each.version,
                str(present),
                str(missing),
                decision.action.replace("_", " ") if decision else failed,
                decision.prior if decision else "",
            )
    rich.print(table)
    typer.echo(f"in service: {line.current if line and line.current else 'none'} ({settings.promotion.line})")


def _prepare(service: Path) -> Service:
    """Read a service file, and start Prefect. Its embedded server ends with the process."""
    require_extras("flows", "build", "optuna", "report", purpose="a flow")
    prepare_process()
    from hyperbo_flows.service.settings import read_service

    settings = read_service(service)
    # Prefect keeps its database beside the runs. Nothing may import Prefect before this.
    prepare_prefect(settings.design.runs / "prefect")
    start_prefect_server()
    return settings
