"""The pages of a catalogue: HTML that loads nothing, made from what is published."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.filesize import decimal

from hyperbo.errors import NotAvailableError
from hyperbo.trial import STATUSES
from pd1_builder.diff import Changes
from pd1_builder.distribution.index import Entry
from pd1_builder.manifest import Manifest
from pd1_builder.site.code_lines import code_lines
from pd1_builder.site.lineage import Step, draw
from pd1_builder.site.lineage_boxes import Drawing
from pd1_builder.site.trained_priors import TrainedPrior, trained_on

try:
    import jinja2
    from markupsafe import Markup

    from hyperbo.evaluation.report import page_environment
    from pd1_builder.site.card_page import card_html
except ModuleNotFoundError as error:
    raise NotAvailableError(
        f"the catalogue's pages need {error.name}; pip install 'hyperbo[report]'"
    ) from error

_HERE = Path(__file__).parent
PAGES = "catalogue"
# By it the pages are known: no other is overwritten.
GENERATOR = "hyperbo data catalogue"
# From a version's page to the folder of index.html.
TO_ROOT = "../../../"


@dataclass(frozen=True)
class Release:
    """A published version, with what its page is made from.

    Attributes:
      entry: of the index.
      changes: since its parent; None where they are not known.
      manifest: of the version.
      card: Markdown; empty where the version has none.
      is_signed: whether a signature of the manifest lies beside it.
    """

    entry: Entry
    changes: Changes | None
    manifest: Manifest
    card: str
    is_signed: bool

    @property
    def page(self) -> str:
        """Its page, relative to index.html."""
        return f"{PAGES}/{self.entry.folder}.html"

    @property
    def trials(self) -> int:
        """Number of its records."""
        return sum(map(self.manifest.rows, self.manifest.counts))


@dataclass(frozen=True)
class Catalogue:
    """Everything that the pages show.

    Attributes:
      releases: sorted by dataset, then by version.
      priors: of all catalogues of priors, whatever they were trained on.
      address: of the place, as readers are to type it.
      files: what a link to a file begins with, before the version's folder; None for no links.
    """

    releases: tuple[Release, ...]
    priors: tuple[TrainedPrior, ...]
    address: str
    files: str | None

    @property
    def datasets(self) -> dict[str, tuple[Release, ...]]:
        """The versions by dataset, the oldest first."""
        by_dataset = groupby(self.releases, key=lambda release: release.entry.dataset)
        return {dataset: tuple(releases) for dataset, releases in by_dataset}


def render_index(catalogue: Catalogue) -> str:
    """The page with all datasets and their versions; the same catalogue gives the same page."""
    datasets = [
        {
            "name": dataset,
            "id": dataset.replace("/", "-"),
            "newest": releases[-1],
            "releases": releases[::-1],
            "lineage": draw([_step(each, catalogue, "") for each in releases]),
        }
        for dataset, releases in catalogue.datasets.items()
    ]
    return (
        _environment().get_template("index.html").render(catalogue=catalogue, datasets=datasets, to_root="")
    )


def render_version(release: Release, catalogue: Catalogue) -> str:
    """The page of a version; the same catalogue gives the same page."""
    entry, manifest = release.entry, release.manifest
    siblings = catalogue.datasets[entry.dataset]
    priors, others = trained_on(catalogue.priors, entry.reference, manifest.content_hash)
    return (
        _environment()
        .get_template("version.html")
        .render(
            catalogue=catalogue,
            release=release,
            entry=entry,
            manifest=manifest,
            to_root=TO_ROOT,
            newest=siblings[-1],
            parent=next((each for each in siblings if each.entry.version == entry.parent), None),
            code_lines=code_lines(entry, manifest, catalogue.address),
            statuses=_statuses(manifest),
            splits=_splits(manifest),
            tasks=_tasks(manifest),
            lineage=_lineage_of(release, siblings, catalogue),
            priors=priors,
            other_priors=others,
            card=Markup(card_html(release.card)),
        )
    )


@cache
def _environment() -> jinja2.Environment:
    base = page_environment()
    assert base.loader is not None
    environment = base.overlay(
        loader=jinja2.ChoiceLoader([jinja2.FileSystemLoader(_HERE), base.loader]), finalize=_visible
    )
    environment.filters.update(size=decimal, path=quote, count=_count)
    style, script = (
        Markup("".join(environment.get_template(name).render() for name in names))
        for names in (("report.css", "site.css"), ("site.js",))
    )
    environment.globals.update(
        generator=GENERATOR,
        style=style,
        script=script,
        style_hash=_policy_hash(style),
        script_hash=_policy_hash(script),
    )
    return environment


def _count(quantity: int, noun: str) -> str:
    return f"{quantity:,} {noun}{'' if quantity == 1 else 's'}"


def _visible(value: Any) -> Any:
    """Of a name that holds what cannot be seen, such as a change of direction, an escaped form."""
    if isinstance(value, str) and not isinstance(value, Markup) and not value.isprintable():
        return json.dumps(value)
    return value


def _policy_hash(content: str) -> str:
    """What a Content-Security-Policy allows this content by."""
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _step(release: Release, catalogue: Catalogue, to_root: str, *, is_current: bool = False) -> Step:
    entry = release.entry
    priors, _ = trained_on(catalogue.priors, entry.reference, release.manifest.content_hash)
    return Step(
        version=entry.version,
        parent=entry.parent,
        facts=(
            f"{_count(release.trials, 'trial')}, {_count(entry.tasks, 'task')}",
            f"published {entry.published[:10]}",
        ),
        link=f"{to_root}{release.page}",
        raw_files=release.manifest.raw_files,
        priors=tuple(prior.name for prior in priors),
        is_current=is_current,
    )


def _lineage_of(release: Release, siblings: Sequence[Release], catalogue: Catalogue) -> Drawing:
    """The version between its parent and those that follow it."""
    entry = release.entry
    near = [
        each
        for each in siblings
        if each is release or each.entry.version == entry.parent or each.entry.parent == entry.version
    ]
    return draw([_step(each, catalogue, TO_ROOT, is_current=each is release) for each in near])


def _statuses(manifest: Manifest) -> tuple[str, ...]:
    found = {status for tasks in manifest.counts.values() for counts in tasks.values() for status in counts}
    return (*(s for s in STATUSES if s in found), *sorted(found.difference(STATUSES)))


def _splits(manifest: Manifest) -> list[tuple[str, int, Counter[str]]]:
    """Of each split the number of tasks, and of records by status."""
    return [
        (split, len(tasks), sum(map(Counter, tasks.values()), Counter()))
        for split, tasks in manifest.counts.items()
    ]


def _tasks(manifest: Manifest) -> list[tuple[str, list[int]]]:
    """Of each task the number of records by split."""
    names = sorted({task for tasks in manifest.counts.values() for task in tasks})
    return [
        (name, [sum(tasks.get(name, {}).values()) for tasks in manifest.counts.values()]) for name in names
    ]
