"""A folder on a web server as a place. Any static server will do, with or without range requests."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPException
from urllib.parse import quote, urljoin, urlsplit

import requests
from urllib3.exceptions import HTTPError

from hyperbo.errors import InvalidInputError, NotAvailableError, UnreachableError
from pd1_builder.distribution.connections import Session, Watchdog
from pd1_builder.distribution.places import MissingError, Opened

_CHUNK = 256 << 10
_SECONDS_TO_CONNECT = 10.0
# A server that is silent for so long counts as gone.
_SECONDS_OF_SILENCE = 20.0
# A server may send redirects, interim answers, headers and trailers for so long without content of the file.
_SECONDS_WITHOUT_CONTENT = 120.0
_MOST_REDIRECTS = 10
# The longest wait that a server may ask for in Retry-After.
_LONGEST_WAIT = 60.0
_LONGEST_WORDS = 200
_TOKEN = "HYPERBO_DATA_TOKEN_"
_OF_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")


class WebPlace:
    """A folder on a web server, read with GET requests only.

    If the variable `HYPERBO_DATA_TOKEN_<HOST>` is set, its value is sent to that server, and to no other, as
    a bearer token. `<HOST>` is the host's name in capitals with `__` for a hyphen and `_` for a dot.

    A slow server is not given up while content of the file still comes from time to time.

    Args:
      url: address of the folder.
      silence: seconds without any byte after which a server counts as gone.
      without_content: seconds without content of the file after which a server is given up, even if it sends
        other bytes.

    Raises:
      InvalidInputError: the address names no server; or the token is malformed, or would be sent without
        encryption.
    """

    def __init__(
        self,
        url: str,
        silence: float = _SECONDS_OF_SILENCE,
        without_content: float = _SECONDS_WITHOUT_CONTENT,
    ) -> None:
        self._url = url.rstrip("/")
        self._timeout, self._without_content = (_SECONDS_TO_CONNECT, silence), without_content
        parts = urlsplit(self._url)
        self._host, self._is_private = parts.hostname or "", parts.scheme == "https"
        if not self._host:
            raise InvalidInputError(
                "the address names no server", where=url, fix="give https://server/folder"
            )
        self._token = os.environ.get(token_variable(self._host), "").strip()
        # The error of the network library would show the token.
        if not (self._token.isascii() and self._token.isprintable()):
            raise InvalidInputError(
                f"the token in {token_variable(self._host)} holds characters that a header must not hold",
                where=self._url,
                fix="set it to one line of ASCII",
            )
        if self._token and not self._is_private and self._host not in _OF_THIS_MACHINE:
            raise InvalidInputError(
                f"the token in {token_variable(self._host)} would be sent without encryption",
                where=self._url,
                fix="use https",
            )

    @property
    def url(self) -> str:
        """Its address."""
        return self._url

    @contextmanager
    def open(self, name: str, start: int = 0) -> Iterator[Opened]:
        """Read a file, as `Place.open` says."""
        where = f"{self._url}/{quote(name)}"
        with Watchdog(self._without_content) as watchdog, Session() as session:
            # A server with wrong ranges may still send the whole file.
            for begin in (start, 0):
                # Closed at once, because otherwise the server would go on sending.
                with self._answer(session, watchdog, where, begin) as response:
                    is_part = response.status_code == 206
                    if not is_part or _is_rest(response, begin):
                        yield Opened(
                            begin if is_part else 0,
                            _chunks(response, watchdog, where, decode=False),
                            _chunks(response, watchdog, where, decode=True)
                            if _is_encoded(response)
                            else None,
                        )
                        return
            raise UnreachableError(f"{where}: the server sends another part of the file than was asked for")

    def _answer(self, session: Session, watchdog: Watchdog, where: str, start: int) -> requests.Response:
        """The answer to the request for a file, after redirects. Its body is not read yet."""
        with ExitStack() as unless_returned:
            try:
                with watchdog.watching(session.descriptor):
                    response = unless_returned.enter_context(self._follow(session, where, start))
            except (requests.RequestException, HTTPError, OSError, ValueError) as error:
                # The address of a redirect may be malformed.
                raise UnreachableError(f"{where}: {_in_short(error)}") from error
            _raise_for_status(response, where)
            unless_returned.pop_all()
            return response

    def _follow(self, session: Session, where: str, start: int) -> requests.Response:
        # No compression: offsets would mean nothing, and a small answer could become a large file.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        url = where
        for _ in range(_MOST_REDIRECTS + 1):
            # Another server gets neither the token nor a password from a netrc file.
            token = self._token if _server(url) == _server(where) else ""
            response = session.get(
                url, headers=headers, auth=_authorising(token), stream=True, timeout=self._timeout
            )
            if not response.is_redirect:
                return response
            # The body of a redirect is not read, because nothing limits its size.
            response.close()
            # requests decodes a header as Latin-1, but an address is UTF-8.
            url = urljoin(url, response.headers["Location"].encode("latin-1").decode(errors="replace"))
            if self._is_private and urlsplit(url).scheme != "https":
                raise NotAvailableError(f"{where}: the server redirects to an address without encryption")
        raise NotAvailableError(f"{where}: the server redirects more than {_MOST_REDIRECTS} times")


def token_variable(host: str) -> str:
    """The environment variable for the token of a host.

    >>> token_variable("data.example.org")
    'HYPERBO_DATA_TOKEN_DATA_EXAMPLE_ORG'
    """
    # A hyphen differs from a dot, because data-example.org and data.example.org are two hosts.
    return _TOKEN + re.sub(r"[^A-Z0-9]", "_", host.upper().replace("-", "__"))


def _server(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)


def _authorising(token: str) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
    def authorise(request: requests.PreparedRequest) -> requests.PreparedRequest:
        # With any function for `auth`, requests does not look for passwords in a netrc file.
        if token:
            request.headers["Authorization"] = f"Bearer {token}"
        return request

    return authorise


def _raise_for_status(response: requests.Response, where: str) -> None:
    status = response.status_code
    if status in (200, 206):
        return
    said = f"{where}: the server answers {status} {_printable(response.reason or '')}"
    if status in (401, 403):
        variable = token_variable(urlsplit(where).hostname or "")
        raise NotAvailableError(f"{said}; if it needs a token, set {variable}")
    if status == 416:
        raise NotAvailableError(f"{where}: has fewer bytes than it should")
    if status in (408, 425, 429) or status >= 500:
        raise UnreachableError(said, _retry_after(response))
    raise (MissingError if status in (404, 410) else NotAvailableError)(said)


def _retry_after(response: requests.Response) -> float:
    # A date is ignored, because the clocks of two machines differ.
    seconds = response.headers.get("Retry-After", "")
    return min(float(seconds), _LONGEST_WAIT) if seconds.isdecimal() else 0.0


def _is_rest(response: requests.Response, asked: int) -> bool:
    """True if the server sent the rest of the file, from the offset that was asked for, not compressed."""
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return found is not None and int(found[1]) == asked and not _is_encoded(response)


def _is_encoded(response: requests.Response) -> bool:
    return response.headers.get("Content-Encoding", "").lower() not in ("", "identity")


def _chunks(response: requests.Response, watchdog: Watchdog, where: str, *, decode: bool) -> Iterator[bytes]:
    try:
        while True:
            with watchdog.watching(response.raw.fileno):
                # Read as it comes. The beginning of a larger chunk would be lost if the connection broke.
                chunk = response.raw.read1(_CHUNK, decode_content=decode)
            if not chunk:
                return
            yield chunk
    except (HTTPError, OSError) as error:
        raise UnreachableError(f"{where}: {_in_short(error)}") from error


def _in_short(error: BaseException) -> str:
    """The cause of an error, without the objects of the network library around it."""
    if isinstance(error, requests.exceptions.Timeout) or "timed out" in str(error):
        return "the server does not answer in time"
    if "IncompleteRead" in str(error) or "prematurely" in str(error):
        return "the connection was closed before the end of the file"
    while (cause := _cause(error)) is not None:
        error = cause
    return _printable(str(error))


def _cause(error: BaseException) -> BaseException | None:
    """The error inside an error of the network library. `__context__` may be an error of a caller."""
    nested = (error.__cause__, getattr(error, "reason", None), *error.args)
    return next((each for each in nested if isinstance(each, HTTPError | HTTPException | OSError)), None)


def _printable(text: str) -> str:
    # The text comes from a server and goes to a terminal.
    return "".join(each for each in text.strip() if each.isprintable())[:_LONGEST_WORDS]
