"""Gaussian processes: priors from named parameters, their moments and posteriors, and stable numerics.

On plain arrays, in float64 whatever the default precision of JAX: `GaussianProcess.from_values` and `values`,
`prior_moments`, `posterior_moments`, `estimate_root`, `estimate_table`.

For compiled code, in the precision of JAX and of the arrays given: the other methods of `GaussianProcess`,
`Posterior`, `CandidatePosterior`, `TablePrior`, `variance_correction`; where JAX's default is float32, call
them under `double_precision`. What needs padded arrays is in `hyperbo.gp.posterior` and
`hyperbo.gp.numerics`.
"""

from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.gp.estimate import Estimator, estimate_root
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.gp.kernels import KERNELS
from hyperbo.gp.means import MEANS
from hyperbo.gp.moments import Moments, posterior_moments, prior_moments
from hyperbo.gp.numerics import double_precision
from hyperbo.gp.posterior import Posterior, variance_correction
from hyperbo.gp.table import TablePrior, estimate_table

__all__ = [
    "KERNELS",
    "MEANS",
    "Architecture",
    "CandidatePosterior",
    "Estimator",
    "GaussianProcess",
    "Moments",
    "Posterior",
    "TablePrior",
    "double_precision",
    "estimate_root",
    "estimate_table",
    "initialise",
    "posterior_moments",
    "prior_moments",
    "variance_correction",
]
