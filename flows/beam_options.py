"""Options of commands that run a pipeline of Beam: where it runs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pipelines.execution import Execution

Workers = Annotated[int, typer.Option(min=1, help="Worker processes of Beam.")]
WorkerPool = Annotated[
    str,
    typer.Option(help="host:port of a pool of Beam workers that sees the same files.", show_default=False),
]
BeamArguments = Annotated[
    str,
    typer.Option(help="Arguments of Beam in place of the two above, for another runner.", show_default=False),
]


def beam_execution(workers: int, worker_pool: str, beam_arguments: str) -> Execution:
    """Where the options say that Beam runs.

    Args:
      workers: worker processes.
      worker_pool: address of a pool of workers, or empty.
      beam_arguments: Beam's own, quoted as for a shell, or empty.

    Raises:
      typer.BadParameter: the quotes of Beam's arguments do not match.
    """
    from flows.environment import quiet_beam
    from pipelines.execution import Execution

    quiet_beam()
    mode = "external" if worker_pool else "multi_processing" if workers > 1 else "in_memory"
    try:
        arguments = tuple(shlex.split(beam_arguments))
    except ValueError as error:
        raise typer.BadParameter(f"{beam_arguments}: {error}", param_hint="--beam-arguments") from error
    return Execution(mode, workers, worker_pool, arguments)
