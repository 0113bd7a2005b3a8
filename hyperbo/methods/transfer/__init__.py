"""Methods of other publications that transfer what the training tasks have shown to a test task."""

from hyperbo.methods.transfer.rgpe import RGPE

__all__ = ["RGPE"]
