"""The commands `hyperbo data`, for the versions of datasets."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from hyperbo.storage.installation import require_extras
from hyperbo.storage.printable import printable
from hyperbo_flows.cli.options import (
    BeamArguments,
    DataDir,
    MaxRejectShare,
    NextVersion,
    Reference,
    WorkerPool,
    Workers,
    beam_execution,
    optional,
)

data_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Versions of datasets: build, add, draft a space file, record, list, describe, compare, verify, "
    "export, publish, pull.",
)


class _Echo(logging.Handler):
    """Prints log messages of `pd1_builder` on the current standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message, above the progress bar if there is one."""
        print(printable(self.format(record)), file=sys.stderr, flush=True)


@data_app.callback()
def _show_progress() -> None:
    logger = logging.getLogger("pd1_builder")
    if not any(isinstance(handler, _Echo) for handler in logger.handlers):
        logger.addHandler(_Echo())
    logger.setLevel(logging.INFO)
    # Beam and TFDS add a handler to the root logger, which would print every message again.
    logger.propagate = False


@data_app.command("build")
def data_build(
    reference: Reference = "pd1/mini:1.0.0",
    raw: Annotated[
        Path | None,
        optional(
            "Folder of raw files. Default: those shipped, else the official archive.", "--raw", "--manual-dir"
        ),
    ] = None,
    parent: Annotated[
        str | None, optional("Version that this one follows. Default: the newest before it.")
    ] = None,
    max_reject_share: MaxRejectShare = 0.001,
    workers: Workers = 1,
    worker_pool: WorkerPool = "",
    beam_arguments: BeamArguments = "",
    data: DataDir = None,
) -> None:
    """Build a version from raw files. If it exists, verify it."""
    require_extras("build", purpose="building a version")
    from pd1_builder import build

    dataset, _, version = reference.partition(":")
    manifest = build(
        dataset,
        version or "1.0.0",
        raw=raw,
        data_dir=data,
        parent=parent,
        max_reject_share=max_reject_share,
        execution=beam_execution(workers, worker_pool, beam_arguments),
    )
    typer.echo(f"{manifest.reference}: complete, content {manifest.content_hash}")


@data_app.command("list")
def data_list(
    source: Annotated[
        str | None, optional("A place. List the versions that are published there instead.", "--from")
    ] = None,
    data: DataDir = None,
) -> None:
    """List the versions in the data folder, or those published at a place."""
    from pd1_builder.version.catalog import data_folder, versions

    if source is not None:
        from pd1_builder.distribution.addresses import place_at
        from pd1_builder.distribution.index import read_index

        for entry in read_index(place_at(source)):
            records = sum(entry.records.values())
            typer.echo(f"{entry.reference}  {records} records, {entry.size} bytes, revision {entry.revision}")
        return
    root = data_folder(data)
    if not root.is_dir():
        typer.echo(f"the folder {root} does not exist", err=True)
        return
    found = versions(root)
    for version in found:
        typer.echo(f"{version.dataset}:{version.version}  {version.folder}")
    if not found:
        typer.echo(f"no version in {root}; build one: hyperbo data build", err=True)


@data_app.command("info")
def data_info(reference: Reference, data: DataDir = None) -> None:
    """Describe a version: its raw files, and its trials by split, task and status."""
    import rich
    from rich.markup import escape
    from rich.table import Table

    from pd1_builder.version.catalog import find
    from pd1_builder.version.manifest import read_manifest
    from pd1_builder.version.pull_record import describe_origin, revision_of

    version = find(reference, data)
    manifest = read_manifest(version.folder)
    size = sum(file.size for file in manifest.files)
    typer.echo(f"{manifest.reference}  {version.folder}  {size} bytes, {describe_origin(version.folder)}")
    typer.echo(f"content {manifest.content_hash}")
    typer.echo(f"revision {revision_of(version.folder)}")
    typer.echo(f"built by code {printable(manifest.code_version)}; parent {manifest.parent or 'none'}")
    for file in manifest.raw_files:
        rows = "" if file.rows is None else f" {file.rows} rows,"
        typer.echo(f"from {printable(file.name)},{rows} sha256 {file.sha256}")
    for each in manifest.exports:
        kept = f" in {printable(each.raw_file)}" if each.raw_file else ""
        typer.echo(
            f"export {printable(each.name)}, {each.known} rows known, {each.new} new{kept}, "
            f"sha256 {each.sha256}"
        )
    if manifest.space:
        for each in manifest.space.parameters:
            typer.echo(printable(f"parameter {each.name}: {each.summary}"))
    stated = (f"{name} {manifest.parameters[name]}" for name in ("objective", "warping", "origin"))
    typer.echo(printable(", ".join(stated)))
    table = Table("split", "task", "status", "trials")
    for split, tasks in manifest.counts.items():
        for task, statuses in tasks.items():
            for status, count in statuses.items():
                table.add_row(*(escape(printable(text)) for text in (split, task, status)), str(count))
    rich.print(table)
    for block in manifest.blocks:
        typer.echo(
            f"matched block {printable(block['id'])}: {block['inputs']} inputs on {len(block['tasks'])} tasks"
        )
    typer.echo(
        f"{manifest.rejects} rejected rows, {manifest.duplicates} trials whose input occurs more than once"
    )


@data_app.command("diff")
def data_diff(
    parent: Annotated[str, typer.Argument(help="The parent to compare with.")],
    reference: Reference,
    data: DataDir = None,
) -> None:
    """Compare a version with its parent, and check that its number follows from what changed."""
    import rich

    from pd1_builder import diff
    from pd1_builder.compare.release_checks import check_number

    found = diff(parent, reference, data)
    old, new = found.parent, found.manifest
    typer.echo(f"{old.reference} -> {new.reference}")
    table = _diff_table(found)
    if table.row_count:
        rich.print(table)
    else:
        typer.echo("no record, field or split changed")
    for name, count in found.relations.items():
        typer.echo(f"{name} changed in {count} records; the version number does not depend on it")
    if old.reference == new.reference:
        typer.echo("both are the same version")
    elif old.dataset != new.dataset:
        typer.echo("these are two datasets: their version numbers are independent")
    else:
        check_number(old.version, new.version, found.changes)
        typer.echo(f"the change is {found.bump}, and the version number says so")


def _diff_table(found: Any) -> Any:
    from rich.markup import escape
    from rich.table import Table

    table = Table("task", "field", "change", "records", "for example")
    for verb, groups in (("removed from", found.removed), ("added to", found.added)):
        for (split, task), count in groups.items():
            table.add_row(escape(task), "", f"{verb} {split}", str(count), "")
    for change in found.changed:
        row = (change.task, change.field, "changed", str(change.records), change.example)
        table.add_row(*map(escape, row))
    for verb, splits, fields in (
        ("removed", found.splits_removed, found.fields_removed),
        ("added", found.splits_added, found.fields_added),
    ):
        for what, names in (("split", splits), ("field", fields)):
            for name in names:
                table.add_row("", escape(name), f"{what} {verb}", "", "")
    for name, (old, new) in found.declared.items():
        table.add_row("", escape(name), "declared", "", escape(f"{old or 'nothing'} -> {new or 'nothing'}"))
    return table


@data_app.command("verify")
def data_verify(reference: Reference, data: DataDir = None) -> None:
    """Check every file and every record of a version against its manifest."""
    from pd1_builder import verify

    manifest = verify(reference, data)
    typer.echo(f"{manifest.reference}: verified, content {manifest.content_hash}")


@data_app.command("survey")
def data_survey(
    reference: Reference,
    out: Annotated[Path, typer.Option(help="Folder for survey.md and rank_correlations.svg.")],
    evaluation: Annotated[
        Path | None, optional("Folder of an evaluation of H-NLL and STBO on the version.")
    ] = None,
    data: DataDir = None,
) -> None:
    """Report how useful a version is as a benchmark: similarity and difficulty of tasks, gain by priors."""
    require_extras("report", purpose="a survey")
    from hyperbo_flows.experiments.survey import write_survey

    typer.echo(write_survey(reference, out, evaluation, data))


@data_app.command("export")
def data_export(
    reference: Reference,
    out: Annotated[Path, typer.Option(help="Folder that tfds.load can use as data_dir.")],
    data: DataDir = None,
) -> None:
    """Write a version as TFRecord files for tfds.load and tf.data. Needs TensorFlow."""
    require_extras("build", "tensorflow", purpose="an export")
    from hyperbo_flows.process.environment import quiet_tfds
    from pd1_builder.builder.shards import export_tfrecord

    quiet_tfds()
    typer.echo(f"written: {export_tfrecord(reference, out, data)}")


@data_app.command("record")
def data_record(
    name: Annotated[str, typer.Argument(help="The dataset becomes bo_runs/<name>.")],
    evaluation: Annotated[Path, typer.Argument(help="Folder of an evaluation.", show_default=False)],
    version: NextVersion = None,
    max_reject_share: MaxRejectShare = 0.001,
    data: DataDir = None,
) -> None:
    """Build a version from the trials that an evaluation observed, added to those of the newest version."""
    require_extras("build", purpose="building a version")
    from hyperbo_flows.process.environment import quiet_tfds
    from pd1_builder.bo_runs.recipe import record_runs

    quiet_tfds()
    manifest = record_runs(
        name, evaluation, version=version, max_reject_share=max_reject_share, data_dir=data
    )
    typer.echo(f"{manifest.reference}: complete, content {manifest.content_hash}")
