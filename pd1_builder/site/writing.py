"""The catalogue of what is published at a place: pages that need no server and load nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from hyperbo.errors import InvalidInputError, VersionConflictError
from hyperbo.files import write_atomically
from hyperbo.published import SHIPPED
from pd1_builder.card import CARD_NAME
from pd1_builder.distribution.addresses import place
from pd1_builder.distribution.folder import FolderPlace
from pd1_builder.distribution.index import INDEX_NAME, Entry, read_entry, read_index
from pd1_builder.distribution.places import Place, read_small
from pd1_builder.distribution.published import read_signature
from pd1_builder.manifest import LARGEST_MANIFEST, parse_manifest
from pd1_builder.manifest_fields import DATASET, MANIFEST_NAME, VERSION
from pd1_builder.site.code_lines import is_web
from pd1_builder.site.pages import (
    GENERATOR,
    PAGES,
    TO_ROOT,
    Catalogue,
    Release,
    render_index,
    render_version,
)
from pd1_builder.site.trained_priors import read_priors

_LARGEST_CARD = 1 << 20
# A dataset named like the folder of pages has versions where these have configurations, which have no dots.
_PAGE = re.compile(rf"{DATASET.pattern}/{VERSION.pattern}\.html")


def write_site(
    url: str | Path, out: Path, *, priors: Sequence[Path] = (), pull_from: str | None = None
) -> Path:
    """Write the catalogue of a place: `index.html`, and a page for each version below `catalogue/`.

    The same place gives the same pages; those of versions that are there no longer are removed. The folder
    may be the place itself, whose files stay as they are.

    Args:
      url: of the place, or its folder.
      out: folder to write to.
      priors: catalogues of priors to link to the versions that they were trained on, beside those that ship.
      pull_from: address of the place for readers; None for the one it is read from.

    Returns:
      The path of `index.html`.

    Raises:
      InvalidInputError: an address is none, or the folder lies inside the place.
      NotAvailableError, UnreachableError: nothing is published there, or something cannot be read.
      VersionConflictError: a file is not the one that was published.
    """
    source = place(url)
    _refuse_inside(source, out)
    _refuse_foreign(out / "index.html")
    address = place(pull_from).url if pull_from else source.url
    entries = read_index(source)
    catalogue = Catalogue(
        tuple(_read_release(source, entry) for entry in entries),
        read_priors((*priors, SHIPPED)),
        address,
        _files(source, address, out),
    )
    pages = {out / release.page: render_version(release, catalogue) for release in catalogue.releases}
    for path, page in pages.items():
        write_atomically(path, page.encode())
    # Last, as its links lead to the others.
    index = out / "index.html"
    write_atomically(index, render_index(catalogue).encode())
    for path in (out / PAGES).glob("*/*/*.html"):
        if path not in pages and _PAGE.fullmatch(path.relative_to(out / PAGES).as_posix()):
            path.unlink()
    return index


def _refuse_inside(source: Place, out: Path) -> None:
    if isinstance(source, FolderPlace) and Path(source.url).resolve() in out.resolve().parents:
        raise InvalidInputError(
            "lies among the published files",
            where=str(out),
            fix=f"use {source.url} itself, or a folder elsewhere",
        )


def _refuse_foreign(index: Path) -> None:
    if index.exists() and GENERATOR.encode() not in index.read_bytes():
        raise InvalidInputError("is a page of somebody else", where=str(index), fix="give another folder")


def _files(source: Place, address: str, out: Path) -> str | None:
    """What links to files begin with: none where a reader could not follow them."""
    if isinstance(source, FolderPlace) and Path(source.url).resolve() == out.resolve():
        return TO_ROOT
    return f"{address}/" if is_web(address) else None


def _read_release(source: Place, entry: Entry) -> Release:
    found = read_entry(source, entry.folder)
    if found is None or found[0] != entry:
        raise VersionConflictError(
            f"{source.url}/{entry.name}: is not what {INDEX_NAME} says; publish a version there again"
        )
    where = f"{source.url}/{entry.folder}/{MANIFEST_NAME}"
    content = read_small(source, f"{entry.folder}/{MANIFEST_NAME}", LARGEST_MANIFEST)
    _require_hash(content, entry.revision, where)
    manifest = parse_manifest(content, where)
    if manifest.reference != entry.reference:
        raise VersionConflictError(f"{where}: is the manifest of {manifest.reference}")
    card = b""
    for file in manifest.files:
        # A page of a megabyte nobody reads, and its own file is listed.
        if file.name == CARD_NAME and file.size <= _LARGEST_CARD:
            card = read_small(source, f"{entry.folder}/{CARD_NAME}", _LARGEST_CARD)
            _require_hash(card, file.sha256, f"{source.url}/{entry.folder}/{CARD_NAME}")
    is_signed = read_signature(source, entry) is not None
    return Release(entry, found[1], manifest, card.decode(errors="replace"), is_signed)


def _require_hash(content: bytes, sha256: str, where: str) -> None:
    if hashlib.sha256(content).hexdigest() != sha256:
        raise VersionConflictError(
            f"{where}: is not the file that was published; publish the version there again"
        )
