"""Bayesian optimization: offline on recorded trials, online with new trials."""

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from hyperbo.bayesopt.history import History
    from hyperbo.bayesopt.journal import Journal, OnlineTrial, RunName
    from hyperbo.bayesopt.offline import Run, Simulation, run_records, simulate
    from hyperbo.bayesopt.online import OnlineRun, TrialResults, TunedTask, online_records, tune
    from hyperbo.bayesopt.online_methods import ONLINE_METHODS, RandomSearch, Retrained, SingleTask
    from hyperbo.bayesopt.propose import Maximisation, OnlineMethod, Proposal

__all__ = [
    "ONLINE_METHODS",
    "History",
    "Journal",
    "Maximisation",
    "OnlineMethod",
    "OnlineRun",
    "OnlineTrial",
    "Proposal",
    "RandomSearch",
    "Retrained",
    "Run",
    "RunName",
    "Simulation",
    "SingleTask",
    "TrialResults",
    "TunedTask",
    "online_records",
    "run_records",
    "simulate",
    "tune",
]
# Imported when they are used: a simulation of recorded trials needs no online methods.
__getattr__, __dir__ = attach(
    __name__,
    {
        "history": ["History"],
        "journal": ["Journal", "OnlineTrial", "RunName"],
        "offline": ["Run", "Simulation", "run_records", "simulate"],
        "online": ["OnlineRun", "TrialResults", "TunedTask", "online_records", "tune"],
        "online_methods": ["ONLINE_METHODS", "RandomSearch", "Retrained", "SingleTask"],
        "propose": ["Maximisation", "OnlineMethod", "Proposal"],
    },
)
