"""Runs of Bayesian optimization: what evaluations observed, as records."""
