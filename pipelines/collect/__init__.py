"""Tuning trials run for real: tasks, models, trainer, sweep."""
