"""Figures of evaluations and priors, as SVG."""
