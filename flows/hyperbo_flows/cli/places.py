"""The commands of `hyperbo data` for places: publish, pull, prune, catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hyperbo.storage.installation import require_extras
from hyperbo_flows.cli.options import DataDir, Reference, optional

PulledReference = Annotated[
    str, typer.Argument(help="<name>/<config>:<version>. Without a version, the newest published one.")
]
From = Annotated[
    list[str] | None,
    optional(
        "Place to pull from: a folder, https://, s3:// or gs://. Several are tried in order.",
        "--from",
        envvar="HYPERBO_DATA_SOURCES",
    ),
]


def publish(
    reference: Reference,
    to: Annotated[str, optional("Place: a folder, which a web server may serve, s3:// or gs://.")],
    sign_with: Annotated[
        Path | None, optional("Secret key of minisign. HYPERBO_SIGNING_PASSWORD holds its password.")
    ] = None,
    data: DataDir = None,
) -> None:
    """Verify a version and publish it at a place, where others can read it."""
    from pd1_builder.distribution import publish as publish_version

    entry = publish_version(reference, to, data_dir=data, key=sign_with)
    typer.echo(f"{entry.reference}: published at {to}, revision {entry.revision}")


def pull(
    reference: PulledReference,
    source: From = None,
    revision: Annotated[
        str | None, optional("Revision that the version must have: the SHA-256 of its manifest.")
    ] = None,
    public_key: Annotated[
        str | None,
        optional(
            "Public key of minisign, or its file. Versions that it did not sign are refused.",
            envvar="HYPERBO_DATA_PUBLIC_KEY",
        ),
    ] = None,
    largest: Annotated[int, typer.Option(min=1, help="Largest size of the version, in GB.")] = 50,
    data: DataDir = None,
) -> None:
    """Pull a published version, and check it. An interrupted pull continues."""
    from hyperbo_flows.process.progress import byte_progress
    from pd1_builder.distribution import pull as pull_version
    from pd1_builder.version.pull_record import revision_of

    with byte_progress(f"pull {reference}") as progress:
        version = pull_version(
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
        int | None, optional("Number of pulled versions of each dataset to keep, the newest ones.", min=0)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be removed.")] = False,
    data: DataDir = None,
) -> None:
    """Remove pulled versions, and what interrupted pulls and builds left. Built versions stay."""
    from pd1_builder.distribution import prune as prune_versions

    removed = prune_versions(references or (), keep=keep, data_dir=data, dry_run=dry_run)
    verb = "would remove" if dry_run else "removed"
    for each in removed:
        typer.echo(f"{verb} {each.folder}, {each.size} bytes")
    if not removed:
        typer.echo("nothing to remove", err=True)


def catalogue(
    place: Annotated[str, typer.Argument(help="Place of published versions.", show_default=False)],
    out: Annotated[
        Path, typer.Option(help="Folder for the pages. It may be the place, if that is a folder.")
    ],
    pull_from: Annotated[
        str | None, optional("Address of the place for readers. Default: the place as given.")
    ] = None,
    priors: Annotated[list[Path] | None, optional("Catalog of priors to show. Several may be given.")] = None,
) -> None:
    """Write static web pages about the versions at a place."""
    require_extras("report", purpose="a catalogue")
    from pd1_builder.site.write import write_site

    if pull_from is None and "://" not in place:
        typer.echo(
            f"readers are shown the folder {place} as the address; --pull-from sets another one", err=True
        )
    typer.echo(write_site(place, out, priors=tuple(priors or ()), pull_from=pull_from))
