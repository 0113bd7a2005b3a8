"""Methods that learn all tasks in one model: MIMO and RFGP."""

from hyperbo.methods.multi_task.mimo import MIMO
from hyperbo.methods.multi_task.model import MultiTaskTraining, Surrogate
from hyperbo.methods.multi_task.rfgp import RFGP

__all__ = ["MIMO", "RFGP", "MultiTaskTraining", "Surrogate"]
