"""Trials: anyone's own tuning trials, read by a space file. The card is README.md."""
