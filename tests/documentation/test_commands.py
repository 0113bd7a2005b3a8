"""The commands and options that the documents show are there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from hyperbo_flows.cli.main import app

ROOT = Path(__file__).parents[2]
ROOT_COMMAND: Any = typer.main.get_command(app)
DOCUMENTS = sorted(
    path
    for pattern in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/**/*", "pd1_builder/*/README.md")
    for path in ROOT.glob(pattern)
    if path.suffix in (".md", ".toml", ".py")
)
# A line of a code block, which may go on after a backslash, or code in a sentence.
COMMAND = re.compile(
    r"^(?:#? {4})(?:\.venv/bin/)?hyperbo ((?:.*\\\n)*.*)$|`(?:\.venv/bin/)?hyperbo ([a-z][^`]*)`", re.M
)


def shown(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return [block or inline for block, inline in COMMAND.findall(text)]


def unknown(line: str) -> list[str]:
    """The words of a command line that are neither a command nor an option of it."""
    words = shlex.split(line.replace("\\\n#", " ").replace("\\\n", " "), comments=True)
    command = ROOT_COMMAND
    while words and hasattr(command, "commands"):
        if words[0] not in command.commands:
            return [word for word in words[:1] if not word.startswith("-") and word != "..."]
        command = command.commands[words.pop(0)]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    named = [word.partition("=")[0] for word in words if word.startswith("--")]
    return [word for word in named if word not in options | {"--help"}]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_that_are_shown_are_there(path: Path) -> None:
    assert {line: unknown(line) for line in shown(path) if unknown(line)} == {}


def test_a_command_that_is_gone_is_found() -> None:
    assert unknown("data survey pd1/mini:2.0.0 --out survey") == []
    assert unknown("data surveil pd1/mini:2.0.0") == ["surveil"]
    assert unknown("tune --nonsense 3 --command 'python train.py --lr {lr}'") == ["--nonsense"]
    assert len(shown(ROOT / "docs/datasets.md")) > 10
