"""Runs of Bayesian optimization as records: what the runs of evaluations observed."""

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach
from hyperbo_pipelines.bo_runs.evaluation import EvaluationFiles, bo_runs_layout, find_evaluation_files

if TYPE_CHECKING:
    from hyperbo_pipelines.bo_runs.parse import ObservedVersion, ParseBoRuns

__all__ = ["EvaluationFiles", "ObservedVersion", "ParseBoRuns", "bo_runs_layout", "find_evaluation_files"]
# Imported when they are used: they need Beam.
__getattr__, __dir__ = attach(__name__, {"parse": ["ObservedVersion", "ParseBoRuns"]})
