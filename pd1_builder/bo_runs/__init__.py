"""Runs of Bayesian optimization: what evaluations observed. The card is README.md."""
