"""A folder of priors in service: every prior that was ever a candidate, and which of them to use now.

    <catalogue>/<line>/<prior id>/{prior.safetensors, prior.json}
    <catalogue>/<line>/current.json

A line, such as `pd1-mini/h-nll`, is one job that priors are promoted for. An entry is named by its content,
appears by one rename and never changes. All that can change is `current.json`: the prior in service and the
decisions that led there, one file that is replaced as a whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from hyperbo.files import user_folder, write_atomically
from hyperbo.prior import Prior, load_prior
from hyperbo.prior_entries import (
    CURRENT_NAME,
    PRIOR_FILES,
    content_id,
    entry,
    known_line,
    line_folder,
    lines,
    listed,
    prior_ids,
)
from hyperbo.prior_history import Action, Line, decide, from_json, served, to_json
from hyperbo.staging import lock, publish, stage

__all__ = [
    "Line",
    "add_prior",
    "default_prior_dir",
    "find_prior",
    "hold_back",
    "lines",
    "load_current",
    "promote",
    "read_line",
    "roll_back",
]

_PREFIX = re.compile(r"[0-9a-f]{1,16}")


def default_prior_dir() -> Path:
    """Where priors are kept: `$HYPERBO_PRIOR_DIR`, else `hyperbo/priors` in the user's data folder."""
    if folder := os.environ.get("HYPERBO_PRIOR_DIR"):
        return Path(folder)
    return user_folder() / "priors"


def add_prior(catalog: Path, line: str, folder: Path) -> str:
    """Add a prior to a line as a candidate; adding it again changes nothing.

    Args:
      catalog: the catalogue's folder; it is made where it is missing.
      line: the line that the prior is for.
      folder: what `hyperbo.prior.save_prior` wrote; it is copied.

    Returns:
      The prior's identifier: 16 hexadecimal digits of the SHA-256 of its content.

    Raises:
      InvalidInputError: the line is no name, the catalogue cannot be written, or as `load_prior`.
      NotAvailableError: the folder holds no complete prior.
      VersionConflictError: as `load_prior`.
    """
    home = line_folder(catalog, line)
    load_prior(folder)
    contents = [(folder / name).read_bytes() for name in PRIOR_FILES]
    prior_id = content_id(contents)
    target = home / prior_id
    with _locked(home), stage(target) as staging:
        if not target.exists():
            for name, content in zip(PRIOR_FILES, contents, strict=True):
                write_atomically(staging / "prior" / name, content)
            publish(staging / "prior", target)
        entry(home, prior_id)
    return prior_id


def promote(
    catalog: Path,
    line: str,
    prior_id: str,
    reason: str,
    evidence: Mapping[str, Any],
    *,
    since: Line | None = None,
) -> bool:
    """Put a prior in service.

    A decision that the history holds already, on the same prior with the same evidence, is not made again:
    a flow that was killed and is started again decides nothing twice.

    Args:
      catalog: the catalogue's folder.
      line: the line.
      prior_id: what `add_prior` returned.
      reason: a sentence for a reader.
      evidence: plain JSON values, such as `hyperbo.evaluation.promotion.Promotion.evidence()`.
      since: the line as it was when the decision was taken; None: whatever it is now.

    Returns:
      Whether this call made the decision; False where it had been made.

    Raises:
      InvalidInputError: the line is no name, the evidence not plain JSON, or a file damaged or not writable.
      NotAvailableError: there is no such line, or no such prior in it.
      VersionConflictError: `current.json` has another format, or another prior is in service than was.
    """
    return _record(catalog, line, prior_id, "promoted", reason, evidence, since)


def hold_back(
    catalog: Path,
    line: str,
    prior_id: str,
    reason: str,
    evidence: Mapping[str, Any],
    *,
    since: Line | None = None,
) -> bool:
    """Record that a prior is not put in service; the one that is stays. Otherwise as `promote`."""
    return _record(catalog, line, prior_id, "held_back", reason, evidence, since)


def roll_back(catalog: Path, line: str, reason: str = "") -> str:
    """Put the prior back in service that was there before the current one; done again, the one before that.

    Args:
      catalog: the catalogue's folder.
      line: the line.
      reason: a sentence for a reader; by default it says which prior is back.

    Returns:
      Identifier of the prior that is in service now.

    Raises:
      InvalidInputError: the line is no name, or a file damaged or not writable.
      NotAvailableError: there is no such line, or no prior was in service before the current one.
      VersionConflictError: `current.json` has another format.
    """
    folder = known_line(catalog, line)
    with _locked(folder):
        found = read_line(catalog, line)
        priors = served(found.history)
        if len(priors) < 2:
            now = f"{priors[0]} is the first in service" if priors else "none was ever promoted"
            raise NotAvailableError(f"{line}: there is no prior to roll back to; {now}")
        previous, current = priors[-2:]
        entry(folder, previous)
        decision = decide(current, "rolled_back", reason or f"Back to {previous}.", {"back_to": previous})
        write_atomically(folder / CURRENT_NAME, to_json(found.after(decision)))
    return previous


def read_line(catalog: Path, line: str) -> Line:
    """Which prior of a line is in service, and the decisions so far.

    Raises:
      InvalidInputError: the line is no name, or `current.json` cannot be read or is damaged.
      NotAvailableError: there is no such line; the message lists those there are.
      VersionConflictError: `current.json` has another format.
    """
    path = known_line(catalog, line) / CURRENT_NAME
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Line(line)
    except OSError as error:
        raise InvalidInputError(f"cannot be read: {error}", where=str(path)) from error
    return from_json(line, content, where=str(path))


def find_prior(catalog: Path, reference: str) -> Path:
    """Find the folder of a prior.

    Args:
      catalog: the catalogue's folder.
      reference: `<line>` for the prior in service, or `<line>@<first digits of an identifier>`.

    Raises:
      InvalidInputError: the reference is malformed or fits several priors, or a file is damaged.
      NotAvailableError: there is no such line or prior, or none is in service.
      VersionConflictError: `current.json` has another format.
    """
    line, at, prefix = reference.partition("@")
    folder = known_line(catalog, line)
    if not at:
        current = read_line(catalog, line).current
        if current is None:
            raise NotAvailableError(
                f"{line}: no prior is in service; name one of those there as {line}@<identifier>: "
                + listed(prior_ids(folder))
            )
        return entry(folder, current)
    if not _PREFIX.fullmatch(prefix):
        raise InvalidInputError(f"prior {reference!r}", fix="write 1 to 16 hexadecimal digits after the @")
    fitting = [each for each in prior_ids(folder) if each.startswith(prefix)]
    if len(fitting) > 1:
        raise InvalidInputError(
            f"{reference} fits several priors: {listed(fitting)}", fix="give more digits of one"
        )
    return entry(folder, fitting[0] if fitting else prefix)


def load_current(catalog: Path, line: str) -> Prior:
    """Load the prior of a line that is in service.

    Raises:
      HyperBOError: as `find_prior` and `hyperbo.prior.load_prior`.
    """
    return load_prior(find_prior(catalog, line))


def _record(
    catalog: Path,
    line: str,
    prior_id: str,
    action: Action,
    reason: str,
    evidence: Mapping[str, Any],
    since: Line | None,
) -> bool:
    folder = known_line(catalog, line)
    with _locked(folder):
        found = read_line(catalog, line)
        entry(folder, prior_id)
        decision = decide(prior_id, action, reason, evidence)
        if any(map(decision.repeats, found.history)):
            return False
        if since is not None and found.current != since.current:
            raise VersionConflictError(
                f"{line}: {found.current} is in service, and was not when this was decided; decide again"
            )
        write_atomically(folder / CURRENT_NAME, to_json(found.after(decision)))
    return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the right to change a line; it is held for milliseconds."""
    try:
        with lock(folder / CURRENT_NAME, lambda: None):
            yield
    except OSError as error:
        raise InvalidInputError(
            f"cannot be written: {error}",
            where=str(folder),
            fix="make room there, or ask for the right to write",
        ) from error
