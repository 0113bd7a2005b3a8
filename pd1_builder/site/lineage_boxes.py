"""Boxes of text and arrows between them: what a drawing of a lineage is made of; lengths are in points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple
from unicodedata import east_asian_width

Kind = Literal["raw", "version", "earlier", "priors"]
LINE, PAD = 18.0, 8.0
_BASELINE = 0.72 * LINE
# A letter of a monospaced font of 12 points.
_LETTER = 7.3
_LONGEST_LINE = 38


class Line(NamedTuple):
    """A line of text, shortened where it is long: where its baseline begins, and the whole of it."""

    x: float
    y: float
    text: str
    whole: str


@dataclass(frozen=True)
class Box:
    """A box with a line for each of its texts; it leads to `link`, where there is one."""

    kind: Kind
    texts: tuple[str, ...]
    link: str
    left: float
    top: float
    width: float
    height: float
    is_current: bool = False

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Where it ends."""
        return self.top + self.height

    @property
    def lines(self) -> Iterator[Line]:
        """Its texts."""
        for index, text in enumerate(self.texts):
            yield Line(self.left + PAD, self.top + PAD + index * LINE + _BASELINE, shorten(text), text)


class Arrow(NamedTuple):
    """A line of these points, with a head at the last."""

    points: tuple[tuple[float, float], ...]

    @property
    def path(self) -> str:
        """The line as data of an SVG path.

        >>> Arrow(((0.0, 9.5), (20.0, 9.5))).path
        'M0 9.5 L20 9.5'
        """
        return "M" + " L".join(f"{x:g} {y:g}" for x, y in self.points)


@dataclass(frozen=True)
class Drawing:
    """Boxes and arrows, and the same in words."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    description: str

    @property
    def width(self) -> float:
        """Of all boxes, and the edge of the last."""
        return max(box.right for box in self.boxes) + 1.0

    @property
    def height(self) -> float:
        """Of all boxes, and the edge of the last."""
        return max(box.bottom for box in self.boxes) + 1.0


def width_of(texts: Iterable[str]) -> float:
    """How wide a box of these lines is."""
    return max((_letters(shorten(text)) for text in texts), default=0) * _LETTER + 2 * PAD


def height_of(texts: Sequence[str]) -> float:
    """How high a box of these lines is."""
    return len(texts) * LINE + 2 * PAD


def shorten(text: str, longest: int = _LONGEST_LINE) -> str:
    """A text without its middle, where it is longer than a line; a wide letter counts as two.

    >>> shorten("pd1_unmatched_phase1_results.jsonl.gz", 20)
    'pd1_unmatc…jsonl.gz'
    """
    if _letters(text) <= longest:
        return text
    head, tail = text[:longest], text[-longest:]
    while _letters(head) > longest // 2:
        head = head[:-1]
    while _letters(tail) > longest - longest // 2 - 2:
        tail = tail[1:]
    return f"{head}…{tail}"


def _letters(text: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
