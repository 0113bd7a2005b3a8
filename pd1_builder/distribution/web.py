"""A folder on a web server as a place: any static one, with or without ranges."""

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
from pd1_builder.distribution.connections import Session, Watch
from pd1_builder.distribution.places import MissingError, Opened

_CHUNK = 256 << 10
_SECONDS_TO_CONNECT = 10.0
# A server that says nothing for so long has gone.
_SECONDS_OF_SILENCE = 20.0
# So long a server may send what is nothing of the file: redirects, interim answers, headers, trailers.
_SECONDS_WITHOUT_CONTENT = 120.0
_MOST_REDIRECTS = 10
# Longer than this nobody waits for a server that asks to be left alone.
_LONGEST_WAIT = 60.0
_LONGEST_WORDS = 200
_TOKEN = "HYPERBO_DATA_TOKEN_"
_OF_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")


class WebPlace:
    """A folder on a web server, read with GET alone.

    Where the variable `HYPERBO_DATA_TOKEN_<HOST>` is set, the host's name in capitals with `__` for a hyphen
    and `_` for a dot, its value is sent to that server, and to no other, as a bearer token.

    A server that sends a little of a file now and then is waited for, however slow it is.

    Args:
      url: of the folder.
      silence: seconds without a byte after which a server counts as gone.
      without_content: seconds after which a server is given up that sends bytes, and none of the file.

    Raises:
      InvalidInputError: the address names no server; a token is none, or would be sent without encryption.
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
                "the address names no server", where=url, fix="write https://server/folder"
            )
        self._token = os.environ.get(token_variable(self._host), "").strip()
        # The network library's own error would quote it.
        if not (self._token.isascii() and self._token.isprintable()):
            raise InvalidInputError(
                f"the token of {token_variable(self._host)} holds what no header may hold",
                where=self._url,
                fix="set it to one line of ASCII",
            )
        if self._token and not self._is_private and self._host not in _OF_THIS_MACHINE:
            raise InvalidInputError(
                f"the token of {token_variable(self._host)} would be sent for everyone to read",
                where=self._url,
                fix="use https",
            )

    @property
    def url(self) -> str:
        """Where it is."""
        return self._url

    @contextmanager
    def open(self, name: str, start: int = 0) -> Iterator[Opened]:
        """See `places.Place`."""
        where = f"{self._url}/{quote(name)}"
        with Watch(self._without_content) as watch, Session() as session:
            # A server whose ranges are of no use may have the whole file all the same.
            for begin in (start, 0):
                # Closed at once, or the server would go on with what nobody reads.
                with self._answer(session, watch, where, begin) as response:
                    is_part = response.status_code == 206
                    if not is_part or _is_rest(response, begin):
                        yield Opened(
                            begin if is_part else 0,
                            _chunks(response, watch, where, decode=False),
                            _chunks(response, watch, where, decode=True) if _is_encoded(response) else None,
                        )
                        return
            raise UnreachableError(f"{where}: the server sends another part than the one asked for")

    def _answer(self, session: Session, watch: Watch, where: str, start: int) -> requests.Response:
        """The answer to a request for a file, wherever the server sends on to; its body is not read yet."""
        with ExitStack() as unless_returned:
            try:
                with watch.waiting(session.descriptor):
                    response = unless_returned.enter_context(self._follow(session, where, start))
            except (requests.RequestException, HTTPError, OSError, ValueError) as error:
                # An address that the server sends on to may be none.
                raise UnreachableError(f"{where}: {_in_short(error)}") from error
            _raise_for_status(response, where)
            unless_returned.pop_all()
            return response

    def _follow(self, session: Session, where: str, start: int) -> requests.Response:
        # Compressed on the way, a file would have no offsets, and a small one could become a large one.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        url = where
        for _ in range(_MOST_REDIRECTS + 1):
            # Another server gets neither the token nor a password out of a file.
            token = self._token if _server(url) == _server(where) else ""
            response = session.get(
                url, headers=headers, auth=_authorising(token), stream=True, timeout=self._timeout
            )
            if not response.is_redirect:
                return response
            # Unread: nothing limits the body of a redirect.
            response.close()
            # The bytes of a header come as Latin-1, those of an address are UTF-8.
            url = urljoin(url, response.headers["Location"].encode("latin-1").decode(errors="replace"))
            if self._is_private and urlsplit(url).scheme != "https":
                raise NotAvailableError(f"{where}: the server sends on to an address without encryption")
        raise NotAvailableError(f"{where}: the server sends on more than {_MOST_REDIRECTS} times")


def token_variable(host: str) -> str:
    """The name of the environment variable with the token of a host.

    >>> token_variable("data.example.org")
    'HYPERBO_DATA_TOKEN_DATA_EXAMPLE_ORG'
    """
    # A hyphen apart from a dot: data-example.org and data.example.org are two hosts.
    return _TOKEN + re.sub(r"[^A-Z0-9]", "_", host.upper().replace("-", "__"))


def _server(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)


def _authorising(token: str) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
    def authorise(request: requests.PreparedRequest) -> requests.PreparedRequest:
        # Being asked at all keeps requests from looking for passwords in files.
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
        raise NotAvailableError(f"{said}; where it wants a token, set {variable}")
    if status == 416:
        raise NotAvailableError(f"{where}: has fewer bytes than it should")
    if status in (408, 425, 429) or status >= 500:
        raise UnreachableError(said, _retry_after(response))
    raise (MissingError if status in (404, 410) else NotAvailableError)(said)


def _retry_after(response: requests.Response) -> float:
    # The other form, a date, is as good as none: clocks differ.
    seconds = response.headers.get("Retry-After", "")
    return min(float(seconds), _LONGEST_WAIT) if seconds.isdecimal() else 0.0


def _is_rest(response: requests.Response, asked: int) -> bool:
    """Whether a part of a file is the one from an offset on, and of the file as it is."""
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return found is not None and int(found[1]) == asked and not _is_encoded(response)


def _is_encoded(response: requests.Response) -> bool:
    return response.headers.get("Content-Encoding", "").lower() not in ("", "identity")


def _chunks(response: requests.Response, watch: Watch, where: str, *, decode: bool) -> Iterator[bytes]:
    try:
        while True:
            with watch.waiting(response.raw.fileno):
                # As it comes: what had come of a larger chunk would be lost with the connection.
                chunk = response.raw.read1(_CHUNK, decode_content=decode)
            if not chunk:
                return
            yield chunk
    except (HTTPError, OSError) as error:
        raise UnreachableError(f"{where}: {_in_short(error)}") from error


def _in_short(error: BaseException) -> str:
    """What happened, without the objects of the network library that it is nested in."""
    if isinstance(error, requests.exceptions.Timeout) or "timed out" in str(error):
        return "the server does not answer in time"
    if "IncompleteRead" in str(error) or "prematurely" in str(error):
        return "the connection was closed before the end of the file"
    while (cause := _cause(error)) is not None:
        error = cause
    return _printable(str(error))


def _cause(error: BaseException) -> BaseException | None:
    """What the network library nested in its error; no `__context__`, which may be whoever called's."""
    nested = (error.__cause__, getattr(error, "reason", None), *error.args)
    return next((each for each in nested if isinstance(each, HTTPError | HTTPException | OSError)), None)


def _printable(text: str) -> str:
    # A server's words go to somebody's terminal.
    return "".join(each for each in text.strip() if each.isprintable())[:_LONGEST_WORDS]
