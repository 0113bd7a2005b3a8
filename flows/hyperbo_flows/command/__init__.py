"""Tuning a user's own command, with a pre-trained prior; needs Optuna."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from hyperbo_flows.command.template import CommandTuning
    from hyperbo_flows.command.tune import tune_command

__all__ = ["CommandTuning", "tune_command"]
# Imported when they are used: the display of trials needs no Optuna.
__getattr__, __dir__, _ = lazy_loader.attach(
    __name__, submod_attrs={"template": ["CommandTuning"], "tune": ["tune_command"]}
)
