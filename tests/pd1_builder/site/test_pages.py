"""A card as HTML: what is kept of it, and that no text of any author becomes more than text and links."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from catalogue_cases import ATTACK, HOSTILE_CARD
from hypothesis import given
from hypothesis import strategies as st

from pd1_builder.site.pages import card_html

HARMLESS = {
    *("p", "em", "strong", "code", "pre", "blockquote", "ul", "ol", "li", "hr", "br", "a"),
    *("h3", "h4", "h5", "h6", "div", "table", "thead", "tbody", "tr", "th", "td"),
}
# What Markdown and HTML make something of.
PIECES = [
    *("<", ">", "![", "[", "](", ")", "`", "```\n", "| ", "\n| --- | --: |\n", "\n", "\n\n", "# ", "* ", '"'),
    *(
        "javascript:",
        "data:text/html,",
        "https://example.org/",
        "//example.org",
        "&#106;",
        "&lt;",
        "\\",
        "---\n",
    ),
    *("<script>", "</script>", "<img src=x onerror=y>", "<!--", "-->", " onclick=", "\u202e", "a"),
]


class Elements(HTMLParser):
    """The elements of HTML, with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def require_harmless(html: str) -> None:
    for tag, attributes in Elements(html).found:
        assert tag in HARMLESS
        assert set(attributes) <= {"href", "rel", "class", "tabindex", "start"}
        target = attributes.get("href")
        assert target is None or target.lower().startswith(("http://", "https://", "mailto:"))
        assert (attributes.get("rel") == "noopener noreferrer") == (target is not None)


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=30).map("".join))
def test_no_card_does_anything(card: str) -> None:
    require_harmless(card_html(card))


def test_a_hostile_card_is_text() -> None:
    html = card_html(HOSTILE_CARD)
    require_harmless(html)
    # In a paragraph, a table, a block of code, and what says which language that is.
    assert html.count("&lt;script&gt;window.hacked") == 4
    assert ATTACK not in html


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("[x](https://a.org/ 'title')", '<p><a href="https://a.org/" rel="noopener noreferrer">x</a></p>\n'),
        (
            "<mailto:a@b.org>",
            '<p><a href="mailto:a@b.org" rel="noopener noreferrer">mailto:a@b.org</a></p>\n',
        ),
        ("[x](../up.html) [y](#part) [z](//a.org)", "<p><a>x</a> <a>y</a> <a>z</a></p>\n"),
        ("[x](data:image/png;base64,aaaa)", "<p><a>x</a></p>\n"),
        ("![x](https://a.org/i.png)", "<p></p>\n"),
        ("# Title\n\n## Part\n\n##### Deep", "<h3>Part</h3>\n<h6>Deep</h6>\n"),
        ("## Part\n# Not the title", "<h3>Part</h3>\n<h3>Not the title</h3>\n"),
        ("---\na: 1\n---\n\ntext", "<p>text</p>\n"),
        ("---\r\na: 1\r\n---\r\ntext", "<p>text</p>\n"),
        ("a\n\n---\nb: 1\n---\n", "<p>a</p>\n<hr />\n<h3>b: 1</h3>\n"),
        ("", ""),
    ],
)
def test_what_is_made_of_markdown(markdown: str, html: str) -> None:
    assert card_html(markdown) == html
