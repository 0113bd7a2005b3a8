"""Changes of a catalogue of priors: a prior is added, put in service, held back, or rolled back.

`hyperbo.priors.names` says how a catalogue is laid out. A prior is added by one rename and never changes. All
that can change is `current.json`, which is replaced as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from hyperbo.priors.file import PRIOR_FILES, read_prior
from hyperbo.priors.history import Action, Line, decide, served, to_json
from hyperbo.priors.names import CURRENT_NAME, content_id, entry, known_line, line_folder, read_line
from hyperbo.storage.atomic import write_atomically
from hyperbo.storage.staging import lock, publish, stage


def add_prior(catalog: str | os.PathLike[str], line: str, folder: str | os.PathLike[str]) -> str:
    """Add a prior to a line as a candidate. Adding it again changes nothing.

    Args:
      catalog: the catalogue's folder; it is created if it is missing.
      line: the line that the prior is for.
      folder: of the prior, from `hyperbo.priors.file.save_prior`; it is copied.

    Returns:
      The prior's identifier: 16 hexadecimal digits of the SHA-256 of its content.

    Raises:
      InvalidInputError: the line is malformed, the catalogue cannot be written, or the prior cannot be read.
      NotAvailableError: the folder holds no complete prior.
      VersionConflictError: the prior has another format or another architecture than it describes.
    """
    home = line_folder(catalog, line)
    read_prior(folder)
    contents = [(Path(folder) / name).read_bytes() for name in PRIOR_FILES]
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
    catalog: str | os.PathLike[str],
    line: str,
    prior_id: str,
    reason: str,
    evidence: Mapping[str, Any],
    *,
    since: Line | None = None,
) -> bool:
    """Put a prior in service.

    A decision on the same prior with the same evidence is recorded once. So a flow that was killed and is
    started again decides nothing twice.

    Args:
      catalog: the catalogue's folder.
      line: the line.
      prior_id: what `add_prior` returned.
      reason: a sentence for a reader.
      evidence: plain JSON values, such as
        `hyperbo.evaluation.measures.promotion.PromotionDecision.evidence()`.
      since: the line on which the decision rests; None: the line as it is now.

    Returns:
      Whether this call recorded the decision; False where it was recorded before.

    Raises:
      InvalidInputError: the line is malformed, the evidence is no plain JSON, or a file is damaged or cannot
        be written.
      NotAvailableError: there is no such line, or the line has no such prior.
      VersionConflictError: `current.json` has another format, or another prior is in service than in `since`.
    """
    return _record(catalog, line, prior_id, "promoted", reason, evidence, since)


def hold_back(
    catalog: str | os.PathLike[str],
    line: str,
    prior_id: str,
    reason: str,
    evidence: Mapping[str, Any],
    *,
    since: Line | None = None,
) -> bool:
    """Record that a prior is not put in service. The current one stays; otherwise like `promote`."""
    return _record(catalog, line, prior_id, "held_back", reason, evidence, since)


def roll_back(catalog: str | os.PathLike[str], line: str, reason: str = "") -> str:
    """Put the previous prior back in service; a second roll-back goes one prior further back.

    Args:
      catalog: the catalogue's folder.
      line: the line.
      reason: a sentence for a reader; by default it names the prior that is back.

    Returns:
      Identifier of the prior that is now in service.

    Raises:
      InvalidInputError: the line is malformed, or a file is damaged or cannot be written.
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


def _record(
    catalog: str | os.PathLike[str],
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
                f"{line}: prior {found.current} came into service after this was decided; decide again"
            )
        write_atomically(folder / CURRENT_NAME, to_json(found.after(decision)))
    return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a line, for milliseconds."""
    try:
        with lock(folder / CURRENT_NAME, lambda: None):
            yield
    except OSError as error:
        raise InvalidInputError(
            f"cannot be written: {error}",
            where=str(folder),
            fix="free disk space, or ask for the right to write there",
        ) from error
