"""The paper's settings of a method, where the project's defaults are others."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from typing import Any, Literal

from hyperbo.methods.decision import AcquisitionDecision
from hyperbo.methods.protocol import Method
from hyperbo.pretrain import NLLTraining

__all__ = ["SettingsName", "paper_settings"]

SettingsName = Literal["default", "paper"]


def paper_settings(method: Method) -> Method:
    """A method with the paper's training by NLL and the paper's threshold of PI; all else stays.

    Section 7.2 "Description of All Compared Methods". That a trial may be observed again, as in
    the paper, is no setting of a method.

    >>> from hyperbo.methods import HNLL
    >>> paper_settings(HNLL()).training.steps
    50000
    """
    assert is_dataclass(method)
    changes: dict[str, Any] = {}
    if isinstance(getattr(method, "training", None), NLLTraining):
        changes["training"] = NLLTraining.paper()
    decision = getattr(method, "decision", None)
    if isinstance(decision, AcquisitionDecision):
        changes["decision"] = replace(decision, threshold_unit="absolute")
    return replace(method, **changes)
