"""A card as HTML that does nothing: whoever wrote it, it runs no script and loads nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

_HEADER = re.compile(r"\A---\r?\n.*?^---\r?$", re.DOTALL | re.MULTILINE)
# Another scheme could run something, and a relative address would be one of another page.
_LINK = re.compile(r"(https?|mailto):", re.IGNORECASE)
# Below the page's title and the heading of its section.
_LOWER = 2


def card_html(card: str) -> str:
    r"""The HTML of a card: of its Markdown, without the YAML header, the title, images, and HTML of its own.

    >>> card_html("---\ntags: []\n---\n# data\n*Trials* ![](https://example.org/a.png) <b>of</b> mine")
    '<p><em>Trials</em>  &lt;b&gt;of&lt;/b&gt; mine</p>\n'
    """
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(_HEADER.sub("", card, count=1))
    # The page has that title already.
    if len(tokens) > 2 and tokens[0].tag == "h1":
        tokens = tokens[3:]
    for token in tokens:
        _tame(token)
    markdown.add_render_rule("image", _nothing)
    markdown.add_render_rule("table_open", _open_table)
    markdown.add_render_rule("table_close", _close_table)
    return markdown.renderer.render(tokens, markdown.options, {})


def _tame(token: Token) -> None:
    if token.type in ("heading_open", "heading_close"):
        token.tag = f"h{min(int(token.tag[1:]) + _LOWER, 6)}"
    elif token.type in ("th_open", "td_open") and token.attrs:
        # The page forbids styles of elements; a class says the same.
        token.attrs = {"class": "number"} if "right" in str(token.attrs["style"]) else {}
    elif token.type == "link_open":
        target = str(token.attrs["href"])
        token.attrs = {"href": target, "rel": "noopener noreferrer"} if _LINK.match(target) else {}
    for child in token.children or ():
        _tame(child)


def _nothing(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return ""


def _open_table(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return '<div class="scroll" tabindex="0">\n<table>\n'


def _close_table(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return "</table>\n</div>\n"
