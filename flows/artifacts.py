"""Artifacts that the flows leave on the page of a run: their keys, and how far a long step is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from flows.progress import progress_line, say

# A server is told no more often; a step that is over sooner shows nothing.
_SECONDS_BETWEEN_UPDATES = 5.0


def artifact_key(*parts: str) -> str:
    """Key of an artifact: small letters, digits and dashes, as Prefect wants it.

    >>> artifact_key("report", "pd1/mini", "1.0.0")
    'report-pd1-mini-1-0-0'
    """
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")


@contextmanager
def shown_progress(label: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show how far a step is by `flows.progress.progress_line`, and in a task of Prefect by an artifact too.

    A server that cannot be told ends the artifact, and not the step.

    Args:
      label: the step.
      unit: what is counted.

    Yields:
      A callback for units done and in all.
    """
    from prefect.context import TaskRunContext

    with progress_line(label, unit) as line:
        if TaskRunContext.get() is None:
            yield line
            return
        artifact = _ProgressArtifact(label, unit)

        def report(done: int, total: int) -> None:
            line(done, total)
            artifact.report(done, total)

        yield report
        artifact.finish()


class _ProgressArtifact:
    """A progress artifact that is made once a step has taken some seconds, and updated some seconds apart."""

    def __init__(self, label: str, unit: str) -> None:
        self._label, self._unit = label, unit
        self._told = monotonic()
        self._id: Any = None
        self._reached = True

    def report(self, done: int, total: int) -> None:
        now = monotonic()
        if total and now - self._told >= _SECONDS_BETWEEN_UPDATES:
            self._told = now
            self._tell(100.0 * done / total, f"{self._label}: {done} of {total} {self._unit}")

    def finish(self) -> None:
        if self._id is not None:
            self._tell(100.0, f"{self._label}: done")

    def _tell(self, percent: float, description: str) -> None:
        from prefect.artifacts import create_progress_artifact, update_progress_artifact

        if not self._reached:
            return
        try:
            if self._id is None:
                key = artifact_key("progress", self._label)
                self._id = create_progress_artifact(percent, key=key, description=description)
            else:
                update_progress_artifact(self._id, percent, description=description)
        except Exception as error:  # Whatever a server, or the way to it, can do.
            self._reached = False
            say(f"{self._label}: its progress is not shown any more: {type(error).__name__}: {error}")
