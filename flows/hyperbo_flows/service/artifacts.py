"""Artifacts that the flows leave on the page of a run: their keys, and the progress of a long step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from hyperbo_flows.process.progress import progress_line, say

# The server is told no more often, and nothing of a step that ends sooner.
_SECONDS_BETWEEN_UPDATES = 5.0


def artifact_key(*parts: str) -> str:
    """The key of an artifact: small letters, digits and dashes, as Prefect wants it.

    >>> artifact_key("report", "pd1/mini", "1.0.0")
    'report-pd1-mini-1-0-0'
    """
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")


@contextmanager
def shown_progress(label: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show how far a step of a flow is: by a line of progress, and by an artifact.

    Where the server cannot be told, the artifact ends and the step goes on.

    Args:
      label: the step.
      unit: what is counted.

    Yields:
      A callback for units done and in all.
    """
    from prefect.artifacts import create_progress_artifact, update_progress_artifact

    told = monotonic()
    artifact: Any = None
    reached = True

    def tell(percent: float, description: str) -> None:
        nonlocal artifact, reached
        try:
            if artifact is None:
                key = artifact_key("progress", label)
                artifact = create_progress_artifact(percent, key=key, description=description)
            else:
                update_progress_artifact(artifact, percent, description=description)
        except Exception as error:  # A server, and the network, fail in many ways.
            reached = False
            say(f"{label}: its progress is not shown any more: {type(error).__name__}: {error}")

    def report(done: int, total: int) -> None:
        nonlocal told
        line(done, total)
        now = monotonic()
        if reached and total and now - told >= _SECONDS_BETWEEN_UPDATES:
            told = now
            tell(100.0 * done / total, f"{label}: {done} of {total} {unit}")

    with progress_line(label, unit) as line:
        yield report
        if reached and artifact is not None:
            tell(100.0, f"{label}: done")
