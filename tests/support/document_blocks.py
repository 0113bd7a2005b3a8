"""The code blocks of a document: commands `hyperbo ...` and Python, and why some are not run."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

# The comment before a block that is not run; a renderer hides it.
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->")


@dataclass(frozen=True)
class Step:
    """A command line, or a block of Python.

    Attributes:
        line: Its first line in the document.
        text: The command without `hyperbo` and without the comment behind it, or the Python source.
        is_python: Whether it is Python.
        not_run: Why it is not run; empty where it is.
    """

    line: int
    text: str
    is_python: bool
    not_run: str = ""


def steps(path: Path) -> list[Step]:
    """What a document shows to be run, in its order."""
    found: list[Step] = []
    reason = ""
    for token in MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8")):
        if token.type == "html_block":
            marked = NOT_RUN.search(token.content)
            reason = marked[1] if marked else ""
        elif token.type in ("code_block", "fence"):
            assert token.map is not None
            first = token.map[0] + 1 + (token.type == "fence")
            found += _steps_of(token.content, token.info, first, reason)
            reason = ""
        elif token.nesting >= 0:
            reason = ""
    return found


def _steps_of(text: str, language: str, first: int, reason: str) -> list[Step]:
    if language == "python" or (not language and _is_python(text)):
        return [Step(first, text, True, reason)]
    if language not in ("", "console", "bash", "sh"):
        return []
    commands = re.finditer(r"^(?:\$ )?hyperbo ((?:.*\\\n)*.*)$", text, re.M)
    return [
        Step(first + text.count("\n", 0, command.start()), _one_line(command[1]), False, reason)
        for command in commands
    ]


def _is_python(text: str) -> bool:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    return any(isinstance(node, ast.Import | ast.ImportFrom | ast.Call) for node in ast.walk(tree))


def _one_line(command: str) -> str:
    return re.sub(r"\s*\\\n\s*|\s+# .*", " ", command).strip()
