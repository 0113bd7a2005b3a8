"""Fit the universal prior to all histories, and write it as it ships."""

from __future__ import annotations

import argparse
from dataclasses import replace

from benchmarks.universal.compare import SOURCES
from benchmarks.universal.histories import collected, version
from hyperbo.methods.universal import fit_hyperprior, source_of
from hyperbo.methods.universal.file import write_hyperprior


def options(parser: argparse.ArgumentParser) -> None:
    """No more options."""


def run(given: argparse.Namespace) -> None:
    """Fit and write."""
    histories = {**collected(), **{name: version(name, given.data) for name in SOURCES}}
    sources = tuple(source_of(data) for data in histories.values())
    write_hyperprior(given.out, replace(fit_hyperprior(histories), sources=sources))
