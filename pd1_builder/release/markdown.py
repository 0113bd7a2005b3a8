"""Markdown of cards: tables, cells that show any text as it is, and pages as sections."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence

# An underscore inside a word is not markup.
_MARKUP = re.compile(r"[\\`*<>\[\]|&~$]|(?<![^\W_])_|_(?![^\W_])")
_LOCAL_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://)[^)]*\)")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table whose cells are Markdown.

    >>> table(["name", "value"], [["a", "1"]])
    ['| name | value |', '| --- | --- |', '| a | 1 |']
    """
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def code(text: str) -> str:
    r"""A cell that shows a text as code. A text with invisible characters is shown as JSON.

    >>> print(code("a|b"), code("a`b"), code(" a"))
    `a\|b` ``a`b`` `" a"`
    """
    shown = _visible(text).replace("|", r"\|")
    ticks = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    # If there is a blank at both ends, Markdown removes one at each.
    pad = " " if "`" in (shown[0], shown[-1]) else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def plain(text: str) -> str:
    r"""A cell that shows a text as it is. A text with invisible characters is shown as JSON.

    >>> print(plain("error_rate in [0, 1]"))
    error_rate in \[0, 1\]
    """
    return _MARKUP.sub(r"\\\g<0>", _visible(text))


def section(page: str, left_out: Collection[str] = ()) -> list[str]:
    """Lines of a page as a section of another: without its title, and with its headings one level lower.

    A link to a file beside the page would be broken, so only its text is kept, or the title of a figure.
    Sections whose heading of the second level is `left_out` are left out.
    """
    lines: list[str] = []
    fenced = skipped = False
    for line in page.splitlines():
        fenced ^= line.startswith("```")
        heading = line.startswith("#") and not fenced
        if heading and line.startswith("## "):
            skipped = line.removeprefix("## ") in left_out
        if not skipped and not (heading and line.startswith("# ")):
            lines.append(f"#{line}" if heading else line if fenced else _LOCAL_LINK.sub(_text_of, line))
    return lines


def _text_of(link: re.Match[str]) -> str:
    return f"(A figure, not shown here: {link[2]}.)" if link[1] else link[2]


def _visible(text: str) -> str:
    return text if text.isprintable() and text.strip() == text != "" else json.dumps(text)
