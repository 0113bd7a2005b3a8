"""About: what the owner of trials says of them."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from hyperbo.errors import InvalidInputError

_MOST_CHARACTERS = {"description": 20_000, "licence": 1_000, "citation": 20_000}
# The characters of an address by RFC 3986, of which none ends a link of Markdown.
_ADDRESS = re.compile(r"https?://\w[\w.~:/?#\[\]@!$&'()*+,;=%-]*", re.ASCII)


@dataclass(frozen=True)
class About:
    """What the owner of trials says of them; a text is empty where nothing is said.

    Attributes:
      description: what they are, as Markdown.
      licence: address of the licence.
      citation: how to cite them, as BibTeX.

    Raises:
      InvalidInputError: a text is too long or blank, holds what cannot be seen, or is not of its kind.
    """

    description: str = ""
    licence: str = ""
    citation: str = ""

    def __post_init__(self) -> None:
        for field, most in _MOST_CHARACTERS.items():
            _check(field, getattr(self, field), most)
        if self.licence and not _ADDRESS.fullmatch(self.licence):
            raise InvalidInputError(
                f"licence = {self.licence!r} is not an address",
                where="about.licence",
                fix="write one such as https://creativecommons.org/licenses/by/4.0/",
            )
        if self.citation and not self.citation.lstrip().startswith("@"):
            raise InvalidInputError(
                "citation is not BibTeX",
                where="about.citation",
                fix="write an entry, such as @misc{name, title = {...}}",
            )


def _check(field: str, text: str, most: int) -> None:
    where = f"about.{field}"
    if len(text) > most:
        raise InvalidInputError(
            f"{field} has {len(text):,} characters", where=where, fix=f"say it in {most:,}, or link to more"
        )
    if text.isspace():
        raise InvalidInputError(f"{field} is blank", where=where, fix="leave it out")
    # Blanks such as the ideographic one do not count as printable.
    for place, each in enumerate(text):
        if not (each.isprintable() or each in "\n\t" or unicodedata.category(each) == "Zs"):
            raise InvalidInputError(
                f"{field} holds U+{ord(each):04X}, which cannot be seen",
                where=where,
                fix=f"remove it after {text[max(place - 20, 0) : place]!r}",
            )
