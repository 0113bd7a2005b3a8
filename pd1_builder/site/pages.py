"""The pages of a catalogue, as HTML that loads nothing. No text of a place can run a script in them."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from rich.filesize import decimal

from hyperbo.data.trial import STATUSES
from hyperbo.evaluation.pages.report import page_environment
from pd1_builder.distribution.index import Entry
from pd1_builder.site.about import LINK, YAML_HEADER, about
from pd1_builder.site.catalogue import Catalogue, ListedVersion, trained_on
from pd1_builder.site.lineage import Step, draw
from pd1_builder.site.lineage_boxes import Drawing
from pd1_builder.version.manifest import Manifest

_HERE = Path(__file__).parent
# Marks the pages of this module. A page without it is never overwritten.
GENERATOR = "hyperbo data catalogue"
# Leads from the page of a version to the folder of index.html.
TO_ROOT = "../../../"
# As `pd1_builder.builder.features` writes it; to import that would need TFDS.
CROISSANT_NAME = "croissant.json"
# A card has its sections at level 2, below a title that is left out; here they are below a section's heading.
_HEADING_SHIFT, _HIGHEST = 1, 3


def render_index(catalogue: Catalogue) -> str:
    """The page with all datasets and their versions. Equal catalogues give equal pages."""
    datasets = [
        {
            "name": dataset,
            "id": dataset.replace("/", "-"),
            "newest": versions[-1],
            "about": about(versions[-1].card),
            "versions": versions[::-1],
            "lineage": draw([_step(each, catalogue, "") for each in versions]),
        }
        for dataset, versions in catalogue.datasets.items()
    ]
    return (
        _environment().get_template("index.html").render(catalogue=catalogue, datasets=datasets, to_root="")
    )


def render_version(version: ListedVersion, catalogue: Catalogue) -> str:
    """The page of a version. Equal catalogues give equal pages."""
    entry, manifest = version.entry, version.manifest
    siblings = catalogue.datasets[entry.dataset]
    priors, others = trained_on(catalogue.priors, entry.reference, manifest.content_hash)
    return (
        _environment()
        .get_template("version.html")
        .render(
            catalogue=catalogue,
            version=version,
            entry=entry,
            manifest=manifest,
            to_root=TO_ROOT,
            newest=siblings[-1],
            parent=next((each for each in siblings if each.entry.version == entry.parent), None),
            code_lines=code_lines(entry, manifest, catalogue.address),
            about=about(version.card),
            names={file.name for file in manifest.files},
            statuses=_statuses(manifest),
            splits=_splits(manifest),
            tasks=_tasks(manifest),
            lineage=_lineage_of(version, siblings, catalogue),
            priors=priors,
            other_priors=others,
            card=Markup(card_html(version.card)),
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
    """The escaped form of a text with invisible characters, such as a change of direction."""
    if isinstance(value, str) and not isinstance(value, Markup) and not value.isprintable():
        return json.dumps(value)
    return value


def _policy_hash(content: str) -> str:
    """The hash by which a Content-Security-Policy allows a script or a style."""
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _step(version: ListedVersion, catalogue: Catalogue, to_root: str, *, is_current: bool = False) -> Step:
    entry = version.entry
    priors, _ = trained_on(catalogue.priors, entry.reference, version.manifest.content_hash)
    return Step(
        version=entry.version,
        parent=entry.parent,
        facts=(
            f"{_count(version.trials, 'trial')}, {_count(entry.tasks, 'task')}",
            f"published {entry.published[:10]}",
        ),
        link=f"{to_root}{version.page}",
        raw_files=version.manifest.raw_files,
        priors=tuple(prior.name for prior in priors),
        is_current=is_current,
    )


def _lineage_of(version: ListedVersion, siblings: Sequence[ListedVersion], catalogue: Catalogue) -> Drawing:
    """The drawing of the version, its parent and the versions that follow it."""
    entry = version.entry
    near = [
        each
        for each in siblings
        if each is version or each.entry.version == entry.parent or each.entry.parent == entry.version
    ]
    return draw([_step(each, catalogue, TO_ROOT, is_current=each is version) for each in near])


def _statuses(manifest: Manifest) -> tuple[str, ...]:
    found = {status for tasks in manifest.counts.values() for counts in tasks.values() for status in counts}
    return (*(s for s in STATUSES if s in found), *sorted(found.difference(STATUSES)))


def _splits(manifest: Manifest) -> list[tuple[str, int, Counter[str]]]:
    """Each split with its number of tasks and its numbers of records by status."""
    return [
        (split, len(tasks), sum(map(Counter, tasks.values()), Counter()))
        for split, tasks in manifest.counts.items()
    ]


def _tasks(manifest: Manifest) -> list[tuple[str, list[int]]]:
    """Each task with its numbers of records by split."""
    names = sorted({task for tasks in manifest.counts.values() for task in tasks})
    return [
        (name, [sum(tasks.get(name, {}).values()) for tasks in manifest.counts.values()]) for name in names
    ]


def is_web(address: str) -> bool:
    """Whether an address is that of a web server, which a browser can open."""
    return address.lower().startswith(("http://", "https://"))


def code_lines(entry: Entry, manifest: Manifest, address: str) -> tuple[tuple[str, str], ...]:
    """Lines of code by which readers pull or read a version from the address, each after its purpose.

    Each runs as it is pasted, imports included.
    """
    splits = tuple(manifest.counts)
    # Tuning data cannot hold several search spaces.
    whole = "" if manifest.search_space else ', as_="dataframe"'
    paths = {split: f"{entry.folder}/{split}.parquet" for split in splits}
    files = {split: f"{address}/{quote(path) if is_web(address) else path}" for split, path in paths.items()}
    lines = [
        (
            "On the command line, all bytes checked",
            f"hyperbo data pull {entry.reference} --from {shlex.quote(address)} --revision {entry.revision}",
        ),
        (
            "In Python, pulled at first use, all bytes checked",
            "import pd1_builder\n"
            f"data = pd1_builder.load({_text(entry.reference)}, source={_text(address)}{whole})",
        ),
        (
            "With pandas: one split, not checked",
            f"import pandas\nrecords = pandas.read_parquet({_text(files[splits[0]])})",
        ),
        (
            "With Hugging Face datasets, not checked",
            f'import datasets\nrecords = datasets.load_dataset("parquet", data_files={_text(files)})',
        ),
    ]
    if any(file.name == CROISSANT_NAME for file in manifest.files):
        # mlcroissant does not look for the files beside metadata that it reads from the web.
        lines.append(
            (
                "With mlcroissant, by the Croissant metadata: pulled, all bytes checked",
                "import mlcroissant\nfrom pd1_builder.distribution.pull import pull\n"
                f"version = pull({_text(entry.reference)}, {_text(address)})\n"
                f'dataset = mlcroissant.Dataset(str(version.folder / "{CROISSANT_NAME}"))\n'
                f"records = dataset.records({_text(splits[0])})",
            )
        )
    return tuple(lines)


def _text(value: Any) -> str:
    """A text, or a dictionary of texts, as Python code. JSON is valid Python for these."""
    return json.dumps(value, ensure_ascii=False)


def card_html(card: str) -> str:
    r"""The Markdown of a card as HTML, without YAML header, title and images. Its own HTML is shown as text.

    >>> card_html("---\ntags: []\n---\n# data\n*Trials* ![](https://example.org/a.png) <b>of</b> mine")
    '<p><em>Trials</em>  &lt;b&gt;of&lt;/b&gt; mine</p>\n'
    """
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(YAML_HEADER.sub("", card, count=1))
    # The page has a title already.
    if len(tokens) > 2 and tokens[0].tag == "h1":
        tokens = tokens[3:]
    for token in tokens:
        _restrict(token)
    markdown.add_render_rule("image", lambda *_: "")
    markdown.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0">\n<table>\n')
    markdown.add_render_rule("table_close", lambda *_: "</table>\n</div>\n")
    return markdown.renderer.render(tokens, markdown.options, {})


def _restrict(token: Token) -> None:
    if token.type in ("heading_open", "heading_close"):
        token.tag = f"h{min(max(int(token.tag[1:]) + _HEADING_SHIFT, _HIGHEST), 6)}"
    elif token.type in ("th_open", "td_open") and token.attrs:
        # The page's policy forbids inline styles; a class does the same.
        token.attrs = {"class": "number"} if "right" in str(token.attrs["style"]) else {}
    elif token.type == "link_open":
        target = str(token.attrs["href"])
        token.attrs = {"href": target, "rel": "noopener noreferrer"} if LINK.match(target) else {}
    for child in token.children or ():
        _restrict(child)
