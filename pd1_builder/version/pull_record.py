"""What a pull leaves beside a version: its pull record, and the files of a pull that is not complete.

<name>/<config>/2.0.0/                          the version, once it is complete
<name>/<config>/.pulled-2.0.0.json              the pull record: revision and place
<name>/<config>/.pulling-2.0.0-<revision>/      the files that an incomplete pull has brought so far
<name>/<config>/.2.0.0.lock                     held by the process that builds, pulls or removes the version
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from hyperbo.errors import InvalidInputError
from hyperbo.storage.atomic import write_atomically
from hyperbo.storage.printable import printable
from hyperbo.storage.validation import validated
from pd1_builder.version.manifest import MANIFEST_NAME, SHA256, Sha256

_DIGITS = 16


@dataclass(frozen=True)
class _PullRecord:
    revision: Sha256
    place: str


def pull_folder(target: Path, revision: str) -> Path:
    """The folder in which a pull collects files until the version is complete."""
    return target.parent / f".pulling-{target.name}-{revision[:_DIGITS]}"


def pull_folders(target: Path) -> tuple[Path, ...]:
    """The folders of all incomplete pulls of a version, whatever their revision."""
    return tuple(sorted(target.parent.glob(f".pulling-{target.name}-{'?' * _DIGITS}")))


def pull_record(target: Path) -> Path:
    """The file that says that a version was pulled. It is written before the version appears."""
    return target.parent / f".pulled-{target.name}.json"


def record_pull(target: Path, revision: str, place: str) -> None:
    """Write the pull record of a version. `prune` removes only versions that have one."""
    content = json.dumps(asdict(_PullRecord(revision, place)), indent=1) + "\n"
    write_atomically(pull_record(target), content.encode())


def was_pulled(target: Path) -> bool:
    """Whether the version in a folder was pulled, so that it can be pulled again."""
    return _place(target) is not None


def describe_origin(target: Path) -> str:
    """Where the version in a folder comes from, in words."""
    place = _place(target)
    return "built here" if place is None else f"pulled from {printable(place)}"


def _place(target: Path) -> str | None:
    try:
        content = json.loads(pull_record(target).read_text(encoding="utf-8"))
        record = validated(_PullRecord, content, "")
        return record.place if record.revision == revision_of(target) else None
    except (OSError, ValueError, RecursionError):
        return None


def revision_of(folder: Path) -> str:
    """The revision of the version in a folder: the SHA-256 of its manifest, which fixes every byte of it."""
    return hashlib.sha256((folder / MANIFEST_NAME).read_bytes()).hexdigest()


def check_revision(revision: str | None) -> None:
    """Check that a revision is a whole SHA-256. A shorter one would not fix every byte.

    Raises:
      InvalidInputError: the revision does not have 64 hexadecimal digits.
    """
    if revision is not None and not SHA256.fullmatch(revision):
        raise InvalidInputError(
            f"revision {revision!r}", fix="give the 64 digits of a SHA-256: 0 to 9, a to f"
        )
