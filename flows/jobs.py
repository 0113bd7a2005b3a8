"""A command that runs flows: its surroundings, and what it says at the end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

_MOST_LINES = 5
# In a reason, what differs from run to run: quoted names, and numbers.
_VARYING = re.compile(r"'[^']*'|\d+(\.\d+)?(e[+-]?\d+)?")


def prepare_process() -> None:
    """Everything that must stand before JAX is imported."""
    from flows.environment import prepare_jax, quiet_beam

    prepare_jax()
    quiet_beam()


def start_prefect(runs: Path) -> None:
    """Start Prefect with an embedded server, that ends with the process; import nothing of it before.

    Args:
      runs: folder of finished runs; Prefect keeps its database beside them.
    """
    from flows.environment import prepare_prefect, start_prefect_server

    prepare_prefect(runs / "prefect")
    start_prefect_server()


def tell_outcome(folder: Path) -> bool:
    """Print the summary of an evaluation, of a study its table, where the report is, and what failed.

    There is no summary where no task was completed by all methods.

    Returns:
      Whether no run failed.
    """
    import rich

    from flows import evaluation_folder
    from hyperbo.evaluation.metadata import run_unit
    from hyperbo.evaluation.regret import simple_regrets
    from hyperbo.evaluation.run_array import any_comparable
    from hyperbo.evaluation.study import study_points, study_table
    from hyperbo.evaluation.summary import summary_table

    evaluation = evaluation_folder.read(folder)
    metadata = evaluation.metadata
    regrets = simple_regrets(evaluation.records, metadata)
    if any_comparable(regrets):
        rich.print(summary_table(regrets, run_unit(metadata)))
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
    """What failed, in a few lines: the most frequent kinds of reasons by method, the rest counted.

    Reasons are of one kind where they differ only in numbers and quoted names, as those of NaN do by task,
    seed and iteration.

    Args:
      failures: as the metadata of an evaluation have them.

    >>> failure_lines([{"method": "Own", "reason": f"NaN with seed {seed}"} for seed in (3, 4)])
    ['Own: 2 runs failed, the first: NaN with seed 3']
    """
    from hyperbo.evaluation.findings import count

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


def end_with_outcome(folder: Path) -> None:
    """Print the outcome of a command that ran an evaluation, and end it.

    Raises:
      typer.Exit: 1 where a run failed.
    """
    if not tell_outcome(folder):
        raise typer.Exit(1)
