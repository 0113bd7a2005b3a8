"""Files of anyone's trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperbo.installation import attach
from hyperbo_pipelines.trials.description import TrialsDescription
from hyperbo_pipelines.trials.rows import find_trial_files
from hyperbo_pipelines.trials.space_file import read_space_file

if TYPE_CHECKING:
    from hyperbo_pipelines.trials.parse import ParseTrialFiles

__all__ = [
    "ParseTrialFiles",
    "TrialsDescription",
    "find_trial_files",
    "read_space_file",
]
# Imported when it is used: it needs Beam.
__getattr__, __dir__ = attach(__name__, {"parse": ["ParseTrialFiles"]})
