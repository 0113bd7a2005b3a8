"""The references are complete: of every name that a room exports, and of every command and option."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
import pytest
import typer
from hyperbo_flows.cli.main import app

from docs.reference import FLOORS, load_floors, page, public, rooms, write_api, write_commands


@pytest.fixture(scope="module")
def floors() -> dict[str, griffe.Module]:
    return load_floors()


def exported(floors: dict[str, griffe.Module]) -> list[tuple[str, griffe.Object | None]]:
    return [
        (f"{room.path}.{name}", found)
        for floor in floors.values()
        for room in rooms(floor)
        for name, found in public(room, floors).items()
    ]


@pytest.mark.parametrize("floor", FLOORS)
def test_every_room_says_what_others_may_use(floors: dict[str, griffe.Module], floor: str) -> None:
    packages = [module for module in floors[floor].modules.values() if module.is_init_module]
    assert [package.path for package in packages if package.exports is None] == []


def test_every_exported_name_is_defined_somewhere(floors: dict[str, griffe.Module]) -> None:
    assert [name for name, found in exported(floors) if found is None] == []


def test_every_exported_class_and_function_has_a_docstring(floors: dict[str, griffe.Module]) -> None:
    kinds = (griffe.Class, griffe.Function)
    assert [
        name for name, found in exported(floors) if isinstance(found, kinds) and not found.docstring
    ] == []


def test_the_written_pages_have_an_entry_for_every_exported_name(
    floors: dict[str, griffe.Module], tmp_path: Path
) -> None:
    written = {path.stem: path.read_text(encoding="utf-8") for path in write_api(tmp_path)}
    index = (tmp_path / "index.md").read_text(encoding="utf-8")
    for room in (room for floor in floors.values() for room in rooms(floor)):
        assert f"[{room.path}]({room.path}.md)" in index
        for name, found in public(room, floors).items():
            assert f"\n## {name}\n" in written[room.path]
            if found is not None and found.docstring:
                assert found.docstring.value.splitlines()[0] in written[room.path]


def test_an_entry_shows_signature_docstring_and_where_it_is_defined(floors: dict[str, griffe.Module]) -> None:
    text = page(floors["hyperbo"], floors)
    assert "class Tuner(prior: Prior" in text
    assert "Defined in `hyperbo.tuning.tuner.Tuner`" in text
    assert "### Tuner.ask\n\n```python\nask() -> TuningTrial\n" in text
    assert "- `batch`: " in text
    assert "- `VersionConflictError`: " in text


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command with its whole name, from the top."""
    yield name, command
    for word, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{name} {word}")


def test_the_command_reference_has_every_command_with_its_arguments_and_options(tmp_path: Path) -> None:
    sections = re.split(r"^#+ `(.*)`$", write_commands(tmp_path).read_text(encoding="utf-8"), flags=re.M)
    written = dict(zip(sections[1::2], sections[2::2], strict=True))
    there = dict(commands(typer.main.get_command(app), "hyperbo"))
    assert sorted(written) == sorted(there)
    for name, command in there.items():
        for parameter in command.params:
            is_option = parameter.opts[0].startswith("-")
            shown = parameter.opts[0] if is_option else parameter.metavar or parameter.name
            entry = rf"^\* `(?:-\w, )?{re.escape(shown)}(?:\.\.\.)?[ `/,]"
            assert re.search(entry, written[name], re.M), f"{name}: {shown}"


def test_placeholders_in_the_help_are_text_and_no_html(tmp_path: Path) -> None:
    text = write_commands(tmp_path).read_text(encoding="utf-8")
    assert "* `--dataset <str>`: \\<name>/\\<config>:\\<version>" in text
