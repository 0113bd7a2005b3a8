"""The data of the arena: what can be made here, how to get the rest, and that each version is the one meant.

Nothing is downloaded: what the package neither ships nor makes, the user adds or builds .
"""

# The page docs/arena.md says how.
from __future__ import annotations

import shlex
from pathlib import Path

from hyperbo.errors import NotAvailableError, VersionConflictError
from hyperbo_flows.arena.protocol import Division, Part
from hyperbo_flows.arena.synthetic import SYNTHETIC, build_synthetic
from hyperbo_flows.process.progress import say
from pd1_builder import build, verify
from pd1_builder.version.catalog import find, find_here
from pd1_builder.version.makeable import shipped_raw
from pd1_builder.version.manifest import read_manifest


def provide_data(division: Division, data: Path) -> None:
    """Make the versions of a division that are not there, of those that can be made here.

    Raises:
      NotAvailableError: a version is not there and cannot be made; the message says how to get it.
      HyperBOError: a build failed.
    """
    for reference in dict.fromkeys(part.dataset for part in division.parts):
        if find_here(reference, data) is not None:
            continue
        if not is_made_here(reference):
            raise _not_here(reference, division, data)
        say(f"dataset {reference}: building")
        if reference == SYNTHETIC:
            build_synthetic(data)
        else:
            dataset, _, version = reference.partition(":")
            build(dataset, version, data_dir=data)


def check_data(part: Part, division: Division, data: Path) -> None:
    """Check that the version of a part is there, undamaged, and the one that the protocol names.

    Raises:
      NotAvailableError: it is not there; the message says how to get it.
      VersionConflictError: it has other contents than the protocol names, or is damaged.
    """
    if find_here(part.dataset, data) is None:
        raise _not_here(part.dataset, division, data)
    verify(part.dataset, data)
    folder = find(part.dataset, data).folder
    found = read_manifest(folder).content_hash
    if found != part.content_hash:
        raise VersionConflictError(
            f"{folder}: the content hash is {found[:12]}, and the protocol names {part.content_hash[:12]}; "
            "move this version away, and build or pull it again"
        )


def is_made_here(reference: str) -> bool:
    """Whether a version can be made without files of the user, and without a network."""
    dataset, _, version = reference.partition(":")
    return reference == SYNTHETIC or shipped_raw(dataset, version) is not None


def _not_here(reference: str, division: Division, data: Path) -> NotAvailableError:
    name, _, config = reference.partition(":")[0].partition("/")
    if is_made_here(reference):
        how = f"hyperbo arena data {division.name} --data {data}"
    else:
        if name == "trials":
            shipped = Path(__file__).parent / f"{config}.toml"
            space = shlex.quote(str(shipped)) if shipped.is_file() else f"{config}.toml"
            made = f"add {config} FILES --space {space}"
        else:
            made = f"build {reference} --raw FOLDER"
        how = f"hyperbo data {made} --data {data}"
    return NotAvailableError(
        f"{reference} is not in {data}; give the folder that holds it by --data, or make it: {how}"
    )
