"""The compared methods, one file each, by the names the paper gives them."""

from __future__ import annotations

from hyperbo.methods.ablr import ABLR
from hyperbo.methods.decision import Decision
from hyperbo.methods.fsbo import FSBO
from hyperbo.methods.gp_policy import GPPolicy, PretrainedGP
from hyperbo.methods.h_ekl import HEKL
from hyperbo.methods.h_nll import HNLL
from hyperbo.methods.h_sum import HSum
from hyperbo.methods.maf import MAF
from hyperbo.methods.mimo import MIMO
from hyperbo.methods.pretrained import PretrainedMethod, prior_in_use
from hyperbo.methods.protocol import Method, Policy, Scores
from hyperbo.methods.rand import Rand
from hyperbo.methods.rfgp import RFGP
from hyperbo.methods.stbo import STBO
from hyperbo.methods.stboh import STBOH

# The settings of each method by its name in the paper; called without arguments, they are the paper's. The
# name H-Sum is ours, for the objective of the paper's online experiments, EKL + 0.1 NLL.
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
}

__all__ = [
    "ABLR",
    "FSBO",
    "HEKL",
    "HNLL",
    "MAF",
    "METHODS",
    "MIMO",
    "RFGP",
    "STBO",
    "STBOH",
    "Decision",
    "GPPolicy",
    "HSum",
    "Method",
    "Policy",
    "PretrainedGP",
    "PretrainedMethod",
    "Rand",
    "Scores",
    "prior_in_use",
]
