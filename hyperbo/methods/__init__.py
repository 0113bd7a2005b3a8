"""The compared methods, one file each, by the names the paper gives them."""

from __future__ import annotations

from hyperbo.methods.gp_policy import GPPolicy
from hyperbo.methods.h_ekl import HEKL
from hyperbo.methods.h_nll import HNLL
from hyperbo.methods.rand import Rand
from hyperbo.methods.stbo import STBO

# Methods with a pre-trained prior: `pretrain(jobs)` gives priors, `GPPolicy(prior)` optimizes with one.
PRETRAINED = {"H-NLL": HNLL, "H-EKL": HEKL}
# Methods that see the test task alone: `policy(dimension, seed)`.
SINGLE_TASK = {"STBO": STBO, "Rand": Rand}

__all__ = ["HEKL", "HNLL", "PRETRAINED", "SINGLE_TASK", "STBO", "GPPolicy", "Rand"]
