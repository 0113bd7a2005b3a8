"""Writing the catalogue of a place: static pages that need no server and load nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hyperbo.errors import InvalidInputError
from hyperbo.priors.names import SHIPPED
from hyperbo.storage.atomic import write_atomically
from pd1_builder.distribution.addresses import place_at
from pd1_builder.distribution.places import Place
from pd1_builder.distribution.writable_places import FolderPlace
from pd1_builder.site.catalogue import PAGES, Catalogue, read_priors, read_versions
from pd1_builder.site.pages import GENERATOR, TO_ROOT, is_web, render_index, render_version
from pd1_builder.version.manifest import DATASET, VERSION

# The page of a version. A version's own folder never matches, even of a dataset named like the folder of
# pages, because a configuration has no dots.
_PAGE = re.compile(rf"{DATASET.pattern}/{VERSION.pattern}\.html")


def write_site(
    url: str | Path, out: Path, *, priors: Sequence[Path] = (), pull_from: str | None = None
) -> Path:
    """Write the catalogue of a place: `index.html`, and a page for each version in `catalogue/`.

    The same place gives the same pages. Pages of versions that the place no longer has are removed. The
    folder may be the place itself, whose files do not change.

    Args:
      url: address of the place.
      out: folder to write to.
      priors: prior catalogs, besides the shipped one. Each version shows the priors trained on it.
      pull_from: address of the place for readers; None for `url`.

    Returns:
      The path of `index.html`.

    Raises:
      InvalidInputError: an address is malformed, or `out` lies inside the place or holds another page.
      NotAvailableError: nothing is published at the place, or a file or a prior catalog may not be read.
      UnreachableError: the place cannot be read now.
      VersionConflictError: a file is not the one that was published.
    """
    place = place_at(url)
    _refuse_inside(place, out)
    _refuse_foreign(out / "index.html")
    shown = place_at(pull_from) if pull_from else place
    # Lines with a relative path would work in one folder only.
    address = str(Path(shown.url).resolve()) if isinstance(shown, FolderPlace) else shown.url
    versions = read_versions(place)
    catalogue = Catalogue(
        versions, read_priors((*priors, SHIPPED)), address, _file_links(place, address, out)
    )
    pages = {out / version.page: render_version(version, catalogue) for version in versions}
    for path, page in pages.items():
        write_atomically(path, page.encode())
    # Last, because its links lead to the other pages.
    index = out / "index.html"
    write_atomically(index, render_index(catalogue).encode())
    for path in (out / PAGES).glob("*/*/*.html"):
        if path not in pages and _PAGE.fullmatch(path.relative_to(out / PAGES).as_posix()):
            path.unlink()
    return index


def _refuse_inside(place: Place, out: Path) -> None:
    if isinstance(place, FolderPlace) and Path(place.url).resolve() in out.resolve().parents:
        raise InvalidInputError(
            "lies among the published files",
            where=str(out),
            fix=f"use {place.url} itself, or a folder elsewhere",
        )


def _refuse_foreign(index: Path) -> None:
    if index.exists() and GENERATOR.encode() not in index.read_bytes():
        raise InvalidInputError(
            "was not written by this command", where=str(index), fix="give another folder"
        )


def _file_links(place: Place, address: str, out: Path) -> str | None:
    """The beginning of links to files; None if a reader could not follow them."""
    if isinstance(place, FolderPlace) and Path(place.url).resolve() == out.resolve():
        return TO_ROOT
    return f"{address}/" if is_web(address) else None
