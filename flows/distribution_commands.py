"""The commands of `hyperbo data` for versions that others read: publish, pull, prune, catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.data_commands import DataDir, Reference

PulledReference = Annotated[
    str, typer.Argument(help="<name>/<config>:<version>; without a version, the newest published.")
]
From = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        envvar="HYPERBO_DATA_SOURCES",
        help="Place to pull from: a folder, https://, s3:// or gs://; more than one are tried in order.",
        show_default=False,
    ),
]


def publish(
    reference: Reference,
    to: Annotated[
        str,
        typer.Option(
            help="Place: a folder that any web server may serve, s3:// or gs://.", show_default=False
        ),
    ],
    sign_with: Annotated[
        Path | None,
        typer.Option(
            help="Secret key of minisign; its password is read from HYPERBO_SIGNING_PASSWORD.",
            show_default=False,
        ),
    ] = None,
    data: DataDir = None,
) -> None:
    """Put a version where others can read it; verified before, complete before it is listed."""
    from pd1_builder.distribution import publishing

    entry = publishing.publish(reference, to, data_dir=data, key=sign_with)
    typer.echo(f"{entry.reference}: published at {to}, revision {entry.revision}")


def pull(
    reference: PulledReference,
    source: From = None,
    revision: Annotated[
        str | None, typer.Option(help="SHA-256 that the manifest must have.", show_default=False)
    ] = None,
    public_key: Annotated[
        str | None,
        typer.Option(
            envvar="HYPERBO_DATA_PUBLIC_KEY",
            help="Key of minisign, or its file: what it did not sign is refused.",
            show_default=False,
        ),
    ] = None,
    largest: Annotated[int, typer.Option(min=1, help="Largest version that is taken, in GB.")] = 50,
    data: DataDir = None,
) -> None:
    """Bring a published version here, checked; what was broken off goes on where it was."""
    from flows.progress import byte_progress
    from pd1_builder.distribution import pulling
    from pd1_builder.pulled import revision_of

    with byte_progress(f"pull {reference}") as progress:
        version = pulling.pull(
            reference,
            source or (),
            data_dir=data,
            revision=revision,
            public_key=public_key,
            largest=largest * 10**9,
            on_progress=progress,
        )
    found = f"{version.dataset}:{version.version}"
    typer.echo(f"{found}: {version.folder}, revision {revision_of(version.folder)}")


def prune(
    references: Annotated[
        list[str] | None, typer.Argument(help="Pulled versions to remove.", show_default=False)
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Of the pulled versions of each dataset, keep only the newest so many.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    data: DataDir = None,
) -> None:
    """Remove what broken-off pulls and builds left, and pulled versions; none that was built here."""
    from pd1_builder.distribution import pruning

    removed = pruning.prune(references or (), keep=keep, data_dir=data, dry_run=dry_run)
    verb = "would remove" if dry_run else "removed"
    for each in removed:
        typer.echo(f"{verb} {each.folder}, {each.size} bytes")
    if not removed:
        typer.echo("nothing to remove", err=True)


def catalogue(
    place: Annotated[str, typer.Argument(help="Place of published versions.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder for the pages; the place itself, if it is a folder.")],
    pull_from: Annotated[
        str | None,
        typer.Option(help="Address that the lines to copy name; by default the place.", show_default=False),
    ] = None,
    priors: Annotated[
        list[Path] | None,
        typer.Option(help="Catalogue of priors to show; more than one may be given.", show_default=False),
    ] = None,
) -> None:
    """Write a static site of what is published at a place."""
    from pd1_builder.site.writing import write_site

    if pull_from is None and "://" not in place:
        typer.echo(f"the lines to copy name the folder {place}; --pull-from names another address", err=True)
    typer.echo(write_site(place, out, priors=tuple(priors or ()), pull_from=pull_from))
