"""The commands `hyperbo prior`: which priors are in service, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.data_commands import DataDir
from flows.jobs import prepare_process

if TYPE_CHECKING:
    from hyperbo.prior import PriorDescription
    from hyperbo.prior_history import Action

prior_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Pre-trained priors: which are in service, since when, why; describe one, roll back.",
)
Catalog = Annotated[
    Path | None,
    typer.Option("--catalog", envvar="HYPERBO_PRIOR_DIR", help="Folder of priors.", show_default=False),
]
LineName = Annotated[str, typer.Argument(metavar="LINE", help="Such as pd1-mini/h-nll.", show_default=False)]

PriorName = Annotated[
    str,
    typer.Argument(
        metavar="PRIOR",
        help="Folder of a prior; or a line, for its prior in service; or <line>@<first digits>.",
        show_default=False,
    ),
]


def _catalog(given: Path | None) -> Path:
    from hyperbo.prior_catalog import default_prior_dir

    return given or default_prior_dir()


@prior_app.command("list")
def prior_list(catalog: Catalog = None) -> None:
    """List the lines that have priors: the one in service, what it was trained on, since when and why.

    Those that ship with the package come last, if the folder of priors has none of their name.
    """
    from hyperbo.errors import HyperBOError
    from hyperbo.prior_catalog import lines
    from hyperbo.published import SHIPPED, catalogs

    seen: set[str] = set()
    damaged = False
    for root in catalogs(catalog):
        names = [name for name in lines(root) if name not in seen]
        if root == SHIPPED and names:
            typer.echo("shipped:")
        for name in names:
            try:
                texts = _listed(root, name)
            except HyperBOError as error:
                # One line that is damaged must not hide the others.
                typer.secho(f"hyperbo: {error}", fg="red", err=True)
                damaged = True
            else:
                typer.echo("\n".join(texts))
        if not names and root != SHIPPED:
            typer.echo(f"no prior in {root}", err=True)
        seen.update(names)
    if damaged:
        raise typer.Exit(1)


def _listed(root: Path, name: str) -> list[str]:
    from hyperbo.prior import load_prior
    from hyperbo.prior_catalog import find_prior, read_line

    line = read_line(root, name)
    if line.in_service_by is None:
        return [f"{name}  no prior in service"]
    dataset = load_prior(find_prior(root, name)).description.dataset
    return [
        f"{name}  {line.current}  {dataset}  since {line.in_service_by.at}",
        f"    {line.in_service_by.reason}",
    ]


@prior_app.command("current")
def prior_current(line: LineName, catalog: Catalog = None) -> None:
    """Print the folder of the prior in service, for scripts; <line>@<first digits> that of another."""
    from hyperbo.published import find_published

    typer.echo(find_published(line, catalog))


@prior_app.command("history")
def prior_history(line: LineName, catalog: Catalog = None) -> None:
    """Show every decision on the priors of a line, the oldest first."""
    import rich
    from rich.markup import escape
    from rich.table import Table

    from hyperbo.prior_catalog import read_line

    found = read_line(_catalog(catalog), line)
    table = Table()
    for column in ("at (UTC)", "prior", "decision"):
        table.add_column(column, no_wrap=True)
    table.add_column("reason")
    for each in found.history:
        table.add_row(each.at.removesuffix("+00:00"), each.prior, _words(each.action), escape(each.reason))
    if found.history:
        rich.print(table)
    else:
        typer.echo(f"{line}: nothing was decided yet", err=True)
    typer.echo(f"in service: {found.current or 'none'}")


@prior_app.command("rollback")
def prior_rollback(
    line: LineName,
    reason: Annotated[str, typer.Option(help="A sentence for the history.")] = "",
    catalog: Catalog = None,
) -> None:
    """Put the prior back in service that was there before the current one."""
    from hyperbo.prior_catalog import roll_back

    typer.echo(f"{line}: {roll_back(_catalog(catalog), line, reason)} is in service again")


@prior_app.command("info")
def prior_info(prior: PriorName, catalog: Catalog = None) -> None:
    """Describe a pre-trained prior: what it was trained on, how, and what was decided on it."""
    from hyperbo.prior import load_prior
    from hyperbo.published import decisions_on, find_published

    folder = find_published(prior, catalog)
    decisions = decisions_on(prior, catalog)
    description = load_prior(folder).description
    typer.echo(f"folder: {folder}")
    for each in decisions:
        typer.echo(f"{_words(each.action)}: {each.at}, {each.reason}")
        if each.evidence:
            typer.echo("\n".join(_stated("evidence", each.evidence, "  ")))
    for text in _described(description):
        typer.echo(text)


@prior_app.command("explain")
def prior_explain(
    prior: PriorName,
    out: Annotated[Path, typer.Option(help="The page, an HTML file that needs nothing else.")],
    catalog: Catalog = None,
) -> None:
    """Write a page of pictures of what a prior believes: where to look, how sure, how far a result tells."""
    prepare_process()
    from hyperbo.evaluation.report_of_prior import write_prior_page
    from hyperbo.published import decisions_on, load_prior

    found = load_prior(prior, catalog)
    typer.echo(write_prior_page(found, prior, decisions_on(prior, catalog), out))


@prior_app.command("pull")
def prior_pull(
    prior: Annotated[str, typer.Argument(metavar="PRIOR", help="A line, or <line>@<identifier>.")],
    source: Annotated[
        str, typer.Option("--from", help="Another catalogue: a folder, or a URL such as https://...")
    ],
    catalog: Catalog = None,
) -> None:
    """Copy a prior from another catalogue, check it, and put it in service here."""
    from flows.published_priors import pull_prior

    root = _catalog(catalog)
    line = prior.partition("@")[0]
    typer.echo(f"{line}: {pull_prior(root, prior, source)} is in service, in {root}")


@prior_app.command("train")
def prior_train(
    line: LineName,
    dataset: Annotated[str, typer.Option(help="<name>/<config>:<version>, such as pd1/mini:2.0.0.")],
    method: Annotated[str, typer.Option(help="H-EKL, which needs matched inputs, or H-NLL.")] = "H-EKL",
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Adam steps of H-NLL; by default the paper's 50,000.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the model and of the points drawn.")] = 0,
    data: DataDir = None,
    catalog: Catalog = None,
) -> None:
    """Pre-train a prior for tuning on all tasks of a dataset version, and put it in service."""
    prepare_process()
    from flows.published_priors import train_prior

    root = _catalog(catalog)
    trained = train_prior(root, line, dataset, method, steps, seed, data)
    typer.echo(f"{line}: {trained} is in service, in {root}")


def _words(action: Action) -> str:
    return action.replace("_", " ")


def _described(description: PriorDescription) -> Iterator[str]:
    from hyperbo.warping import output_warping

    for name in (field.name for field in fields(description)):
        value = getattr(description, name)
        if name == "search_space":
            yield "search_space:"
            for each in value.parameters:
                yield f"  {each.name}: {each.lower:g} to {each.upper:g}, {each.scaling}"
        elif name == "output_warping":
            direction = output_warping(value).direction
            yield f"{name}: {value}, of an objective to {direction}"
        elif name == "losses" and value:
            yield f"losses: {value[0]:g} first, {value[-1]:g} last"
        else:
            yield from _stated(name, value)


def _stated(name: str, value: Any, indent: str = "") -> Iterator[str]:
    """A value with its name on one line; of a mapping, or of settings, one line for each that is in it."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        yield f"{indent}{name}:"
        for inner, each in value.items():
            yield from _stated(inner, each, indent + "  ")
    else:
        yield f"{indent}{name}: {_plain(value)}"


def _plain(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(_plain, value)) or "none"
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
