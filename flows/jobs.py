"""A command that runs flows: its surroundings, and what it says at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer


def prepare_process() -> None:
    """Everything that must stand before JAX is imported."""
    from flows.environment import prepare_jax, quiet_beam

    prepare_jax()
    quiet_beam()


@contextmanager
def serving(runs: Path) -> Iterator[None]:
    """Prefect with an embedded server; import nothing of Prefect before. Ctrl-C ends the process.

    Args:
      runs: folder of finished runs; Prefect keeps its database beside them.
    """
    from flows.environment import interruptible, prepare_prefect, start_prefect_server

    prepare_prefect(runs / "prefect")
    with interruptible():
        start_prefect_server()
        yield


def tell_outcome(folder: Path) -> bool:
    """Print the summary of an evaluation, of a study its table, where the report is, and what failed.

    There is no summary where no task was completed by all methods.

    Returns:
      Whether no run failed.
    """
    import rich

    from flows import evaluation_folder
    from hyperbo.evaluation.findings import count
    from hyperbo.evaluation.regret import simple_regrets
    from hyperbo.evaluation.run_array import any_comparable
    from hyperbo.evaluation.study import study_points, study_table
    from hyperbo.evaluation.summary import summary_table

    evaluation = evaluation_folder.read(folder)
    metadata = evaluation.metadata
    regrets = simple_regrets(evaluation.records, metadata)
    if any_comparable(regrets):
        rich.print(summary_table(regrets))
    else:
        typer.echo("no task was completed by all methods with every seed, so nothing can be compared")
    points = study_points(evaluation.records, metadata)
    if points:
        rich.print(study_table(points, metadata["iterations"]))
        typer.echo(f"figure: {folder / evaluation_folder.STUDY_FIGURE_NAME}")
    typer.echo(f"report: {folder / evaluation_folder.REPORT_NAME}")
    failures = metadata.get("failures", [])
    counts = Counter((each["method"], each["reason"]) for each in failures)
    for (method, reason), times in counts.items():
        typer.secho(f"hyperbo: {method}: {count(times, 'run')} failed: {reason}", fg="red", err=True)
    return not failures


def end_with_outcome(folder: Path) -> None:
    """Print the outcome of a command that ran an evaluation, and end it.

    Raises:
      typer.Exit: 1 where a run failed.
    """
    if not tell_outcome(folder):
        raise typer.Exit(1)
