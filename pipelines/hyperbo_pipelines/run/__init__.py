"""Running pipelines: runners, worker processes, and worker processes that die."""

from __future__ import annotations

from hyperbo_pipelines.run.execution import Execution, RunningMode

__all__ = [
    "Execution",
    "RunningMode",
]
