"""What the documents name is there: files, links, modules, functions, tests, and the paper's labels."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml

from docs.reference import FLOORS, load_floors, resolve

ROOT = Path(__file__).parents[2]
MAP = ROOT / "ARCHITECTURE.md"
GENERATED = ROOT / "docs" / "generated"
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "pd1_builder/*/README.md")
    for path in ROOT.glob(pattern)
    if GENERATED not in path.parents
)
# A changelog names what is gone.
PRESENT = [path for path in DOCUMENTS if path.name != "CHANGELOG.md"]
FLOOR_FOLDERS = ("hyperbo", "pipelines", "pd1_builder", "flows")
FOLDERS = (*FLOOR_FOLDERS, "tests", "benchmarks", "docs", "docker", "kubernetes")

LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
FILE = re.compile(
    rf"(?<![\w./-])((?:{'|'.join(FOLDERS)})/[\w./-]*\.(?:py|md|toml|yaml|json|html|css|svg|png))\b"
)
CODE = re.compile(r"`([^`\n]+)`")
FOLDER = re.compile(rf"(?:{'|'.join(FOLDERS)})/[\w./-]*")
IMPORT = re.compile(rf"from ((?:{'|'.join(FLOORS)})[\w.]*) import ([\w, ]+)")
NAME = re.compile(rf"(?:{'|'.join(FLOORS)})(?:\.\w+)+")
# A number and a label in brackets, `Eq. 13 (nll)`; all that is no label of the paper is something else.
REFERENCE = re.compile(r"\b((?:[A-D]\.)?\d+(?:\.\d+)*) \(([a-z][\w:-]*)\)")
KINDS = "(?:Theorem|Proposition|Lemma|Corollary|Assumption|Algorithm|Figure|Table)"
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")


def each(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.relative_to(ROOT).as_posix())


@each(DOCUMENTS)
def test_relative_links_lead_somewhere(path: Path) -> None:
    links = [link for link in LINK.findall(path.read_text(encoding="utf-8")) if "://" not in link]
    # Links to generated pages are checked when the site is built.
    targets = [target for link in links if GENERATED not in (target := path.parent / link).parents]
    assert [target for target in targets if not target.exists()] == []


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = set(LINK.findall((folder / "README.md").read_text(encoding="utf-8")))
    assert listed == {path.name for path in folder.glob("*.md")} - {"README.md"}


@each(PRESENT)
def test_files_and_folders_that_are_named_are_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = {*FILE.findall(text), *filter(FOLDER.fullmatch, CODE.findall(text))}
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


@each(PRESENT)
def test_modules_and_functions_that_are_named_are_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = set(filter(NAME.fullmatch, CODE.findall(text)))
    named |= {
        f"{module}.{name.strip()}" for module, names in IMPORT.findall(text) for name in names.split(",")
    }
    assert sorted(name for name in named if resolve(name, sources()) is None) == []


def test_the_citation_is_of_this_version_and_licence() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])


def test_the_tests_that_the_map_names_are_there() -> None:
    named = set(TEST.findall(MAP.read_text(encoding="utf-8")))
    assert sorted(f"{file}::{name}" for file, name in named if name not in functions(file)) == []


def test_the_paper_map_has_each_label_once_with_its_number() -> None:
    numbered = [row for row in labels() if row["kind"] not in ("section", "figure", "table")]
    assert sorted((row[0], row[1]) for row in paper_map()) == sorted(
        (f"{row['kind'].capitalize()} {row['number']}", f"`{row['label']}`") for row in numbered
    )


@pytest.mark.parametrize("floor", FLOORS)
def test_a_reference_to_the_paper_has_the_number_of_its_label(floor: str) -> None:
    numbers: dict[str, set[str]] = {}
    for row in labels():
        # Two appendix labels end as labels of the main text do: `eq:acfun-ucb`, `appeq:acfun-ucb`.
        for name in (row["label"], row["label"].rpartition(":")[2]):
            numbers.setdefault(name, set()).add(row["number"])
    without = re.compile(rf"\b(?:Eqs?\. \(|{KINDS} )({'|'.join(map(re.escape, numbers))})\b")
    wrong = [
        f"{path.relative_to(ROOT)}: {number} ({label})"
        for path in sorted(FLOORS[floor].rglob("*.py"))
        for number, label in REFERENCE.findall(path.read_text(encoding="utf-8"))
        if number not in numbers.get(label, {number})
    ]
    wrong += [
        f"{path.relative_to(ROOT)}: {label} has no number"
        for path in sorted(FLOORS[floor].rglob("*.py"))
        for label in without.findall(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


def test_a_row_of_the_paper_map_names_a_function_and_a_test_or_says_why_not() -> None:
    for number, _, _, function, test in paper_map():
        built = NAME.search(function) and TEST.search(test)
        assert built or function.startswith("not built: "), number


def test_a_function_of_the_paper_map_occurs_in_a_file_of_its_tests() -> None:
    missing = []
    for number, _, _, function, test in paper_map():
        words = {word for file, _ in TEST.findall(test) for word in words_of(file)}
        names = [] if function.startswith("not built: ") else NAME.findall(function)
        missing += [f"{number}: {name}" for name in names if name.rpartition(".")[2] not in words]
    assert missing == []


@cache
def labels() -> list[dict[str, str]]:
    return json.loads((Path(__file__).parent / "paper_labels.json").read_text(encoding="utf-8"))


def paper_map() -> list[list[str]]:
    """The rows of the paper map: number, label, what, function, test."""
    lines = MAP.read_text(encoding="utf-8").splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")
    ]
    return [row for row in rows if re.fullmatch(r"[A-Z][a-z]+ \d+", row[0])]


@cache
def words_of(file: str) -> set[str]:
    return set(re.findall(r"\w+", (ROOT / file).read_text(encoding="utf-8")))


@cache
def sources():
    return load_floors()


@cache
def functions(file: str) -> set[str]:
    path = ROOT / file
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.exists() else ast.Module([], [])
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
