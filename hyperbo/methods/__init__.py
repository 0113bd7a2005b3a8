"""The compared methods, one file each, by the names the paper gives them."""

from __future__ import annotations

from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.methods.additive import HAdd
from hyperbo.methods.baselines.best_average import BestAverage
from hyperbo.methods.baselines.box_rand import BoxRand
from hyperbo.methods.baselines.default_rand import DefaultRand
from hyperbo.methods.baselines.portfolio import Portfolio
from hyperbo.methods.baselines.table import Table
from hyperbo.methods.decision import AcquisitionDecision
from hyperbo.methods.maf.method import MAF
from hyperbo.methods.mixture.method import HMix, Mix
from hyperbo.methods.multi_task.mimo import MIMO
from hyperbo.methods.multi_task.rfgp import RFGP
from hyperbo.methods.pretrained import (
    ABLR,
    FSBO,
    HEKL,
    HNLL,
    GPPolicy,
    HSum,
    PretrainedGP,
    PretrainedMethod,
    prior_in_use,
)
from hyperbo.methods.protocol import Method, Policy, Scores
from hyperbo.methods.rand import Rand
from hyperbo.methods.single_task.stbo import STBO
from hyperbo.methods.single_task.stboh import STBOH
from hyperbo.methods.transfer.copula import CGP, CTS
from hyperbo.methods.transfer.egp import EGP
from hyperbo.methods.transfer.rgpe import RGPE
from hyperbo.methods.transfer.scaml_gp import ScaMLGP

# The settings of each method by its name in the paper; called without arguments, they are the paper's. The
# name H-Sum is ours, for the objective of the paper's online experiments, EKL + 0.1 NLL. The paper does not
# have the methods after it.
METHODS = {
    "H-NLL": HNLL,
    "H-EKL": HEKL,
    "FSBO": FSBO,
    "ABLR": ABLR,
    "MIMO": MIMO,
    "RFGP": RFGP,
    "MAF": MAF,
    "Rand": Rand,
    "STBO": STBO,
    "STBOH": STBOH,
    "H-Sum": HSum,
    "H-Mix": HMix,
    "Mix": Mix,
    "Best-average": BestAverage,
    "Portfolio": Portfolio,
    "Default-Rand": DefaultRand,
    "Box-Rand": BoxRand,
    "Table": Table,
    "RGPE": RGPE,
    "CTS": CTS,
    "CGP": CGP,
    "EGP": EGP,
    "ScaML-GP": ScaMLGP,
    "H-Add": HAdd,
}

__all__ = [
    "ABLR",
    "CGP",
    "CTS",
    "EGP",
    "FSBO",
    "HEKL",
    "HNLL",
    "MAF",
    "METHODS",
    "MIMO",
    "RFGP",
    "RGPE",
    "STBO",
    "STBOH",
    "AcquisitionDecision",
    "BestAverage",
    "BoxRand",
    "DefaultRand",
    "GPPolicy",
    "HAdd",
    "HMix",
    "HSum",
    "Method",
    "Mix",
    "Policy",
    "Portfolio",
    "PretrainedGP",
    "PretrainedMethod",
    "Rand",
    "ScaMLGP",
    "Scores",
    "Table",
    "Task",
    "prior_in_use",
    "pytree",
]
