"""Files of anyone's trials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.trials.description import TrialsDescription
from pipelines.trials.rows import find_trial_files
from pipelines.trials.space_file import read_space_file

if TYPE_CHECKING:
    from pipelines.trials.parse import ParseTrialFiles

__all__ = [
    "ParseTrialFiles",
    "TrialsDescription",
    "find_trial_files",
    "read_space_file",
]


def __getattr__(name: str) -> Any:
    if name == "ParseTrialFiles":
        # Beam takes long to import.
        from pipelines.trials.parse import ParseTrialFiles

        return ParseTrialFiles
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
