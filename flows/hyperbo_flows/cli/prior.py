"""The commands `hyperbo prior`: list, describe, train, pull and roll back priors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyperbo.storage.installation import require_extras
from hyperbo_flows.cli.completion import prior_names
from hyperbo_flows.cli.jobs import start
from hyperbo_flows.cli.options import DataDir, Steps, optional
from hyperbo_flows.process.environment import prepare_process

if TYPE_CHECKING:
    from hyperbo.priors.file import PriorDescription
    from hyperbo.priors.history import Action

prior_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Pre-trained priors: list, describe, train, pull and roll back.",
)
Catalog = Annotated[Path | None, optional("Folder of priors.", "--catalog", envvar="HYPERBO_PRIOR_DIR")]
LineName = Annotated[
    str,
    typer.Argument(
        metavar="LINE",
        help="Such as pd1-mini/h-nll.",
        show_default=False,
        autocompletion=prior_names,
    ),
]

PriorName = Annotated[
    str,
    typer.Argument(
        metavar="PRIOR",
        help="Folder of a prior; or a line, for its prior in service; or <line>@<first digits>.",
        show_default=False,
        autocompletion=prior_names,
    ),
]


def _catalog(given: Path | None) -> Path:
    from hyperbo.priors.names import default_prior_dir

    return given or default_prior_dir()


@prior_app.command("list")
def prior_list(catalog: Catalog = None) -> None:
    """List the lines of priors: the prior in service, its training data, since when and why it is in service.

    The lines shipped with the package come last, except those whose name the folder of priors has too.
    """
    from hyperbo.errors import HyperBOError
    from hyperbo.priors.names import SHIPPED, catalogs, lines

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
                # A damaged line must not hide the others.
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
    from hyperbo.priors.file import read_prior
    from hyperbo.priors.names import prior_folder, read_line

    line = read_line(root, name)
    if line.in_service_by is None:
        return [f"{name}  no prior in service"]
    dataset = read_prior(prior_folder(root, name)).description.dataset
    return [
        f"{name}  {line.current}  {dataset}  since {line.in_service_by.at}",
        f"    {line.in_service_by.reason}",
    ]


@prior_app.command("current")
def prior_current(line: LineName, catalog: Catalog = None) -> None:
    """Print the folder of the prior in service, for scripts; of another prior with <line>@<first digits>."""
    from hyperbo.priors.names import find_prior

    typer.echo(find_prior(line, catalog))


@prior_app.command("history")
def prior_history(line: LineName, catalog: Catalog = None) -> None:
    """Show all decisions on the priors of a line, oldest first."""
    import rich
    from rich.markup import escape
    from rich.table import Table

    from hyperbo.priors.names import read_line

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
        typer.echo(f"{line}: no decision yet", err=True)
    typer.echo(f"in service: {found.current or 'none'}")


@prior_app.command("rollback")
def prior_rollback(
    line: LineName,
    reason: Annotated[str, typer.Option(help="A sentence for the history.")] = "",
    catalog: Catalog = None,
) -> None:
    """Put the previous prior back in service."""
    from hyperbo.priors.catalog import roll_back

    typer.echo(f"{line}: {roll_back(_catalog(catalog), line, reason)} is in service again")


@prior_app.command("info")
def prior_info(prior: PriorName, catalog: Catalog = None) -> None:
    """Describe a pre-trained prior: its training, and the decisions on it."""
    from hyperbo.priors.file import read_prior
    from hyperbo.priors.names import decisions_on, find_prior

    folder = find_prior(prior, catalog)
    decisions = decisions_on(prior, catalog)
    description = read_prior(folder).description
    typer.echo(f"folder: {folder}")
    for each in decisions:
        typer.echo(f"{_words(each.action)}: {each.at}, {each.reason}")
        if each.evidence:
            typer.echo("\n".join(_evidence(each.evidence)))
    for text in _described(description):
        typer.echo(text)


@prior_app.command("explain")
def prior_explain(
    prior: PriorName,
    out: Annotated[Path, typer.Option(help="The page, a self-contained HTML file.")],
    catalog: Catalog = None,
) -> None:
    """Write a page with figures of a prior: where it expects good values, and how sure it is of them."""
    require_extras("report", purpose="a page")
    prepare_process()
    from hyperbo.evaluation.pages.prior import write_prior_page
    from hyperbo.priors.names import decisions_on, load_prior

    found = load_prior(prior, catalog)
    typer.echo(write_prior_page(found, prior, decisions_on(prior, catalog), out))


@prior_app.command("pull")
def prior_pull(
    prior: Annotated[str, typer.Argument(metavar="PRIOR", help="A line, or <line>@<identifier>.")],
    source: Annotated[
        str, typer.Option("--from", help="The other catalogue: a folder, or a URL such as https://...")
    ],
    catalog: Catalog = None,
) -> None:
    """Copy a prior from another catalogue, check its content, and put it in service here."""
    from hyperbo_flows.experiments.make_prior import pull_prior

    root = _catalog(catalog)
    line = prior.partition("@")[0]
    typer.echo(f"{line}: {pull_prior(root, prior, source)} is in service, in {root}")


@prior_app.command("train")
def prior_train(
    line: LineName,
    dataset: Annotated[str, typer.Option(help="<name>/<config>:<version>, such as pd1/mini:2.0.0.")],
    method: Annotated[
        str | None,
        optional(
            "H-NLL, or H-EKL, which needs inputs that tasks share. Default: chosen, with a line that says "
            "why."
        ),
    ] = None,
    steps: Steps = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the model, of the points drawn, and of what is left out.")
    ] = 0,
    worth: Annotated[
        int,
        typer.Option(
            min=0,
            help="Most tasks, or task datasets where tasks share them, that are left out one by one to "
            "measure what the prior is worth. 0: nothing is measured.",
        ),
    ] = 10,
    data: DataDir = None,
    catalog: Catalog = None,
) -> None:
    """Pre-train a prior on all tasks of a dataset version, say what it is worth, and put it in service.

    Its worth is the regret on tasks left out, beside random search, the order of the average, and Optuna's
    TPE. `hyperbo prior info` shows it again.
    """
    if worth:
        require_extras("optuna", purpose="the worth of a prior")
    start(dataset, data, builds=False)
    prepare_process()
    from hyperbo_flows.experiments.make_prior import train_prior

    root = _catalog(catalog)
    trained = train_prior(root, line, dataset, method, steps, seed, data, worth=worth)
    typer.echo(f"{line}: {trained} is in service, in {root}")


def _evidence(evidence: Mapping[str, Any]) -> Iterator[str]:
    """What a decision rests on; what a prior is worth as the table that `prior train` printed."""
    from hyperbo.evaluation.measures.worth import Worth

    stated = {name: value for name, value in evidence.items() if name != "worth"}
    yield from _stated("evidence", stated, "  ")
    if "worth" in evidence:
        yield from (f"    {text}" for text in Worth.from_evidence(evidence["worth"]).lines())


def _words(action: Action) -> str:
    return action.replace("_", " ")


def _described(description: PriorDescription) -> Iterator[str]:
    from hyperbo.data.warping import output_warping

    for name in (field.name for field in fields(description)):
        value = getattr(description, name)
        if name == "search_space":
            yield "search_space:"
            for each in value.parameters:
                yield f"  {each.name}: {each.summary}"
        elif name == "output_warping":
            direction = output_warping(value).direction
            yield f"{name}: {value}, of an objective to {direction}"
        elif name == "losses" and value:
            yield f"losses: {value[0]:g} first, {value[-1]:g} last"
            fall = description.fall
            assert fall is not None
            yield f"    {fall}" + (": it was still falling" if fall.matters else "")
        else:
            yield from _stated(name, value)


def _stated(name: str, value: Any, indent: str = "") -> Iterator[str]:
    """A value with its name on one line; a mapping or a dataclass as one line per entry."""
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
