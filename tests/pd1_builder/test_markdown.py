"""Cells and sections as a Markdown parser reads them."""

from __future__ import annotations

import itertools
import json

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pd1_builder.markdown import code, plain, section, table

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
