"""Imports run downwards: between floors, and between the rooms of a floor as ARCHITECTURE.md draws them."""

from __future__ import annotations

import ast
import re
from itertools import chain
from pathlib import Path

import pytest

from docs.reference import FLOORS

ROOT = Path(__file__).parents[2]
# The package of each top-level folder.
PACKAGES = {folder.relative_to(ROOT).parts[0]: name for name, folder in FLOORS.items()}


def drawn() -> dict[str, list[set[str]]]:
    """The rooms of each floor, from the top: those of one line of the picture together."""
    picture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    floors: dict[str, list[set[str]]] = {}
    for line in picture.splitlines():
        if match := re.match(r"(\w+)/ ", line):
            floors[PACKAGES[match[1]]] = rows = []
        if words := re.split(r" {3,}", line[15:])[0].split():
            rows.append(set(words))
    return floors


def imports(path: Path) -> set[str]:
    """The modules that a file imports, anywhere in it; of `from a import b`, both a and a.b."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def room_of(path: Path, floor: str) -> str:
    parts = path.relative_to(FLOORS[floor]).parts
    return parts[0] if len(parts) > 1 else ""


@pytest.mark.parametrize("floor", FLOORS)
def test_a_floor_imports_nothing_of_those_above(floor: str) -> None:
    names = list(FLOORS)
    above = names[names.index(floor) + 1 :]
    upward = [
        (path.relative_to(ROOT).as_posix(), name)
        for path in sorted(FLOORS[floor].rglob("*.py"))
        for name in imports(path)
        if name.split(".")[0] in above
    ]
    assert upward == []


@pytest.mark.parametrize("floor", FLOORS)
def test_the_rooms_that_are_drawn_are_those_there_are(floor: str) -> None:
    there = {path.parent.name for path in FLOORS[floor].glob("*/__init__.py")}
    assert set(chain(*drawn()[floor])) == there


@pytest.mark.parametrize("floor", FLOORS)
def test_a_room_imports_those_below_it_only(floor: str) -> None:
    rows = drawn()[floor]
    height = {room: -row for row, rooms in enumerate(rows) for room in rooms}
    upward = [
        (path.relative_to(ROOT).as_posix(), name)
        for path in sorted(FLOORS[floor].rglob("*.py"))
        for name in imports(path)
        if name.startswith(f"{floor}.")
        and (room := room_of(path, floor)) != (other := name.split(".")[1])
        and {room, other} <= height.keys()
        and height[other] >= height[room]
    ]
    assert upward == []
