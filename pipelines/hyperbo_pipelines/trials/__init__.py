"""Files of anyone's trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from hyperbo_pipelines.trials.description import TrialsDescription
    from hyperbo_pipelines.trials.parse import ParseTrialFiles
    from hyperbo_pipelines.trials.rows import find_trial_files
    from hyperbo_pipelines.trials.space_file import read_space_file

__all__ = [
    "ParseTrialFiles",
    "TrialsDescription",
    "find_trial_files",
    "read_space_file",
]
# Imported when they are used: they need the extra `build`.
__getattr__, __dir__ = attach(
    __name__,
    {
        "description": ["TrialsDescription"],
        "parse": ["ParseTrialFiles"],
        "rows": ["find_trial_files"],
        "space_file": ["read_space_file"],
    },
)
