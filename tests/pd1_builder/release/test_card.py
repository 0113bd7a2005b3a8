"""The card of a version, as parsers of YAML and of Markdown read it."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import pytest
import yaml
from hyperbo_pipelines.curate.columns import ARROW_TYPES, Column, Kind
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from own_trials import ODD_METRICS, RAW_NAME, build_own_trials
from synthetic_hpob import write_hpob

import pd1_builder
from pd1_builder.hpob.recipe import hpob_recipe
from pd1_builder.pd1.recipe import CONFIGURATIONS
from pd1_builder.release.card import HUB_LICENCES, card
from pd1_builder.release.markdown import code, plain, section, table
from pd1_builder.version.manifest import FileDigest, Manifest, read_manifest


@pytest.fixture(scope="module")
def own(built_own: Path) -> Path:
    return built_own / "trials/own/1.0.0"


def manifest(**fields: Any) -> Manifest:
    """The manifest of a version whose task has 3 records, with changes."""
    plain: dict[str, Any] = {
        "dataset": "trials/own",
        "version": "1.1.0",
        "parent": "1.0.0",
        "content_hash": "c" * 64,
        "raw_files": (FileDigest("own.jsonl", 10, "d" * 64, 3),),
        "files": (),
        "code_version": "0",
        "search_space": ({"name": "rate", "lower": 1e-3, "upper": 10.0, "scaling": "log"},),
        "parameters": {"objective": "loss", "warping": "negative"},
        "counts": {"trials": {"net": {"done": 2, "diverged": 1}}},
        "duplicates": 0,
        "rejects": 0,
        "blocks": (),
    }
    return Manifest(**plain | fields)


def page(of: Manifest, **texts: str) -> str:
    return card(of, (), **{"description": "# Own", "citation": "", "licence": ""} | texts)


def header(text: str) -> dict[str, Any]:
    return yaml.safe_load(text.split("---\n")[1])


def body(text: str) -> list[Token]:
    """The parts of a page below its header, if it has one."""
    below = text.split("---\n", 2)[2] if text.startswith("---\n") else text
    return MarkdownIt().enable("table").parse(below)


def tables(text: str) -> dict[tuple[str, ...], list[list[str]]]:
    """The rows of each table by its head, cells as they are read."""
    found: dict[tuple[str, ...], list[list[str]]] = {}
    head: tuple[str, ...] = ()
    cells: list[str] = []
    for token, after in itertools.pairwise(body(text)):
        if token.type in ("th_open", "td_open"):
            cells.append("".join(part.content for part in after.children or []))
        elif token.type == "tr_close":
            if after.type == "thead_close":
                found[head := tuple(cells)] = []
            else:
                found[head].append(cells)
            cells = []
    return found


def test_the_header_says_what_it_is_and_which_files_hold_records(built: Path, own: Path) -> None:
    tags = ["bayesian-optimization", "hyperparameter-optimization", "tabular"]
    files = [{"split": split, "path": f"{split}.parquet"} for split in ("matched", "unmatched")]
    assert header((built / "pd1/mini/1.0.0/README.md").read_text()) == {
        "pretty_name": "pd1/mini 1.0.0",
        "license": "apache-2.0",
        "tags": tags,
        "size_categories": ["n<1K"],
        "configs": [{"config_name": "default", "data_files": files}],
    }
    apache = (built / "pd1/mini/1.0.0/LICENSE").read_text()
    assert HUB_LICENCES[apache] == "apache-2.0"
    # Whose trials these are, and who may use them, is for their owner to say.
    assert "license" not in header((own / "README.md").read_text())


@given(st.integers(0, 10**10 - 1))
def test_the_size_is_of_the_category_that_holds_it(rows: int) -> None:
    (category,) = header(page(manifest(counts={"trials": {"net": {"done": rows}}})))["size_categories"]
    powers = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9}
    bounds = [int(number) * powers[power] for number, power in re.findall(r"(\d+)([KMB]?)", category)]
    lower, upper = bounds if len(bounds) == 2 else (0, *bounds)
    assert lower <= rows < upper
    assert upper in (1000, 10 * lower)


def test_licences_are_those_of_the_hub(tmp_path: Path) -> None:
    ours = {each.licence for each in CONFIGURATIONS.values()}
    ours.add(hpob_recipe("4796", write_hpob(tmp_path)).licence)
    assert ours <= set(HUB_LICENCES)
    described = (Path(pd1_builder.__file__).parent / "trials/README.md").read_text()
    assert {address for _, address in tables(described)["licence", "address"]} == set(HUB_LICENCES)
    for address, identifier in HUB_LICENCES.items():
        text = page(manifest(), licence=address)
        assert header(text)["license"] == identifier
        assert f"<{address}>" in text
    other = "https://example.org/licence"
    found = header(page(manifest(), licence=other))
    assert [found[f"license{part}"] for part in ("", "_name", "_link")] == ["other", other, other]
    assert "No licence is recorded" in page(manifest())


def said_otherwise(text: str) -> list[tuple[str, str]]:
    """The parts of a page that are not in a quotation."""
    depth, found = 0, []
    for token in body(text):
        depth += token.nesting if token.type.startswith("blockquote") else 0
        if depth == 0 and token.type != "blockquote_close":
            found.append((token.type, token.content))
    return found


@given(st.text(st.sampled_from("aä #>`~<!-=[]():*_|\t\n☃"), min_size=1).filter(str.strip))
@example("# What\n\n```\nleft open")
@example("<!-- left open")
@example("A title\n===\n- a list\n\n  | of | tables |")
def test_the_owners_description_comes_first(words: str) -> None:
    text = page(manifest(), foreword=words)
    types = [token.type for token in body(text)]
    assert types[:4] == ["heading_open", "inline", "heading_close", "blockquote_open"]
    (quoted,) = re.findall(r"^# .*\n\n((?:>.*\n)+)\nTuning trials as", text, re.MULTILINE)
    assert [line[2:] for line in quoted.splitlines()] == words.strip().split("\n")
    assert said_otherwise(text) == said_otherwise(page(manifest()))


def test_a_citation_ends_where_it_ends() -> None:
    citation = "@misc{own,\n```\nnote = {````}}"
    (fence,) = [token for token in body(page(manifest(), citation=citation)) if token.info == "bibtex"]
    assert fence.content == f"{citation}\n"


def test_it_counts_the_records(built: Path) -> None:
    found = tables((built / "pd1/mini/1.0.0/README.md").read_text())
    frame = pd1_builder.load("pd1/mini:1.0.0", as_="dataframe", data_dir=built)
    expected = [
        [
            str(split),
            f"{split}.parquet",
            str(records["task"].nunique()),
            str(len(records)),
            *(str((records["status"] == status).sum()) for status in ("done", "diverged")),
        ]
        for split, records in frame.groupby("split")
    ]
    assert found["split", "file", "tasks", "records", "done", "diverged"] == expected
    many = {"trials": {"net": {"done": 1234, "infeasible": 1}}, "others": {"net": {"done": 0}}}
    assert tables(page(manifest(counts=many)))["split", "file", "tasks", "records", "done", "infeasible"] == [
        ["trials", "trials.parquet", "1", "1,235", "1,234", "1"],
        ["others", "others.parquet", "1", "0", "0", "0"],
    ]


def test_names_of_any_letters_are_read_as_they_are(own: Path) -> None:
    found = tables((own / "README.md").read_text())
    names = [name for name, *_ in found["column", "type", "meaning"]]
    shown = [json.loads(name) if name.startswith('"') else name for name in names]
    frame = pd1_builder.load("trials/own", as_="dataframe", data_dir=own.parents[2])
    assert shown == [name for name in frame.columns if name != "split"]
    assert [f"metrics.{name}" for name in ODD_METRICS] == [
        name for name in shown if name.removeprefix("metrics.") in ODD_METRICS
    ]
    assert found["hyperparameter", "type", "values"] == [
        ["rate", "real", "0.001 to 10, log"],
        ["layers", "real", "1 to 8, linear"],
    ]


def test_columns_have_their_type_and_meaning() -> None:
    columns = [Column(f"a.{kind}", kind, f"what _{kind}_ is") for kind in get_args(Kind)]
    text = card(manifest(), columns, description="", citation="", licence="")
    found = tables(text)["column", "type", "meaning"]
    types = {"texts": "list of string", "reals": "list of float64", "boolean": "bool", "real": "float64"}
    assert found == [
        [f"a.{kind}", types.get(kind) or str(ARROW_TYPES[kind]), f"what _{kind}_ is"]
        for kind in get_args(Kind)
    ]


def test_the_lineage_is_that_of_the_manifest(own: Path) -> None:
    found = tables((own / "README.md").read_text())
    files = [
        [path.name, rows, f"{path.stat().st_size:,}", hashlib.sha256(path.read_bytes()).hexdigest()]
        for path, rows in ((own / "raw" / RAW_NAME, "3"), (own / "raw/space.toml", ""))
    ]
    assert found["raw file", "rows", "bytes", "SHA-256"] == files
    facts = dict(tables(page(manifest(rejects=1234, duplicates=7, blocks=({},))))["property", "value"])
    assert facts == {
        "content hash": "c" * 64,
        "parent": "1.0.0",
        "code version": "0",
        "rejected rows, listed in rejects.jsonl": "1,234",
        "records whose input occurs more than once in their task": "7",
        "matched blocks": "1",
    }
    assert "none, this is the first version" in page(manifest(parent=None))


def test_the_card_of_the_dataset_is_a_part_of_it_without_how_to_add_trials(built: Path, own: Path) -> None:
    pd1 = (built / "pd1/mini/1.0.0/README.md").read_text()
    assert "\n## About pd1\n" in pd1
    assert "\n### How it was collected\n" in pd1
    assert "@article{wang2024pretrained," in pd1
    trials = (own / "README.md").read_text()
    assert "\n### Quirks\n" in trials
    assert "bibtex" not in trials
    assert not re.search(r"\[\[parameters\]\]|optuna|\.csv", trials)


def test_links_of_the_card_are_valid(built: Path, own: Path) -> None:
    described = Path(pd1_builder.__file__).parent
    pages = [page(manifest(), description=each.read_text()) for each in described.glob("*/README.md")]
    assert len(pages) == 4
    written = [(folder / "README.md").read_text() for folder in (built / "pd1/mini/1.0.0", own)]
    links = [
        part.attrs.get("href", part.attrs.get("src"))
        for text in [*pages, *written]
        for token in body(text)
        for part in token.children or []
        if part.type in ("link_open", "image")
    ]
    assert links
    assert {urlsplit(str(link)).scheme for link in links} <= {"http", "https"}


def test_a_dataset_of_several_search_spaces_points_to_the_manifest() -> None:
    text = page(manifest(dataset="hpob/all", search_space=()))
    assert "`parameters` in `manifest.json` describes each" in text
    assert 'pd1_builder.load("hpob/all:1.1.0", data_dir=Path("../../.."), as_="dataframe")' in text


def test_the_card_is_part_of_the_version_and_equal_in_every_build(own: Path, tmp_path: Path) -> None:
    found = read_manifest(own)
    (entry,) = [file for file in found.files if file.name == "README.md"]
    content = (own / "README.md").read_bytes()
    assert entry.sha256 == hashlib.sha256(content).hexdigest()
    build_own_trials(tmp_path)
    assert (tmp_path / "trials/own/1.0.0/README.md").read_bytes() == content
    assert page(found) == page(replace(found, files=()))


PARSER = MarkdownIt().enable(["table", "strikethrough"])
# Of letters that mean something to Markdown, and of any other.
TEXTS = st.one_of(st.text("ab_*`|\\<>[]()&~!#;\n -", max_size=12), st.text(max_size=12))


def cells(lines: list[str]) -> list[list[Token]]:
    """The parts of each cell of the body of a table that is all there is."""
    tokens = PARSER.parse("\n".join(lines))
    assert (tokens[0].type, tokens[-1].type) == ("table_open", "table_close")
    found = [after.children or [] for at, after in itertools.pairwise(tokens) if at.type == "td_open"]
    assert len(found) == sum(token.type == "td_open" for token in tokens)
    return found


def means(shown: str, text: str) -> bool:
    return shown == text or (shown.startswith('"') and json.loads(shown) == text)


@given(TEXTS, TEXTS)
@example("a\\|b", "__a b__")
@example("`", "&amp;")
@example("", "\N{LINE SEPARATOR}")
def test_any_text_comes_back_from_a_table(first: str, second: str) -> None:
    as_code, as_text = cells(table(["a", "b"], [[code(first), plain(second)]]))
    assert [part.type for part in as_code] == ["code_inline"]
    assert means(as_code[0].content, first)
    assert {part.type for part in as_text} == {"text"}
    assert means("".join(part.content for part in as_text), second)


PAGE = """# Title

Opening, with [a page](other.md) and [an address](https://example.org/).

## Adding
Left out.

### Beneath it
Left out too.

```toml
# a comment
```

## Fields
![What is shown](figure.svg)

```python
# [no](link)
```
"""


def test_a_page_becomes_a_section() -> None:
    assert section(PAGE, ["Adding"]) == [
        "",
        "Opening, with a page and [an address](https://example.org/).",
        "",
        "### Fields",
        "(A figure, not shown here: What is shown.)",
        "",
        "```python",
        "# [no](link)",
        "```",
    ]
    assert "#### Beneath it" in section(PAGE)
    assert "# a comment" in section(PAGE)
