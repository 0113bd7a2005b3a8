"""Tuning a user's own command, with a pre-trained prior; needs Optuna."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flows.command.template import CommandTuning
    from flows.command.tune import tune_command

__all__ = ["CommandTuning", "tune_command"]


def __getattr__(name: str) -> Any:
    # Imported when it is used: the display of trials needs no Optuna.
    if name == "CommandTuning":
        from flows.command.template import CommandTuning

        return CommandTuning
    if name == "tune_command":
        from flows.command.tune import tune_command

        return tune_command
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
