"""The commands of `hyperbo data` for trials of one's own and of other tools: add, space."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hyperbo.storage.installation import require_extras
from hyperbo_flows.cli.options import (
    BeamArguments,
    DataDir,
    MaxRejectShare,
    NextVersion,
    WorkerPool,
    Workers,
    beam_execution,
    optional,
)

Sources = Annotated[
    list[str],
    typer.Argument(
        help="JSON lines, CSV or Parquet; or a history: the address of a database (sqlite:///runs.db), or a "
        "file or folder of Ax, Syne Tune, Ray Tune, SMAC, Vizier, Weights & Biases, MLflow or KerasTuner."
    ),
]
Task = Annotated[
    str,
    optional(
        "What names the task of a history's trials: an attribute, or a regular expression whose group is a "
        "part of the study's name, such as '(.+)-seed.*'. Default: the study's name."
    ),
]
Objective = Annotated[str, optional("Metric of a history that is tuned. Default: as the tool says.")]
DirectionChoice = Annotated[
    Literal["minimize", "maximize"] | None,
    optional("Default: as the tool says, else as the metric's name does."),
]


def add(
    name: Annotated[str, typer.Argument(help="The dataset becomes trials/<name>.")],
    sources: Sources,
    space: Annotated[
        Path | None,
        optional(
            "Space file, which describes the columns. Default: that of the newest version; for a history, a "
            "draft."
        ),
    ] = None,
    task: Task = "",
    objective: Objective = "",
    direction: DirectionChoice = None,
    version: NextVersion = None,
    max_reject_share: MaxRejectShare = 0.001,
    workers: Workers = 1,
    worker_pool: WorkerPool = "",
    beam_arguments: BeamArguments = "",
    data: DataDir = None,
) -> None:
    """Build a version of your own trials, or the next version with more of them."""
    require_extras("build", purpose="building a version")
    from pd1_builder.release.histories import add_sources

    manifest = add_sources(
        name,
        sources,
        space,
        options=_options(task, objective, direction),
        version=version,
        data_dir=data,
        max_reject_share=max_reject_share,
        execution=beam_execution(workers, worker_pool, beam_arguments),
    )
    typer.echo(f"{manifest.reference}: complete, content {manifest.content_hash}")


def space(
    sources: Sources,
    task: Task = "",
    objective: Objective = "",
    direction: DirectionChoice = None,
    out: Annotated[Path | None, optional("File to write. Default: the draft is printed.")] = None,
) -> None:
    """Draft the space file of trials, with a comment on each guess."""
    require_extras("build", purpose="drafting a space file")
    from hyperbo_flows.process.environment import quiet_tfds

    quiet_tfds()
    from pd1_builder.release.histories import draft_space

    draft = draft_space(sources, _options(task, objective, direction))
    if out is None:
        typer.echo(draft, nl=False)
        return
    if out.exists():
        raise typer.BadParameter(f"{out} exists: remove it, or give another name", param_hint="--out")
    out.write_text(draft, encoding="utf-8")
    typer.echo(f"written: {out}")


def _options(task: str, objective: str, direction: Any) -> Any:
    from hyperbo_pipelines.histories import Options

    return Options(task, objective, direction)
