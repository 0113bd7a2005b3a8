"""What lies in a catalogue of priors: its lines, and the entries of a line, each named by its content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.prior_history import PRIOR_ID

CURRENT_NAME = "current.json"
PRIOR_FILES = ("prior.safetensors", "prior.json")
LINE_NAME = re.compile(r"[a-z0-9_-]+/[a-z0-9_-]+")


def lines(catalog: Path) -> tuple[str, ...]:
    """Names of the lines of a catalogue, sorted; a line has a prior or a history."""
    folders = [folder for folder in catalog.glob("*/*") if _is_line(folder)]
    names = (folder.relative_to(catalog).as_posix() for folder in folders)
    return tuple(sorted(name for name in names if LINE_NAME.fullmatch(name)))


def line_folder(catalog: Path, line: str) -> Path:
    """Where a line is, or would be.

    Raises:
      InvalidInputError: the line is no name.
    """
    if not LINE_NAME.fullmatch(line):
        raise InvalidInputError(
            f"line {line!r}",
            fix="write two names of small letters, digits, - and _ with a / between, such as pd1-mini/h-nll",
        )
    # Absolute, for a worker may run in another folder.
    return catalog.absolute() / line


def known_line(catalog: Path, line: str) -> Path:
    """The folder of a line that exists.

    Raises:
      InvalidInputError: the line is no name.
      NotAvailableError: there is no such line; the message lists those there are.
    """
    folder = line_folder(catalog, line)
    if not _is_line(folder):
        raise NotAvailableError(f"no line {line} in {catalog}; lines there: {listed(lines(catalog))}")
    return folder


def prior_ids(folder: Path) -> tuple[str, ...]:
    """Identifiers of the priors in the folder of a line, sorted."""
    # Staging folders, and whatever else lies here, have other names.
    return tuple(sorted(path.name for path in folder.glob("*") if PRIOR_ID.fullmatch(path.name)))


def entry(folder: Path, prior_id: str) -> Path:
    """The folder of a prior in that of its line, with the files that were added.

    Raises:
      NotAvailableError: there is no such prior; the message lists those there are.
      InvalidInputError: its files are not those that were added.
    """
    known = prior_ids(folder)
    if prior_id not in known:
        raise NotAvailableError(f"no prior {prior_id} in {folder}; priors there: {listed(known)}")
    found = folder / prior_id
    try:
        whole = content_id([(found / name).read_bytes() for name in PRIOR_FILES]) == prior_id
    except OSError:
        whole = False
    if not whole:
        raise InvalidInputError(
            "these are not the files that were added",
            where=str(found),
            fix="remove the folder and add the prior anew",
        )
    return found


def content_id(contents: Sequence[bytes]) -> str:
    """Identifier of a prior: 16 hexadecimal digits of the SHA-256 of its files' SHA-256.

    Args:
      contents: of `PRIOR_FILES`, in their order.
    """
    digests = [hashlib.sha256(content).digest() for content in contents]
    return hashlib.sha256(b"".join(digests)).hexdigest()[:16]


def listed(names: Iterable[str]) -> str:
    """Names for a message.

    >>> listed(["a", "b"]), listed([])
    ('a, b', 'none')
    """
    return ", ".join(names) or "none"


def _is_line(folder: Path) -> bool:
    return (folder / CURRENT_NAME).is_file() or bool(prior_ids(folder))
