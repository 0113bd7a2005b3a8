"""Commands that run an experiment: how they run it, and what they print at the end."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hyperbo.errors import InvalidInputError
from hyperbo.storage.installation import require_extras
from hyperbo_flows.process.progress import say

if TYPE_CHECKING:
    from hyperbo_flows.experiments.experiment import Experiment

_MOST_LINES = 5
# What differs from run to run in a reason: quoted names, and numbers.
_VARYING = re.compile(r"'[^']*'|\d+(\.\d+)?(e[+-]?\d+)?")


def start(dataset: str, data: Path | None, *, raw: Path | None = None, builds: bool = True) -> None:
    """Refuse a dataset that is not there and cannot be built; print what begins.

    This comes before JAX, TFDS and Prefect are imported, which takes several seconds.

    Args:
      dataset: `<name>/<config>:<version>`.
      data: the data folder; None for the default one.
      raw: folder of raw files that the user gave.
      builds: whether the command builds a version that is not there.

    Raises:
      InvalidInputError: the reference is malformed or names no version, or the data folder is a file.
      NotAvailableError: the version is not there and is not built.
    """
    from pd1_builder.version.catalog import data_folder, find, find_here, parse_reference
    from pd1_builder.version.makeable import DATASETS, can_be_made, newest_shipped

    name, version = parse_reference(dataset)
    root, here = data_folder(data), find_here(dataset, data)
    if not version:
        newest = here.version if here else newest_shipped(name)
        fix = f"write {name}:{newest}" if newest else "write <name>/<config>:<version>"
        raise InvalidInputError(f"dataset {dataset!r} names no version", fix=fix)
    if here is not None:
        say(f"dataset {dataset}: found in {root}; starting")
    elif builds and (can_be_made(name, version) or (raw is not None and name in DATASETS)):
        say(f"dataset {dataset}: not in {root} yet, so it is built there first; starting")
    else:
        find(dataset, data)  # Raises the error that says what to do.


def run_chain(chain: Callable[..., Path], experiment: Experiment, command: str, **options: Any) -> None:
    """Run a chain on an experiment, print its outcome, and end the command.

    Where the variable PREFECT_API_URL names a server, the run is shown there.

    Args:
      chain: a function of `hyperbo_flows.experiments.retrain` that returns the folder of an evaluation.
      experiment: what is compared.
      command: what to type to run it again.
      options: further arguments of the chain.

    Raises:
      typer.Exit: 1 where a run failed.
      MissingExtraError: PREFECT_API_URL is set, and Prefect is not installed.
    """
    if os.environ.get("PREFECT_API_URL"):
        chain = _as_flow(chain, experiment)
    if not tell_outcome(chain(experiment, command, **options)):
        raise typer.Exit(1)


def _as_flow(chain: Callable[..., Path], experiment: Experiment) -> Callable[..., Path]:
    from hyperbo_flows.process.environment import prepare_prefect

    require_extras("flows", purpose="the server of PREFECT_API_URL")
    prepare_prefect(experiment.runs / "prefect")
    with suppress(ImportError):
        # Its import blocks the imports of all other threads; so it comes before Prefect has threads.
        import tensorflow_datasets  # noqa: F401
    from prefect import flow

    return flow(name=chain.__name__, flow_run_name=experiment.dataset, validate_parameters=False)(chain)


def command_line(context: typer.Context, without: Collection[str] = ()) -> str:
    """What to type to run a command again: its arguments, and the options that have a value.

    Args:
      context: the command that runs.
      without: names of parameters to leave out.
    """
    words = ["hyperbo", str(context.info_name)]
    for parameter in context.command.params:
        value = None if parameter.name in without else context.params.get(str(parameter.name))
        option = parameter.opts[:1] if parameter.opts[0].startswith("--") else []
        if isinstance(value, bool):
            words += option if value else []
            continue
        for each in value if isinstance(value, list | tuple) else [] if value is None else [value]:
            words += [*option, str(each)]
    return shlex.join(words)


def tell_outcome(folder: Path) -> bool:
    """Print the summary of an evaluation, the table of a study, where the report is, and what failed.

    Where no task was completed by all methods, a line says so instead of the summary.

    Returns:
      Whether no run failed.
    """
    import rich

    from hyperbo.evaluation.measures.regret import regrets_of_priors, simple_regrets
    from hyperbo.evaluation.measures.study import study_points, study_table
    from hyperbo.evaluation.measures.tables import summary_table
    from hyperbo.evaluation.measures.verdict import verdict_of
    from hyperbo.evaluation.records.metadata import run_unit
    from hyperbo.evaluation.records.run_array import any_comparable
    from hyperbo_flows.experiments import evaluation_folder

    evaluation = evaluation_folder.read(folder)
    metadata = evaluation.metadata
    regrets = simple_regrets(evaluation.records, metadata)
    if any_comparable(regrets):
        normalised = metadata.get("regret") == "normalised"
        rich.print(summary_table(regrets, run_unit(metadata), normalised=normalised))
        verdict = verdict_of(regrets_of_priors(regrets, metadata), metadata)
        if verdict is not None and not study_points(evaluation.records, metadata):
            typer.echo(verdict.sentence)
    else:
        typer.echo("no task was completed by all methods with every seed, so nothing can be compared")
    points = study_points(evaluation.records, metadata)
    if points:
        rich.print(study_table(points, metadata["iterations"]))
        typer.echo(f"figure: {folder / evaluation_folder.STUDY_FIGURE_NAME}")
    typer.echo(f"report: {folder / evaluation_folder.REPORT_NAME}")
    failures = metadata.get("failures", [])
    for line in failure_lines(failures):
        typer.secho(f"hyperbo: {line}", fg="red", err=True)
    return not failures


def tell_how_to_remove(experiment: Experiment) -> None:
    """Print where the runs and the dataset version of an experiment are, and what removes them."""
    from pd1_builder.version.catalog import find

    folders = [str(experiment.runs), str(find(experiment.dataset, experiment.data_dir).folder)]
    typer.echo(f"runs: {folders[0]}; dataset: {folders[1]}; this removes both: rm -r {shlex.join(folders)}")


def failure_lines(failures: Sequence[Mapping[str, Any]]) -> list[str]:
    """What failed, in a few lines: the most frequent kinds of reasons by method; the rest is counted.

    Reasons that differ only in numbers and quoted names are of one kind.

    Args:
      failures: the failures in the metadata of an evaluation.

    >>> failure_lines([{"method": "Own", "reason": f"NaN with seed {seed}"} for seed in (3, 4)])
    ['Own: 2 runs failed, the first: NaN with seed 3']
    """
    from hyperbo.storage.printable import count

    kinds: dict[tuple[str, str], list[str]] = {}
    for each in failures:
        kinds.setdefault((each["method"], _VARYING.sub("", each["reason"])), []).append(each["reason"])
    ordered = sorted(kinds.items(), key=lambda item: -len(item[1]))
    lines = []
    for (method, _), reasons in ordered[:_MOST_LINES]:
        which = "" if len(set(reasons)) == 1 else ", the first"
        lines.append(f"{method}: {count(len(reasons), 'run')} failed{which}: {reasons[0]}")
    rest = [len(reasons) for _, reasons in ordered[_MOST_LINES:]]
    if rest:
        lines.append(
            f"{count(sum(rest), 'run')} failed for {count(len(rest), 'other reason')}: see the report"
        )
    return lines
