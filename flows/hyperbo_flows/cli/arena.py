"""The commands `hyperbo arena`: methods compared by a frozen protocol, and results that others can check."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperbo.storage.installation import require_extras
from hyperbo_flows.cli.jobs import command_line, failure_lines
from hyperbo_flows.cli.options import DataDir, Runs, optional
from hyperbo_flows.process.environment import prepare_process

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hyperbo.evaluation.pages.arena import DivisionPage

arena_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Methods compared by a frozen protocol: run, verify, merge, show.",
)
BUNDLE_NAME, PAGE_NAME = "bundle.zip", "leaderboard.html"
# Of a message about the file of another, in characters.
_LONGEST_LINE = 1000
BundleFile = Annotated[Path, typer.Argument(help="A bundle, as hyperbo arena run makes it.")]


@arena_app.command()
def divisions() -> None:
    """List the divisions of the protocol, with their datasets."""
    prepare_process()
    from hyperbo_flows.arena.protocol import PROTOCOL

    typer.echo(f"protocol {PROTOCOL.number}, {PROTOCOL.sha256()[:12]}; methods {', '.join(PROTOCOL.methods)}")
    for division in PROTOCOL.divisions:
        datasets = ", ".join(dict.fromkeys(part.dataset for part in division.parts))
        typer.echo(f"{division.name}: {division.words} Data: {datasets}.")


@arena_app.command("data")
def make_data(
    division: Annotated[
        list[str] | None, typer.Argument(help="Divisions. Default: all.", show_default=False)
    ] = None,
    data: DataDir = None,
) -> None:
    """Make the data of divisions, and check all. What cannot be made here is named, with how to get it.

    Exits with 1 if data of a division are not there, or are others than the protocol names.
    """
    prepare_process()
    from hyperbo.errors import NotAvailableError, VersionConflictError
    from hyperbo_flows.arena.protocol import PROTOCOL
    from hyperbo_flows.arena.provide import check_data, provide_data
    from pd1_builder.version.catalog import data_folder

    names, folder = division or [each.name for each in PROTOCOL.divisions], data_folder(data)
    lacking = False
    for each in [PROTOCOL.division(name) for name in dict.fromkeys(names)]:
        try:
            provide_data(each, folder)
            for part in {part.dataset: part for part in each.parts}.values():
                check_data(part, each, folder)
            typer.echo(f"division {each.name}: the data are in {folder}")
        except (NotAvailableError, VersionConflictError) as error:
            lacking = True
            typer.secho(f"hyperbo: division {each.name}: {error}", fg="red", err=True)
    if lacking:
        raise typer.Exit(1)


@arena_app.command()
def run(
    context: typer.Context,
    division: Annotated[
        list[str] | None,
        typer.Argument(help="Divisions to run. Default: all but quick.", show_default=False),
    ] = None,
    method: Annotated[
        list[str] | None,
        optional(
            "Run this method beside the simplest baselines: <module>:<class> for one of your own, or a name. "
            "Default: all methods of the protocol.",
            "--method",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the bundle and the page.")] = Path("arena"),
    runs: Runs = Path("runs"),
    data: DataDir = None,
) -> None:
    """Run divisions, write a bundle and a leaderboard. Only what is missing is done.

    A division whose data are not there is left out, after a line that says how to get them. If it was named,
    the command does the others and exits with 1.
    """
    require_extras("report", purpose="a leaderboard")
    prepare_process()
    from hyperbo_flows.arena.board import write_board
    from hyperbo_flows.arena.bundle import write_bundle
    from hyperbo_flows.arena.protocol import PROTOCOL
    from hyperbo_flows.arena.results import bundle_of
    from hyperbo_flows.arena.run import chosen_methods, run_divisions

    names = division or [each.name for each in PROTOCOL.divisions if each.name != "quick"]
    chosen = [PROTOCOL.division(name) for name in dict.fromkeys(names)]
    methods = chosen_methods(method or ())
    before = os.getloadavg()[0]
    results = run_divisions(chosen, methods, runs, data, command_line(context))
    bundle = bundle_of(results, (before, os.getloadavg()[0]))
    write_bundle(bundle, out / BUNDLE_NAME)
    typer.echo(f"bundle: {out / BUNDLE_NAME}")
    failures = [failure for part in bundle.parts.values() for failure in part.metadata.get("failures", ())]
    problems = failure_lines(failures)
    left_out = [each.name for each in chosen if any(part.name not in results for part in each.parts)]
    if division and left_out:
        problems.append(f"left out: {', '.join(left_out)}; the lines above say why, and what to do")
    for line in problems:
        typer.secho(f"hyperbo: {line}", fg="red", err=True)
    # Last, because there is no page where no method is whole.
    _tell(write_board(bundle, out / PAGE_NAME))
    typer.echo(f"page: {out / PAGE_NAME}")
    if problems:
        raise typer.Exit(1)


@arena_app.command()
def verify(
    bundle: BundleFile,
    again: Annotated[
        int,
        typer.Option(
            min=0,
            help="Simulate so many arms anew, at most, a fold and a seed of each, and compare. This runs the "
            "code of methods that are not of the project, as they are here.",
        ),
    ] = 0,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Draw the arms of --again by this seed, as an earlier check did. Default: unforeseen.",
            show_default=False,
        ),
    ] = None,
    data: DataDir = None,
) -> None:
    """Check a bundle: hashes, protocol, that it is whole, and that its observations are those of the data."""
    require_extras("report", purpose="checking a bundle")
    prepare_process()
    from hyperbo.storage.printable import count, printable
    from hyperbo_flows.arena.bundle import read_bundle
    from hyperbo_flows.arena.verify import not_checked, verify_bundle
    from pd1_builder.version.catalog import data_folder

    found, folder = read_bundle(bundle), data_folder(data)
    problems, repeated = verify_bundle(found, folder), None
    if again and not problems:
        from hyperbo_flows.arena.again import simulate_again

        repeated = simulate_again(found, folder, again, seed)
        problems += repeated.problems
    for problem in problems:
        typer.secho(f"hyperbo: {printable(problem, _LONGEST_LINE)}", fg="red", err=True)
    if repeated is not None:
        typer.echo(
            f"simulated anew, drawn by --seed {repeated.seed}: {repeated.arms} of {repeated.of_arms} arms, "
            f"{count(repeated.observations, 'observation')} compared; "
            + (f"{count(len(repeated.problems), 'problem')}" if repeated.problems else "all the same")
        )
    if problems:
        raise typer.Exit(1)
    left = not_checked(found)
    for line in left:
        typer.secho(f"hyperbo: {printable(line, _LONGEST_LINE)}", fg="yellow", err=True)
    rows = sum(len(part.records) for part in found.parts.values())
    typer.echo(
        f"{bundle}: {'verified but for the lines above' if left else 'verified'}, "
        f"{count(rows, 'observation')} of {count(len(found.parts), 'part')}"
    )


@arena_app.command()
def merge(
    bundles: Annotated[list[Path], typer.Argument(help="Bundles of one protocol.")],
    out: Annotated[Path, typer.Option(help="File for the merged bundle.")],
) -> None:
    """Merge bundles of one protocol to one. What two of them hold must be the same."""
    prepare_process()
    from hyperbo_flows.arena.bundle import read_bundle, write_bundle
    from hyperbo_flows.arena.merge import merge_bundles

    write_bundle(merge_bundles({str(path): read_bundle(path) for path in bundles}), out)
    typer.echo(f"bundle: {out}")


@arena_app.command()
def page(
    bundle: BundleFile,
    out: Annotated[Path, typer.Option(help="File for the page.")] = Path(PAGE_NAME),
) -> None:
    """Write the leaderboard of a bundle as a page; all numbers are computed from its records."""
    require_extras("report", purpose="a leaderboard")
    prepare_process()
    from hyperbo_flows.arena.board import write_board
    from hyperbo_flows.arena.bundle import read_bundle

    _tell(write_board(read_bundle(bundle), out))
    typer.echo(f"page: {out}")


def _tell(pages: Sequence[DivisionPage]) -> None:
    """Print the regret of every method at the budgets, division by division."""
    import rich
    from rich.markup import escape
    from rich.table import Table

    from hyperbo.evaluation.measures.findings import number
    from hyperbo.storage.printable import printable

    for each in pages:
        board = each.board
        table = Table(title=f"{each.name}: mean regret, {board.priors} priors, {each.clusters}")
        # A long name goes on in the next line; numbers are never cut.
        table.add_column("method", overflow="fold")
        for column in ("rank", *map(str, board.budgets)):
            table.add_column(column, justify="right", no_wrap=True)
        for method in board.methods:
            levels = [number(board.standings[budget, method].regret.mean) for budget in board.budgets]
            table.add_row(escape(printable(method)), number(board.ranks[method]), *levels)
        for method in (*each.incomplete, *each.does_not_apply):
            reason = "missing" if method in each.incomplete else "does not apply"
            table.add_row(escape(printable(method)), reason, *[""] * len(board.budgets))
        rich.print(table)
