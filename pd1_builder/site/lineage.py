"""The lineage of a dataset as a drawing: raw files, versions made from them, priors trained on these.

Versions stand below each other, each below its parent. Their raw files are on the left, and the priors
trained on them on the right. So each arrow points to the right or down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pd1_builder.site.lineage_boxes import LINE, PAD, Arrow, Box, Drawing, Kind, height_of, width_of
from pd1_builder.version.manifest import FileDigest

_MOST_VERSIONS = 8
_MOST_LINES = 8
_BETWEEN_ROWS, _BETWEEN_BOXES, _BETWEEN_COLUMNS = 30.0, 10.0, 36.0
_BETWEEN_ARROWS, _BETWEEN_LANES, _INDENT = 12.0, 10.0, 16.0
# Distance from the top of a box to its first line, where the first arrow ends.
_FIRST = PAD + LINE / 2
# Room for the edge of a box at the border of the drawing.
_START = 1.0


@dataclass(frozen=True)
class Step:
    """A version in a lineage.

    Attributes:
      version: its number.
      parent: number of the version that it follows; None for the first.
      facts: lines of its box below the number.
      link: address of its page; empty for no link.
      raw_files: files that it is made from.
      priors: names of the priors trained on it.
      is_current: whether the drawing is about this version.
    """

    version: str
    parent: str | None
    facts: tuple[str, ...] = ()
    link: str = ""
    raw_files: tuple[FileDigest, ...] = ()
    priors: tuple[str, ...] = ()
    is_current: bool = False


@dataclass(frozen=True)
class _Row:
    """The row of a version, the row of its parent, and the number of lines of other versions that pass it."""

    step: Step
    kind: Kind
    parent: int | None
    passing: int

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.step.version, *self.step.facts)

    def link(self, part: str) -> str:
        return f"{self.step.link}#{part}" if self.step.link else ""


@dataclass(frozen=True)
class _Group:
    """Raw files that belong to the same rows, and the horizontal position of the arrow to the lower rows."""

    rows: tuple[int, ...]
    texts: tuple[str, ...]
    lane: float


@dataclass(frozen=True)
class _Columns:
    """Horizontal positions: raw files end at `raw`, versions are between `left` and `right`, then priors."""

    raw: float
    left: float
    right: float


def draw(steps: Sequence[Step]) -> Drawing:
    """Draw the lineage of versions of one dataset, at least one, the oldest first.

    Only the newest versions and the first files and priors are shown, with the number of the others. Raw
    files that belong to the same versions share a box.
    """
    rows = _rows(steps)
    groups, columns = _raw_groups(rows)
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    versions: list[Box] = []
    # The height at which the next arrow of each group branches off.
    sources: dict[_Group, float] = {}
    top = _START
    for index, row in enumerate(rows):
        reused = [group for group in groups if index in group.rows[1:]]
        own = [group for group in groups if index == group.rows[0]]
        # Arrows from above end above the arrows of the row itself, so that they do not cross.
        raw = _stack(own, row, columns, top + len(reused) * _BETWEEN_ARROWS)
        entries = [top + _FIRST + place * _BETWEEN_ARROWS for place in range(len(reused))]
        entries += [box.top + _FIRST for box in raw]
        version = _version(row, columns, top, max(entries, default=top))
        versions.append(version)
        for group, entry in zip(reused + own, entries, strict=True):
            is_new = group not in sources
            way = [(columns.raw, entry)] if is_new else [(group.lane, sources[group]), (group.lane, entry)]
            arrows.append(Arrow((*way, (version.left, entry))))
            sources[group] = entry
        if row.parent is not None:
            x = version.left + 0.75 * _INDENT
            arrows.append(Arrow(((x, versions[row.parent].bottom), (x, top))))
        priors = _priors(row, columns, top)
        arrows += [Arrow(((version.right, top + _FIRST), (box.left, top + _FIRST))) for box in priors]
        boxes += [version, *raw, *priors]
        top = max(box.bottom for box in (version, *raw, *priors)) + _BETWEEN_ROWS
    return Drawing(tuple(boxes), tuple(arrows), " ".join(map(_sentence, rows)))


def _stack(groups: Sequence[_Group], row: _Row, columns: _Columns, top: float) -> list[Box]:
    """The boxes of the groups of raw files that begin at a row, below each other."""
    boxes: list[Box] = []
    for group in groups:
        boxes.append(_box("raw", group.texts, row.link("raw"), _START, top, columns.raw - _START))
        top = boxes[-1].bottom + _BETWEEN_BOXES
    return boxes


def _version(row: _Row, columns: _Columns, top: float, last_entry: float) -> Box:
    """The box of a version, right of the lines that pass it and high enough for all arrows that end at it."""
    left = columns.left + row.passing * _INDENT
    height = max(height_of(row.texts), last_entry - top + PAD)
    return Box(
        row.kind, row.texts, row.step.link, left, top, columns.right - left, height, row.step.is_current
    )


def _priors(row: _Row, columns: _Columns, top: float) -> list[Box]:
    """The box of the priors trained on a version, or no box if there are none."""
    texts = _folded(row.step.priors)
    left = columns.right + _BETWEEN_COLUMNS
    return [_box("priors", texts, row.link("priors"), left, top, width_of(texts))] if texts else []


def _rows(steps: Sequence[Step]) -> list[_Row]:
    """The versions from top to bottom: a tree, where the oldest child and its descendants come first.

    In this order, a line from a parent to a child passes only rows of the parent's other children and their
    descendants. Of two lines, one passes either all rows that the other passes, or none. So no lines cross.
    """
    shown, earlier = list(steps[-_MOST_VERSIONS:]), steps[:-_MOST_VERSIONS]
    if earlier:
        what = "earlier version" if len(earlier) == 1 else "earlier versions"
        shown.insert(0, Step(f"{len(earlier)} {what}", None))
    places = dict.fromkeys((step.version for step in earlier), 0)
    places |= {step.version: place for place, step in enumerate(shown)}
    # A parent that is missing is left out, and so is one that is newer than its child, which no valid entry
    # has.
    parents = [places.get(step.parent or "", place) for place, step in enumerate(shown)]
    order: list[int] = []
    waiting = [place for place, parent in enumerate(parents) if parent >= place][::-1]
    while waiting:
        order.append(waiting.pop())
        waiting += [place for place, parent in enumerate(parents) if parent == order[-1] < place][::-1]
    row_of = {place: row for row, place in enumerate(order)}
    parent_of = {row: row_of[parents[place]] for row, place in enumerate(order) if parents[place] < place}
    return [
        _Row(
            shown[place],
            "earlier" if earlier and place == 0 else "version",
            parent_of.get(row),
            sum(parent < row < child for child, parent in parent_of.items()),
        )
        for row, place in enumerate(order)
    ]


def _raw_groups(rows: Sequence[_Row]) -> tuple[list[_Group], _Columns]:
    users: dict[tuple[str, str], list[int]] = {}
    for index, row in enumerate(rows):
        for file in dict.fromkeys((file.name, file.sha256) for file in row.step.raw_files):
            users.setdefault(file, []).append(index)
    names: dict[tuple[int, ...], list[str]] = {}
    for (name, _), indices in users.items():
        names.setdefault(tuple(indices), []).append(name)
    texts = {indices: _folded(of_group) for indices, of_group in names.items()}
    raw = _START + width_of(text for of_group in texts.values() for text in of_group) if texts else 0.0
    groups: list[_Group] = []
    lane = raw
    for indices, of_group in texts.items():
        lane += _BETWEEN_LANES if len(indices) > 1 else 0.0
        groups.append(_Group(indices, of_group, lane))
    left = lane + _BETWEEN_COLUMNS if texts else _START
    return groups, _Columns(
        raw, left, left + max(row.passing * _INDENT + width_of(row.texts) for row in rows)
    )


def _box(kind: Kind, texts: tuple[str, ...], link: str, left: float, top: float, width: float) -> Box:
    return Box(kind, texts, link, left, top, width, height_of(texts))


def _folded(texts: Sequence[str]) -> tuple[str, ...]:
    """The first lines, and how many more there are. A single further line is shown itself."""
    if len(texts) <= _MOST_LINES + 1:
        return tuple(texts)
    return (*texts[:_MOST_LINES], f"and {len(texts) - _MOST_LINES} more")


def _sentence(row: _Row) -> str:
    """What a row shows, in words."""
    step = row.step
    if row.kind == "earlier":
        return f"Not shown: {step.version}."
    files, priors = len(step.raw_files), len(step.priors)
    return (
        f"Version {step.version}"
        + (f" follows {step.parent} and" if step.parent else "")
        + f" is made from {files} raw file{'' if files == 1 else 's'}"
        + (f"; {priors} prior{'' if priors == 1 else 's'} trained on it." if priors else ".")
    )
