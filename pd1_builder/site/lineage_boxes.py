"""The parts of a drawing: boxes of text and arrows between them. Lengths are in points."""

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
    """A line of text: the beginning of its baseline, the text, shortened if long, and the whole text."""

    x: float
    y: float
    text: str
    whole: str


@dataclass(frozen=True)
class Box:
    """A box with a line for each text. If `link` is not empty, the box is a link."""

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
        """Its right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.top + self.height

    @property
    def lines(self) -> Iterator[Line]:
        """Its texts, with their positions."""
        for index, text in enumerate(self.texts):
            yield Line(self.left + PAD, self.top + PAD + index * LINE + _BASELINE, shorten(text), text)


class Arrow(NamedTuple):
    """A line through points, with an arrowhead at the last one."""

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
    """Boxes, arrows, and a description of both in words."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    description: str

    @property
    def width(self) -> float:
        """Width of the drawing."""
        return max(box.right for box in self.boxes) + 1.0

    @property
    def height(self) -> float:
        """Height of the drawing."""
        return max(box.bottom for box in self.boxes) + 1.0


def width_of(texts: Iterable[str]) -> float:
    """Width of a box with these lines."""
    return max((_letters(shorten(text)) for text in texts), default=0) * _LETTER + 2 * PAD


def height_of(texts: Sequence[str]) -> float:
    """Height of a box with these lines."""
    return len(texts) * LINE + 2 * PAD


def shorten(text: str, longest: int = _LONGEST_LINE) -> str:
    """A text, without its middle if it is longer than a line. A wide letter counts as two.

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
