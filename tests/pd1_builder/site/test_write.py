"""The catalogue of a place: what its pages say, where they lead, and what nobody can put into them."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urldefrag

import pandas
import pytest
from catalogue_cases import ATTACK, RAW, add_release, write_hostile_place, write_place
from prior_files import make_prior
from version_folders import record

from hyperbo.errors import HyperBOError, InvalidInputError, NotAvailableError, VersionConflictError
from hyperbo.priors.catalog import add_prior, promote
from hyperbo.priors.file import Prior, save_prior
from pd1_builder.site.write import write_site

PAGE = "catalogue/pd1/mini/1.1.0.html"
FIRST = "catalogue/pd1/mini/1.0.0.html"


class Page(HTMLParser):
    """A page, read apart: its elements, the text outside of scripts and styles, where its links lead."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text, self._within = "", ""
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._within = tag
        if tag in ("td", "th"):
            self.text += " "

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within not in ("script", "style"):
            self.text += data

    @property
    def words(self) -> str:
        return " ".join(self.text.split())

    @property
    def links(self) -> list[str]:
        return [target for tag, attrs in self.elements if tag == "a" and (target := attrs.get("href"))]

    @property
    def ids(self) -> list[str]:
        return [value for _, attrs in self.elements if (value := attrs.get("id"))]

    @property
    def lines(self) -> list[str]:
        """The lines to copy."""
        use = self.source.partition('<section id="use">')[2].partition("</section>")[0]
        lines = re.findall("<pre><code>(.*?)</code></pre>", use, flags=re.DOTALL)
        return [html.unescape(re.sub("<[^>]*>", "", line)) for line in lines]

    def inline(self, tag: str) -> list[str]:
        return re.findall(rf"<{tag}>(.*?)</{tag}>", self.source, flags=re.DOTALL)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with its catalogue in it; read it only."""
    folder = write_place(tmp_path_factory.mktemp("place") / "data here")
    write_site(folder, folder)
    return folder


@pytest.fixture
def own_place(place: Path, tmp_path: Path) -> Path:
    """A copy of the place to do harm to, without a catalogue."""
    shutil.copytree(place, tmp_path / "place", ignore=shutil.ignore_patterns("catalogue", "index.html"))
    return tmp_path / "place"


@pytest.fixture
def server(place: Path) -> Iterator[str]:
    """The address of a web server that serves the place."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(place))) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()
        thread.join()


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_place_itself_stays_as_it_is(own_place: Path) -> None:
    before = contents(own_place)
    assert write_site(own_place, own_place) == own_place / "index.html"
    after = contents(own_place)
    assert after.items() >= before.items()
    assert after.keys() - before.keys() == {
        "index.html",
        PAGE,
        FIRST,
        "catalogue/trials/mine/1.0.0.html",
    }


def test_the_same_place_gives_the_same_pages(place: Path, own_place: Path, tmp_path: Path) -> None:
    pages = {name: page for name, page in contents(place).items() if name.endswith(".html")}
    write_site(own_place, own_place, pull_from=str(place))
    assert {name: own_place.joinpath(name).read_bytes() for name in pages} == pages
    write_site(own_place, own_place, pull_from=str(place))
    assert {name: own_place.joinpath(name).read_bytes() for name in pages} == pages


def test_pages_of_versions_that_are_gone_are_removed_and_nothing_else(
    own_place: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    gone, other = out / "catalogue/pd1/mini/0.1.0.html", out / "catalogue/pd1/mini/notes.html"
    # A dataset may be named like the folder of pages.
    data = out / "catalogue/pd1/1.0.0/table.html"
    for path in (gone, other, data):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    write_site(own_place, out)
    assert not gone.exists()
    assert other.read_text() == data.read_text() == "mine"


@pytest.mark.parametrize("name", ["index.html", PAGE, FIRST, "catalogue/trials/mine/1.0.0.html"])
def test_every_link_leads_somewhere(place: Path, name: str) -> None:
    page = Page(place / name)
    assert len(page.ids) == len(set(page.ids))
    local = [link for link in page.links if "://" not in link]
    assert len(local) > 3
    for link in local:
        target, anchor = urldefrag(link)
        path = (place / name).parent / unquote(target) if target else place / name
        assert path.is_file(), link
        if anchor:
            assert anchor in Page(path).ids, link


def test_the_index_lists_datasets_with_their_newest_version(place: Path) -> None:
    page = Page(place / "index.html")
    assert "pd1/mini Its author has not described it. apache-2.0 1.1.0 3 2 " in page.words
    assert "trials/mine Its author has not described it. not recorded 1.0.0 1 1 " in page.words
    assert "1.1.0 2026-11-22 minor 3 2 " in page.words
    assert "1.0.0 2026-11-22 first 1 1 " in page.words
    assert {PAGE, FIRST, "catalogue/trials/mine/1.0.0.html"} <= {urldefrag(link)[0] for link in page.links}


def test_a_page_says_what_its_manifest_says(place: Path) -> None:
    folder, page = place / "pd1/mini/1.1.0", Page(place / PAGE)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    assert "split tasks records done diverged matched 1 2 1 1 unmatched 1 1 1 0" in page.words
    assert "a 0.0 1.0 linear b 0.001 1.0 log" in page.words
    assert manifest["content_hash"] in page.words
    assert hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest() in page.words
    assert "2 records added (matched a-cnn 1, unmatched b-mlp 1)" in page.words
    assert "Since 1.0.0, minor:" in page.words
    for path in sorted(folder.glob("*")):
        if not path.name.startswith("manifest.json"):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            assert re.search(rf"{re.escape(path.name)}[\d.]+ k?(B|bytes){digest}", page.text)
    assert f"rows.jsonl1.2 kB, 3 rows{RAW[0].sha256}" in page.text
    assert f"columns.json80 bytes{RAW[1].sha256}" in page.text
    files = {f"../../../pd1/mini/1.1.0/{path.name}" for path in folder.iterdir()}
    assert files <= set(page.links)


def test_a_version_that_is_not_the_newest_says_so(place: Path) -> None:
    assert "There is a newer version: 1.1.0." in Page(place / FIRST).words
    assert "newer version" not in Page(place / PAGE).words


def test_the_card_is_shown_without_its_header_and_title(place: Path) -> None:
    page = Page(place / PAGE)
    card = page.source.partition('<div class="card">')[2]
    assert '<a href="https://example.org/" rel="noopener noreferrer">a link</a>' in card
    assert "<h3>Reading</h3>" in card
    assert '<td class="number">warped</td>' in card
    assert "license:" not in page.source
    assert "pd1/mini 1.1.0" not in page.words
    assert 'id="card"' not in Page(place / FIRST).source


def test_lineage_of_a_version_and_of_the_dataset(place: Path) -> None:
    words = "Version 1.0.0 is made from 1 raw file. Version 1.1.0 follows 1.0.0 and is made from 2 raw files."
    for name in ("index.html", PAGE, FIRST):
        page = Page(place / name)
        assert words in page.words
        # To each version from the file of both, to one from a file of its own, and from its parent.
        assert page.source.count('class="arrow"') == 4


def test_the_lines_to_copy_do_what_they_say(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYPERBO_DATA_DIR", str(tmp_path))
    shell, python, with_pandas, with_datasets = Page(place / PAGE).lines
    revision = hashlib.sha256((place / "pd1/mini/1.1.0/manifest.json").read_bytes()).hexdigest()
    assert shlex.split(shell) == [
        *("hyperbo", "data", "pull", "pd1/mini:1.1.0", "--from", str(place), "--revision", revision)
    ]
    data = pasted(python)["data"]
    assert data.provenance.dataset == "pd1/mini:1.1.0"
    assert (tmp_path / "pd1/mini/1.1.0/manifest.json").is_file()
    assert len(pasted(with_pandas)["records"]) == 2

    class Datasets(ModuleType):
        """Hugging Face's library, as far as the line goes; `test_read_elsewhere.py` has the real one."""

        @staticmethod
        def load_dataset(format_name: str, data_files: dict[str, str]) -> dict[str, int]:
            assert format_name == "parquet"
            return {split: len(pandas.read_parquet(path)) for split, path in data_files.items()}

    monkeypatch.setitem(sys.modules, "datasets", Datasets("datasets"))
    assert pasted(with_datasets)["records"] == {"matched": 2, "unmatched": 1}


def pasted(lines: str) -> dict[str, Any]:
    """The names that lines leave behind, run alone: what they need they import."""
    names: dict[str, Any] = {}
    exec(lines, names)
    return names


def test_datasets_are_listed_with_what_they_are_and_their_licence(tmp_path: Path) -> None:
    card = '---\nlicense: "cc-by-4.0"\n---\n# a\n\n> Trials of <b>ours</b>. Made on a laptop.\n'
    add_release(tmp_path, "trials/ours:1.0.0", {"one": [record("a-cnn", "a/0")]}, card=card)
    silent = "# b\n\n## About trials\n\nYour own tuning trials.\n"
    add_release(tmp_path, "trials/silent:1.0.0", {"one": [record("a-cnn", "a/0")]}, card=silent)
    table = "# c\n\n## About pd1\n\nThis section is about every configuration.\n\nRuns, *many*. More.\n"
    add_release(tmp_path, "pd1/mini:1.0.0", {"one": [record("a-cnn", "a/0")]}, card=table)
    index = Page(write_site(tmp_path, tmp_path))
    assert "trials/ours Trials of <b>ours</b>. cc-by-4.0 1.0.0" in index.words
    assert "pd1/mini Runs, many. not recorded 1.0.0" in index.words
    assert "trials/silent Its author has not described it. not recorded 1.0.0" in index.words
    assert "https://creativecommons.org/licenses/by/4.0/" in index.links
    page = Page(tmp_path / "catalogue/trials/ours/1.0.0.html")
    assert "Trials of <b>ours</b>." in page.words
    assert "Hugging Face card" in page.words
    assert "../../../trials/ours/1.0.0/README.md" in page.links
    assert "Croissant" not in page.words


def test_a_version_of_several_search_spaces_is_loaded_as_a_frame(tmp_path: Path) -> None:
    add_release(tmp_path, "trials/all:1.0.0", {"one": [record("a-cnn", "a/0")]}, search_space=())
    write_site(tmp_path, tmp_path)
    page = Page(tmp_path / "catalogue/trials/all/1.0.0.html")
    assert "The records are of several search spaces" in page.words
    assert any(f'"trials/all:1.0.0", source="{tmp_path}", as_="dataframe")' in each for each in page.lines)


def test_a_place_on_the_web_is_read_and_linked_to(place: Path, tmp_path: Path, server: str) -> None:
    write_site(server, tmp_path)
    page = Page(tmp_path / PAGE)
    assert f"{server}/pd1/mini/1.1.0/matched.parquet" in page.links
    assert any(f'"{server}/pd1/mini/1.1.0/matched.parquet")' in each for each in page.lines)


def test_readers_are_given_their_own_address(place: Path, tmp_path: Path) -> None:
    write_site(place, tmp_path, pull_from="https://data.example.org/tuning/")
    page = Page(tmp_path / PAGE)
    assert str(place) not in page.source
    assert all(" --from https://data.example.org/tuning " in line for line in page.lines[:1])
    assert "https://data.example.org/tuning/pd1/mini/1.1.0/README.md" in page.links


def test_a_folder_elsewhere_is_not_linked_to(place: Path, tmp_path: Path) -> None:
    write_site(place, tmp_path)
    assert not [link for link in Page(tmp_path / PAGE).links if "parquet" in link]


def test_priors_are_linked_to_the_records_that_they_were_trained_on(own_place: Path, tmp_path: Path) -> None:
    content_hash = json.loads((own_place / "pd1/mini/1.1.0/manifest.json").read_bytes())["content_hash"]
    names = []
    for seed, of in enumerate((content_hash, content_hash, "0" * 64)):
        prior = make_prior(seed)
        described = replace(prior.description, dataset="pd1/mini:1.1.0", manifest_hash=of)
        save_prior(tmp_path / "prior", Prior(prior.gp, described))
        names.append(add_prior(tmp_path / "priors", "pd1-mini/h-nll", tmp_path / "prior"))
    promote(tmp_path / "priors", "pd1-mini/h-nll", names[1], "better", {})
    write_site(own_place, own_place, priors=[tmp_path / "priors"])
    page = Page(own_place / PAGE)
    drawn = re.findall(r"<text [^>]*>(pd1-mini/[^<]*)</text>", page.source)
    assert drawn == [f"pd1-mini/h-nll@{names[1]}", f"pd1-mini/h-nll@{names[0]}"]
    assert f"pd1-mini/h-nll@{names[1]}: H-NLL, in service pd1-mini/h-nll@{names[0]}: H-NLL" in page.words
    assert f"on other records: pd1-mini/h-nll@{names[2]}, content hash {'0' * 64}" in page.words
    assert "and is made from 2 raw files; 2 priors trained on it." in page.words
    assert "No prior is known" in Page(own_place / FIRST).words


def test_names_phrases_and_cards_stay_text(tmp_path: Path) -> None:
    write_hostile_place(tmp_path)
    write_site(tmp_path, tmp_path)
    for name in ("index.html", "catalogue/trials/hostile/1.0.0.html"):
        page = Page(tmp_path / name)
        tags = {tag for tag, _ in page.elements}
        assert not tags & {"img", "iframe", "object", "embed", "form", "link", "base", "image", "use", "b"}
        assert [tag for tag, _ in page.elements].count("style") == 1
        assert [tag for tag, _ in page.elements].count("script") == (name != "index.html")
        attributes = {name for _, attrs in page.elements for name in attrs}
        assert not [name for name in attributes if name.startswith("on")]
        assert not attributes & {"style", "src", "srcset", "background", "action", "data", "xlink:href"}
        for link in page.links:
            assert re.match(r"(https?://|[A-Za-z0-9_./#-]+$)", link)
            assert "://" not in link or link in ("https://evil.example/", "https://evil.example/a")
        assert "\u202e" not in page.text
    assert page.text.count(ATTACK) >= 8
    assert r"evil\u202egnp.exe" in page.text


@pytest.mark.parametrize("name", ["index.html", PAGE])
def test_the_policy_allows_the_style_and_the_script_of_the_page_and_nothing_else(
    place: Path, name: str
) -> None:
    page = Page(place / name)
    (policy,) = [
        attrs["content"] for _, attrs in page.elements if "Content-Security-Policy" in attrs.values()
    ]
    rules = dict(rule.split(" ", 1) for rule in str(policy).split("; "))
    assert rules.pop("default-src") == "'none'"
    for tag in ("style", "script"):
        for content in page.inline(tag):
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            assert rules[f"{tag}-src"] == f"'sha256-{digest}'"
    assert set(rules) == {"style-src", "script-src", "img-src", "base-uri", "form-action"}
    assert rules["img-src"] == "data:"


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"a", b"b", 1))


@pytest.mark.parametrize("name", ["manifest.json", "README.md"])
def test_a_file_that_was_changed_is_not_shown(own_place: Path, name: str) -> None:
    damage(own_place / "pd1/mini/1.1.0" / name)
    with pytest.raises(VersionConflictError, match=rf"{name}: is not the file that was published"):
        write_site(own_place, own_place)
    assert not (own_place / "catalogue").exists()


def test_an_index_that_is_not_of_the_entries_is_refused(own_place: Path) -> None:
    (own_place / "index/trials/mine/1.0.0.json").unlink()
    with pytest.raises(
        VersionConflictError, match=r"trials/mine/1\.0\.0\.json: is not what index\.json says"
    ):
        write_site(own_place, own_place)


def test_a_manifest_of_another_version_is_refused(own_place: Path) -> None:
    index, entry = own_place / "index.json", own_place / "index/trials/mine/1.0.0.json"
    for path in (index, entry):
        path.write_text(path.read_text().replace("trials/mine", "trials/yours"))
    (own_place / "trials/mine").rename(own_place / "trials/yours")
    (own_place / "index/trials/mine").rename(own_place / "index/trials/yours")
    with pytest.raises(VersionConflictError, match=r"is the manifest of trials/mine:1\.0\.0"):
        write_site(own_place, own_place)


def test_an_empty_place_has_a_page_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text('{"format": 1, "versions": []}')
    assert "No version is published yet." in Page(write_site(tmp_path, tmp_path / "index" / "..")).words


def test_bad_arguments_are_refused_before_anything_is_written(own_place: Path, tmp_path: Path) -> None:
    before = contents(own_place)
    cases: list[tuple[type[HyperBOError], str, dict[str, object]]] = [
        (InvalidInputError, "lies among the published files", {"out": own_place / "pd1"}),
        (InvalidInputError, "must hold no user, password", {"pull_from": "https://me:secret@example.org/"}),
        (NotAvailableError, "is not a folder of priors", {"priors": [tmp_path / "nothing"]}),
        (NotAvailableError, "nothing is published at", {"url": tmp_path / "nothing"}),
    ]
    for kind, message, arguments in cases:
        with pytest.raises(kind, match=message) as caught:
            write_site(**({"url": own_place, "out": own_place} | arguments))  # pyright: ignore[reportArgumentType]
        assert "me:secret" not in str(caught.value)
    assert contents(own_place) == before


def test_without_jinja_an_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from hyperbo.errors import NotAvailableError\n"
        "try:\n    import pd1_builder.site.write\n"
        "except NotAvailableError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("no module jinja2; pip install 'hyperbo-priors[report]'\n")


def test_a_page_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    place = write_place(tmp_path / "place")
    out = tmp_path / "out"
    assert write_site(place, out) == write_site(place, out)
    (out / "index.html").write_text("my own page")
    with pytest.raises(InvalidInputError, match=r"index\.html: was not written"):
        write_site(place, out)
    assert (out / "index.html").read_text() == "my own page"


def test_a_card_too_large_for_a_page_is_left_out(tmp_path: Path) -> None:
    add_release(tmp_path / "place", "pd1/mini:1.0.0", {"one": [record("a", "a/0")]}, card="word " * 300_000)
    write_site(tmp_path / "place", tmp_path / "out")
    page = (tmp_path / "out/catalogue/pd1/mini/1.0.0.html").read_text()
    assert len(page) < 100_000
    assert "README.md" in page
