"""Text that others wrote, made fit for a terminal."""

from __future__ import annotations


def printable(text: object, longest: int | None = None) -> str:
    r"""What is shown of a text: escape sequences instead of what would move the cursor, or cannot be written.

    A text longer than `longest` characters is cut off.

    >>> printable("one\x1b[2Jtwo"), printable("abcdef", 3)
    ('one\\x1b[2Jtwo', 'abc...')
    """
    given = str(text)
    shown = given if longest is None or len(given) <= longest else f"{given[:longest]}..."
    return "".join(map(_visible, shown))


def _visible(letter: str) -> str:
    return letter if letter.isprintable() or letter == "\n" else letter.encode("unicode_escape").decode()
