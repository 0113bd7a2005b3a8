"""Tuning a user's own command, with a pre-trained prior; needs Optuna."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from hyperbo_flows.command.template import CommandTuning
    from hyperbo_flows.command.tune import tune_command

__all__ = ["CommandTuning", "tune_command"]
# Imported when they are used: the display of trials needs no Optuna.
__getattr__, __dir__ = attach(__name__, {"template": ["CommandTuning"], "tune": ["tune_command"]})
