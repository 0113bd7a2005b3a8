"""What a card says of a dataset in a few words, and its licence: for the list of all datasets."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pd1_builder.release.card import HUB_LICENCES

YAML_HEADER = re.compile(r"\A---\r?\n.*?^---\r?$", re.DOTALL | re.MULTILINE)
# Another scheme could run a script, and a relative address would be relative to the wrong page.
LINK = re.compile(r"(https?|mailto):", re.IGNORECASE)
_LICENCE = re.compile(r"^(license|license_name|license_link):[ \t]*(.+?)[ \t]*\r?$", re.MULTILINE)
_ADDRESSES = {name: address for address, name in HUB_LICENCES.items()}
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
# What cards say of themselves. "About trials" is the same for everyone's trials.
_GENERIC = "This section is about every configuration"
_OF_EVERYONE = "About trials"


class About(NamedTuple):
    """What a card says of its dataset.

    Attributes:
      description: the first sentence of its author, else of the card of the dataset; empty for none.
      licence: name of the licence; empty if none is recorded.
      address: where the licence is; empty if that is not known.
    """

    description: str
    licence: str
    address: str


def about(card: str) -> About:
    r"""Read the licence of a card from its header, and what the dataset is from its text.

    The first quotation is what the person who made the trials says. The section "About" is about all
    versions.

    >>> about('---\nlicense: "mit"\n---\n# a 1.0.0\n\n## About a\n\nSmall *networks*.')[:2]
    ('Small networks.', 'mit')
    """
    header = YAML_HEADER.match(card)
    fields = {name: _plain(value) for name, value in _LICENCE.findall(header[0] if header else "")}
    licence = fields.get("license_name") or fields.get("license", "")
    address = fields.get("license_link") or _ADDRESSES.get(licence, "")
    tokens = MarkdownIt("commonmark").parse(card[header.end() :] if header else card)
    return About(_description(tokens), licence, address if LINK.match(address) else "")


def _plain(value: str) -> str:
    """The text of a value of YAML, which our cards write as JSON."""
    try:
        return str(json.loads(value))
    except ValueError:
        return value.strip("'\"")


def _description(tokens: list[Token]) -> str:
    within, heading = False, False
    for token in tokens:
        if token.type == "blockquote_open":
            within = True
        elif token.type == "heading_open":
            heading = True
        elif token.type == "inline":
            text = _text(token)
            if heading:
                heading, within = False, text.startswith("About ") and text != _OF_EVERYONE
            elif within and text and not text.startswith(_GENERIC):
                return _SENTENCE_ENDS.split(text)[0]
        elif token.type == "blockquote_close":
            within = False
    return ""


def _text(inline: Token) -> str:
    """The words of a paragraph, without its marks."""
    breaks = ("softbreak", "hardbreak")
    parts = (" " if each.type in breaks else each.content for each in inline.children or ())
    return " ".join("".join(parts).split())
