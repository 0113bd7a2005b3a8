"""Texts as they are shown: escaped where others wrote them, and counts with their nouns."""

from __future__ import annotations


def printable(text: object, longest: int | None = None) -> str:
    r"""A text as it is shown: characters that move the cursor or cannot be written become escape sequences.

    A text longer than `longest` characters is cut off.

    >>> printable("one\x1b[2Jtwo"), printable("abcdef", 3)
    ('one\\x1b[2Jtwo', 'abc...')
    """
    given = str(text)
    shown = given if longest is None or len(given) <= longest else f"{given[:longest]}..."
    return "".join(map(_visible, shown))


def count(quantity: int, noun: str) -> str:
    """A number with its noun, in singular or plural.

    >>> count(1, "seed"), count(5, "task")
    ('1 seed', '5 tasks')
    """
    return f"{quantity} {noun}{'' if quantity == 1 else 's'}"


def _visible(letter: str) -> str:
    return letter if letter.isprintable() or letter == "\n" else letter.encode("unicode_escape").decode()
