"""Online Bayesian optimization: tuning over the whole search space, with infeasible trials and refits."""

from hyperbo.online.journal import Journal, OnlineTrial, RunName
from hyperbo.online.maximisation import Maximisation
from hyperbo.online.methods import ARCHITECTURE, ONLINE_METHODS, RandomSearch, Retrained, SingleTask
from hyperbo.online.propose import History, Proposals, propose
from hyperbo.online.protocol import Observations, OnlineMethod, Proposal, capacity_for, observations_of
from hyperbo.online.runs import Evaluation, Objective, OnlineRun, tune

__all__ = [
    "ARCHITECTURE",
    "ONLINE_METHODS",
    "Evaluation",
    "History",
    "Journal",
    "Maximisation",
    "Objective",
    "Observations",
    "OnlineMethod",
    "OnlineRun",
    "OnlineTrial",
    "Proposal",
    "Proposals",
    "RandomSearch",
    "Retrained",
    "RunName",
    "SingleTask",
    "capacity_for",
    "observations_of",
    "propose",
    "tune",
]
