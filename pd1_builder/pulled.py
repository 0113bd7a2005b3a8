"""What pulling a version leaves beside it: where it came from, and what of it is here while it is incomplete.

<name>/<config>/2.0.0/                          the version, once it is complete
<name>/<config>/.pulled-2.0.0.json              that it was pulled: revision and place
<name>/<config>/.pulling-2.0.0-<revision>/      what is here of a version that is not complete
<name>/<config>/.2.0.0.lock                     held by whoever makes, pulls or removes it
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from hyperbo.errors import InvalidInputError
from hyperbo.files import write_atomically
from hyperbo.printable import printable
from pd1_builder.manifest_fields import MANIFEST_NAME, SHA256

_DIGITS = 16


def pull_folder(target: Path, revision: str) -> Path:
    """Where the files of a version are while it is incomplete."""
    return target.parent / f".pulling-{target.name}-{revision[:_DIGITS]}"


def pull_folders(target: Path) -> tuple[Path, ...]:
    """What is here of pulls of a version that did not end, of whatever revision."""
    return tuple(sorted(target.parent.glob(f".pulling-{target.name}-{'?' * _DIGITS}")))


def pull_record(target: Path) -> Path:
    """The file that says that a version was pulled; it is there before the version is."""
    return target.parent / f".pulled-{target.name}.json"


def record_pull(target: Path, revision: str, place: str) -> None:
    """Remember that a version was pulled: it may be removed, for it can be pulled again."""
    content = json.dumps({"revision": revision, "place": place}, indent=1) + "\n"
    write_atomically(pull_record(target), content.encode())


def was_pulled(target: Path) -> bool:
    """Whether the version in a folder is the one that was pulled there: it can be had again."""
    return _place(target) is not None


def where_from(target: Path) -> str:
    """Where the version in a folder is from, in words."""
    place = _place(target)
    return "built here" if place is None else f"pulled from {printable(place)}"


def _place(target: Path) -> str | None:
    try:
        record = json.loads(pull_record(target).read_text(encoding="utf-8"))
        return str(record["place"]) if record["revision"] == revision_of(target) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def revision_of(folder: Path) -> str:
    """SHA-256 of the manifest of a version's folder: its revision, which pins every byte of it."""
    return hashlib.sha256((folder / MANIFEST_NAME).read_bytes()).hexdigest()


def check_revision(revision: str | None) -> None:
    """Refuse a revision that is none.

    Raises:
      InvalidInputError: it is not a whole SHA-256: less would pin nothing.
    """
    if revision is not None and not SHA256.fullmatch(revision):
        raise InvalidInputError(
            f"revision {revision!r}", fix="give the 64 digits of a SHA-256: 0 to 9, a to f"
        )
