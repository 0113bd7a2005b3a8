"""Experiments: which methods are compared on what, the steps that compare them, and the ledger of their runs.

The steps are functions of modules of the same name: `pretrain`, `evaluate`, `retrain`.
"""

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from hyperbo_flows.experiments.arms import arms_by_name
    from hyperbo_flows.experiments.experiment import Arm, Experiment
    from hyperbo_flows.experiments.experiment_file import read_experiment
    from hyperbo_flows.experiments.plan import Plan, make_plan
    from hyperbo_flows.experiments.work import Runner

__all__ = ["Arm", "Experiment", "Plan", "Runner", "arms_by_name", "make_plan", "read_experiment"]
# Imported when they are used: they need JAX, and the command line imports this package without it.
__getattr__, __dir__ = attach(
    __name__,
    {
        "arms": ["arms_by_name"],
        "experiment": ["Arm", "Experiment"],
        "experiment_file": ["read_experiment"],
        "plan": ["Plan", "make_plan"],
        "work": ["Runner"],
    },
)
