"""The ledger: which runs have finished for which inputs. A finished run is a folder; there is no database.

A run's identity is a mapping of plain JSON values with its `kind`, such as a prior's dataset, method and
seed. Its folder `<runs>/<kind>/<id>/` holds `identity.json`, `facts.json` and what the run made. The folder
appears by one rename when it is complete. A run that was killed leaves no folder, and is done again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from hyperbo.errors import InvalidInputError, VersionConflictError
from hyperbo.storage.atomic import write_atomically
from hyperbo.storage.staging import lock, publish, stage

IDENTITY_NAME = "identity.json"
FACTS_NAME = "facts.json"

Identity = Mapping[str, Any]
K = TypeVar("K")


def run_id(identity: Identity) -> str:
    """Name a run by its identity: 16 hexadecimal digits that do not depend on the order of keys.

    Raises:
      InvalidInputError: a value is not plain JSON.

    >>> run_id({"kind": "prior", "seed": 0}) == run_id({"seed": 0, "kind": "prior"})
    True
    """
    return hashlib.sha256(_canonical(identity).encode()).hexdigest()[:16]


def run_folder(runs: Path, identity: Identity) -> Path:
    """The folder of a run, whether it has finished or not."""
    return runs / str(identity["kind"]) / run_id(identity)


def find(runs: Path, identity: Identity) -> Path | None:
    """The folder of a finished run; None where it has not finished.

    Raises:
      VersionConflictError: the folder is another run's, or its identity cannot be read.
    """
    folder = run_folder(runs, identity)
    if not folder.exists():
        return None
    path = folder / IDENTITY_NAME
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise VersionConflictError(f"{path} cannot be read: {error}; remove {folder}") from error
    if _canonical(found) != _canonical(identity):
        raise VersionConflictError(f"{path} is not the identity {run_id(identity)} of its folder")
    return folder


def missing(runs: Path, identities: Mapping[K, Identity]) -> list[K]:
    """The keys of the runs that have not finished, in their order.

    Raises:
      VersionConflictError: a folder is another run's, or its identity cannot be read.
    """
    return [key for key, identity in identities.items() if find(runs, identity) is None]


def facts(folder: Path) -> dict[str, Any]:
    """The facts that are kept of a finished run beside its identity: times, platform.

    Raises:
      InvalidInputError: the file cannot be read.
    """
    path = folder / FACTS_NAME
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"cannot be read: {error}", where=str(path), fix=f"remove {folder}"
        ) from error


def finish(runs: Path, identity: Identity, write: Callable[[Path], object], facts: Mapping[str, Any]) -> bool:
    """Record a run as finished. Of several processes that finish the same run, one records it.

    Args:
      runs: the ledger's folder.
      identity: the run's identity.
      write: writes what the run made into the folder that it is called with.
      facts: what else is known about the run, plain JSON.

    Returns:
      Whether this call recorded the run; False where another process was first: its files stay.

    Raises:
      InvalidInputError: identity or facts are not plain JSON.
    """
    target = run_folder(runs, identity)
    target.parent.mkdir(parents=True, exist_ok=True)
    # One lock for all runs of a kind: it is held for milliseconds, while files are written.
    with lock(target.parent, lambda: None):
        if find(runs, identity) is not None:
            return False
        with stage(target) as staging:
            folder = staging / "run"
            write_atomically(folder / IDENTITY_NAME, _indented(identity))
            write_atomically(folder / FACTS_NAME, _indented(facts))
            write(folder)
            publish(folder, target)
    return True


def _canonical(identity: Identity) -> str:
    return _json(identity, sort_keys=True, separators=(",", ":"))


def _indented(mapping: Mapping[str, Any]) -> bytes:
    return _json(mapping, indent=1).encode() + b"\n"


def _json(mapping: Mapping[str, Any], **style: Any) -> str:
    try:
        return json.dumps(mapping, ensure_ascii=False, allow_nan=False, **style)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"not plain JSON: {error}", where=f"run of kind {mapping.get('kind')!r}"
        ) from error
