"""How the numbers are computed: pytrees, batches over devices, minimisers, and checkpoints."""

from hyperbo.compute.checkpoints import CheckpointFolder
from hyperbo.compute.optimizers import minimise_lbfgs
from hyperbo.compute.parallel import batched, pad_batch
from hyperbo.compute.pytree import pytree

__all__ = ["CheckpointFolder", "batched", "minimise_lbfgs", "pad_batch", "pytree"]
