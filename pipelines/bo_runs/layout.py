"""The columns of the records of Bayesian-optimization runs."""

from __future__ import annotations

from hyperbo.search_space import SearchSpace
from pipelines.columns import Column, Layout

SPLIT = "runs"
ORIGIN = "bo_run"
# The metric that `y` is warped from; under which name the dataset observed has it is the manifest's to say.
OBJECTIVE = "objective"
_EXTRA = (
    Column("method", "text", "method that chose the input"),
    Column("seed", "integer", "seed of the run"),
    Column("iteration", "integer", "iteration of the run, from 1"),
    Column("observed_trial", "text", "trial_id, in the dataset observed, of the trial that was looked up"),
    Column("prior", "text", "id of the pre-trained prior behind the run; empty: none, or not recorded"),
    Column("dataset", "text", "dataset and version observed, <name>/<config>:<version>"),
    Column("evaluation", "text", "id of the evaluation that the run belongs to"),
)


def bo_runs_layout(space: SearchSpace) -> Layout:
    """What the records of runs on a search space consist of."""
    return Layout(space, metrics=(OBJECTIVE, "regret", "y_max"), extra=_EXTRA)
