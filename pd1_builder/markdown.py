"""Markdown of parts: tables whose cells hold any text, and a page as a section of another."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence

# An underscore within a word is no markup.
_MARKUP = re.compile(r"[\\`*<>\[\]|&~$]|(?<![^\W_])_|_(?![^\W_])")
_LOCAL_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://)[^)]*\)")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table of cells that are Markdown.

    >>> table(["name", "value"], [["a", "1"]])
    ['| name | value |', '| --- | --- |', '| a | 1 |']
    """
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def code(text: str) -> str:
    r"""A table's cell that shows a text as code; as JSON where there is something in it that cannot be seen.

    >>> print(code("a|b"), code("a`b"), code(" a"))
    `a\|b` ``a`b`` `" a"`
    """
    shown = _visible(text).replace("|", r"\|")
    ticks = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    # Markdown takes off one blank at each end, where there is one at both.
    pad = " " if "`" in (shown[0], shown[-1]) else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def plain(text: str) -> str:
    r"""A table's cell that shows a text as it is; as JSON where there is something in it that cannot be seen.

    >>> print(plain("error_rate in [0, 1]"))
    error_rate in \[0, 1\]
    """
    return _MARKUP.sub(r"\\\g<0>", _visible(text))


def section(page: str, left_out: Collection[str] = ()) -> list[str]:
    """Lines of a page as a section: without its title, with its headings one level lower.

    A link to a file beside the page leads nowhere from another: its text stays, and of a figure its title.

    Args:
      page: Markdown, whose title is its one heading of the first level.
      left_out: headings of the second level whose sections are left out.
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
