"""Priors of catalogues, and which of them were trained on a version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hyperbo.errors import NotAvailableError
from hyperbo.prior import load_prior
from hyperbo.prior_catalog import lines, read_line
from hyperbo.prior_entries import entry, known_line, prior_ids


class TrainedPrior(NamedTuple):
    """A prior of a catalogue.

    Attributes:
      name: what it is loaded by, `<line>@<identifier>`.
      is_in_service: whether its line alone names it.
      method: that trained it.
      dataset: the version that it says it was trained on.
      content_hash: that this version had.
    """

    name: str
    is_in_service: bool
    method: str
    dataset: str
    content_hash: str


def read_priors(catalogs: Iterable[Path]) -> tuple[TrainedPrior, ...]:
    """All priors of catalogues by name, those in service first; what several catalogues have, once.

    Raises:
      NotAvailableError: there is no such folder.
      InvalidInputError, VersionConflictError: a prior is damaged, or has another format.
    """
    found: dict[str, TrainedPrior] = {}
    for catalog in catalogs:
        if not catalog.is_dir():
            raise NotAvailableError(f"{catalog} is no folder of priors; name one that there is")
        for line in lines(catalog):
            for prior in _priors_of_line(catalog, line):
                found.setdefault(prior.name, prior)
    return tuple(sorted(found.values(), key=lambda prior: (not prior.is_in_service, prior.name)))


def trained_on(
    priors: Sequence[TrainedPrior], reference: str, content_hash: str
) -> tuple[tuple[TrainedPrior, ...], tuple[TrainedPrior, ...]]:
    """The priors trained on a version, and those that name it but were trained on other records.

    Args:
      priors: to choose from.
      reference: `<name>/<config>:<version>`.
      content_hash: identity of its records.
    """
    naming = [prior for prior in priors if prior.dataset == reference]
    return (
        tuple(prior for prior in naming if prior.content_hash == content_hash),
        tuple(prior for prior in naming if prior.content_hash != content_hash),
    )


def _priors_of_line(catalog: Path, line: str) -> Iterator[TrainedPrior]:
    folder, current = known_line(catalog, line), read_line(catalog, line).current
    for prior_id in prior_ids(folder):
        of = load_prior(entry(folder, prior_id)).description
        yield TrainedPrior(f"{line}@{prior_id}", prior_id == current, of.method, of.dataset, of.manifest_hash)
