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

from hyperbo.errors import NotAvailableError

if TYPE_CHECKING:
    from hyperbo_flows.experiments.experiment import Experiment

_MOST_LINES = 5
# What differs from run to run in a reason: quoted names, and numbers.
_VARYING = re.compile(r"'[^']*'|\d+(\.\d+)?(e[+-]?\d+)?")


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
      NotAvailableError: PREFECT_API_URL is set, and Prefect is not installed.
    """
    if os.environ.get("PREFECT_API_URL"):
        chain = _as_flow(chain, experiment)
    if not tell_outcome(chain(experiment, command, **options)):
        raise typer.Exit(1)


def _as_flow(chain: Callable[..., Path], experiment: Experiment) -> Callable[..., Path]:
    from hyperbo_flows.process.environment import prepare_prefect

    prepare_prefect(experiment.runs / "prefect")
    with suppress(ImportError):
        # Its import blocks the imports of all other threads; so it comes before Prefect has threads.
        import tensorflow_datasets  # noqa: F401
    try:
        from prefect import flow
    except ImportError as error:
        raise NotAvailableError(
            "PREFECT_API_URL is set, and Prefect is not installed: pip install 'hyperbo[flows]', or unset it"
        ) from error
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
