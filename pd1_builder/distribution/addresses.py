"""Addresses of places: which kind of place one is of; none that holds a secret."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import SplitResult, urlsplit
from urllib.request import url2pathname

from hyperbo.errors import InvalidInputError
from pd1_builder.distribution.folder import FolderPlace
from pd1_builder.distribution.places import Place, WritablePlace

# A scheme, also of what is mistyped: that is no folder to be made.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(/|:)")


def place(url: str | Path) -> Place:
    """The place at a URL, or at a path of this machine.

    Raises:
      InvalidInputError: it is no address of a folder, or holds a secret.
      NotAvailableError: nothing is installed that reads such URLs.
    """
    url = str(url)
    _refuse_secrets(url)
    if _scheme(url) in ("http", "https"):
        from pd1_builder.distribution.web import WebPlace

        return WebPlace(url)
    return writable_place(url)


def writable_place(url: str | Path) -> WritablePlace:
    """The place at a URL, or at a path of this machine, to publish to.

    Raises:
      InvalidInputError: it is no address of a folder, holds a secret, or is that of a web server.
      NotAvailableError: nothing is installed that writes to such URLs.
    """
    url = str(url)
    _refuse_secrets(url)
    scheme = _scheme(url)
    if scheme in ("http", "https"):
        raise InvalidInputError(
            "a web server is read, not written to",
            where=url,
            fix="publish to the folder that it serves, or to an object store",
        )
    if scheme in ("", "file"):
        return FolderPlace(Path(url2pathname(urlsplit(url).path)) if scheme else Path(url).expanduser())
    from pd1_builder.distribution.object_store import ObjectStorePlace

    return ObjectStorePlace(url)


def _scheme(url: str) -> str:
    return url.partition("://")[0].lower() if "://" in url else ""


def _refuse_secrets(url: str) -> None:
    if not url.strip():
        raise InvalidInputError(
            "the address is empty", fix="write a folder, or a URL such as s3://bucket/data"
        )
    if not _ADDRESS.match(url):
        return
    # Nothing of the address is shown: wherever a password was put, it must not get into a log.
    if "@" in url or "?" in url or "#" in url:
        raise InvalidInputError(
            "an address must hold no user, password, query or fragment",
            fix="keep secrets in the environment, where no log shows them",
        )
    parts = _split(url)
    if url.count("://") != 1 or "::" in url or any(map(str.isspace, url)):
        raise InvalidInputError(
            "an address is malformed, or several in one",
            fix="write such as https://example.org/data, and several with blanks between them",
        )
    if parts.scheme == "file" and parts.netloc not in ("", "localhost"):
        raise InvalidInputError("a file:// address names another machine", fix="write file:///folder")


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        raise InvalidInputError(
            "an address is malformed", fix="write a URL such as https://example.org/data"
        ) from None
