"""The place at an address. Addresses that hold a secret are refused."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import SplitResult, urlsplit
from urllib.request import url2pathname

from hyperbo.errors import InvalidInputError
from hyperbo.storage.paths import StrPath, as_path
from pd1_builder.distribution.places import Place, WritablePlace
from pd1_builder.distribution.writable_places import FolderPlace, ObjectStorePlace

# Anything that begins like a scheme, so that a mistyped URL is not taken for a folder.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(/|:)")


def place_at(url: StrPath) -> Place:
    """The place at a URL or at a path of this machine, to read from.

    Raises:
      InvalidInputError: the address is not that of a folder, or holds a secret.
      NotAvailableError: the package for such URLs is not installed.
      UnreachableError: the store cannot be reached.
    """
    url = url if isinstance(url, str) else str(as_path(url, "address"))
    _refuse_secrets(url)
    if _scheme(url) in ("http", "https"):
        from pd1_builder.distribution.web import WebPlace

        return WebPlace(url)
    return writable_place_at(url)


def writable_place_at(url: StrPath) -> WritablePlace:
    """The place at a URL or at a path of this machine, to publish to.

    Raises:
      InvalidInputError: the address is not that of a folder, holds a secret, or is that of a web server.
      NotAvailableError: the package for such URLs is not installed.
      UnreachableError: the store cannot be reached.
    """
    url = url if isinstance(url, str) else str(as_path(url, "address"))
    _refuse_secrets(url)
    scheme = _scheme(url)
    if scheme in ("http", "https"):
        raise InvalidInputError(
            "a web server can only be read",
            where=url,
            fix="publish to the folder that it serves, or to an object store",
        )
    if scheme in ("", "file"):
        return FolderPlace(Path(url2pathname(urlsplit(url).path)) if scheme else Path(url).expanduser())
    return ObjectStorePlace(url)


def _scheme(url: str) -> str:
    return url.partition("://")[0].lower() if "://" in url else ""


def _refuse_secrets(url: str) -> None:
    if not url.strip():
        raise InvalidInputError(
            "the address is empty", fix="give a folder, or a URL such as s3://bucket/data"
        )
    if not _ADDRESS.match(url):
        return
    # No part of the address is shown, because it may hold a password, which must not get into a log.
    if "@" in url or "?" in url or "#" in url:
        raise InvalidInputError(
            "an address must hold no user, password, query or fragment",
            fix="put secrets into environment variables, which no log shows",
        )
    parts = _split(url)
    if url.count("://") != 1 or "::" in url or any(map(str.isspace, url)):
        raise InvalidInputError(
            "an address is malformed, or holds several addresses",
            fix="give a URL such as https://example.org/data, and put blanks between several",
        )
    if parts.scheme == "file" and parts.netloc not in ("", "localhost"):
        raise InvalidInputError("a file:// address names another machine", fix="give file:///folder")


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        raise InvalidInputError(
            "an address is malformed", fix="give a URL such as https://example.org/data"
        ) from None
