"""The drawing of a lineage: everything is there, nothing lies on anything else, and no arrow goes back."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pd1_builder.site.lineage import Step, draw
from pd1_builder.site.lineage_boxes import Box, shorten
from pd1_builder.version.manifest import FileDigest

Segment = tuple[tuple[float, float], tuple[float, float]]


def raw(name: str) -> FileDigest:
    return FileDigest(name, 1, name[0] * 64)


@st.composite
def histories(draw_from: st.DrawFn) -> list[Step]:
    """Versions, each with the parent of an earlier one, of none, or of one that is not here."""
    steps: list[Step] = []
    for index in range(draw_from(st.integers(1, 12))):
        known = [None, "9.9.9", *(step.version for step in steps)]
        steps.append(
            Step(
                version=f"{index}.0.0",
                parent=draw_from(st.sampled_from(known)),
                link=f"{index}.html",
                raw_files=tuple(raw(name) for name in draw_from(st.sets(st.sampled_from("abcdef")))),
                priors=tuple(f"line/p@{n}" for n in range(draw_from(st.integers(0, 11)))),
            )
        )
    return steps


def overlap(a: Box, b: Box) -> bool:
    return a.left < b.right and b.left < a.right and a.top < b.bottom and b.top < a.bottom


def inside(x: float, y: float, box: Box) -> bool:
    return box.left < x < box.right and box.top < y < box.bottom


def ends_at(point: tuple[float, float], box: Box) -> bool:
    """Whether a point lies on the edge of a box."""
    x, y = point
    within = box.left <= x <= box.right and box.top <= y <= box.bottom
    return within and not inside(x, y, box)


def lie_on(s: Segment, t: Segment) -> bool:
    """Whether two horizontal or two vertical segments have more than a point in common."""
    return any(
        s[0][fixed] == s[1][fixed] == t[0][fixed] == t[1][fixed]
        and s[0][free] < t[1][free]
        and t[0][free] < s[1][free]
        for fixed, free in ((0, 1), (1, 0))
    )


@given(histories())
def test_boxes_lie_apart_and_arrows_go_right_or_down_around_them(steps: list[Step]) -> None:
    drawing = draw(steps)
    boxes = drawing.boxes
    assert not any(overlap(a, b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])
    assert all(box.left >= 0 and box.top >= 0 for box in boxes)
    assert all(box.right < drawing.width and box.bottom < drawing.height for box in boxes)
    for arrow in drawing.arrows:
        assert any(ends_at(arrow.points[-1], box) for box in boxes)
        for (x0, y0), (x1, y1) in pairwise(arrow.points):
            assert (x0 == x1 and y0 < y1) or (y0 == y1 and x0 < x1)
            passed = [
                (x0 + (x1 - x0) * part, y0 + (y1 - y0) * part) for part in (0.01, 0.25, 0.5, 0.75, 0.99)
            ]
            assert not any(inside(x, y, box) for x, y in passed for box in boxes)


@given(histories())
def test_no_arrow_lies_on_another(steps: list[Step]) -> None:
    arrows = draw(steps).arrows
    for i, a in enumerate(arrows):
        for b in arrows[i + 1 :]:
            assert not any(lie_on(s, t) for s in pairwise(a.points) for t in pairwise(b.points))


@given(histories())
def test_an_arrow_for_every_relation_that_is_shown(steps: list[Step]) -> None:
    drawing = draw(steps)
    shown = steps[-8:]
    here = {step.version for step in steps}
    versions = {box.texts[0]: box for box in drawing.boxes if box.kind == "version"}
    assert set(versions) == {step.version for step in shown}
    starts = [arrow.points[0] for arrow in drawing.arrows]
    ends = [arrow.points[-1] for arrow in drawing.arrows]
    for step in shown:
        box = versions[step.version]
        # Arrows that end at its left: one for each set of its files that the same versions are made from.
        users = {tuple(each.version for each in shown if file in each.raw_files) for file in step.raw_files}
        assert sum(x == box.left and box.top <= y <= box.bottom for x, y in ends) == len(users)
        assert sum(y == box.top for _, y in ends) == (step.parent in here)
        assert sum(x == box.right and box.top <= y <= box.bottom for x, y in starts) == bool(step.priors)


def test_an_arrow_leads_from_the_parent_past_what_descends_from_its_other_children() -> None:
    steps = [
        Step("1.0.0", None),
        Step("1.0.1", "1.0.0"),
        Step("1.1.0", "1.0.0"),
        Step("1.1.1", "1.1.0"),
        Step("2.0.0", "1.0.0"),
    ]
    drawing = draw(steps)
    boxes = {box.texts[0]: box for box in drawing.boxes}
    assert [box.texts[0] for box in sorted(drawing.boxes, key=lambda box: box.top)] == list(boxes)
    parents = {}
    for arrow in drawing.arrows:
        (parent,) = [name for name, box in boxes.items() if box.bottom == arrow.points[0][1]]
        (child,) = [name for name, box in boxes.items() if box.top == arrow.points[-1][1]]
        parents[child] = parent
    assert parents == {step.version: step.parent for step in steps[1:]}
    # Two arrows pass 1.0.1, one passes 1.1.0 and 1.1.1.
    lefts = [boxes[step.version].left - boxes["1.0.0"].left for step in steps]
    assert lefts == [0.0, 2 * 16.0, 16.0, 16.0, 0.0]


def test_of_many_files_and_priors_the_first_are_shown_and_the_others_counted() -> None:
    files = tuple(FileDigest(f"trials_{n:02d}.csv", 1, f"{n:064x}") for n in range(45))
    step = Step("1.0.0", None, raw_files=files, priors=tuple(f"p{n}" for n in range(9)))
    texts = {box.kind: box.texts for box in draw([step]).boxes}
    assert texts["raw"] == (*(f"trials_{n:02d}.csv" for n in range(8)), "and 37 more")
    # A ninth line has room itself.
    assert texts["priors"] == step.priors


def test_of_many_versions_the_newest_are_shown_below_a_box_for_the_others() -> None:
    steps = [Step(f"1.{n}.0", f"1.{n - 1}.0" if n else None) for n in range(300)]
    drawing = draw(steps)
    first, *others = sorted(drawing.boxes, key=lambda box: box.top)
    assert (first.kind, first.texts) == ("earlier", ("292 earlier versions",))
    assert [box.texts[0] for box in others] == [f"1.{n}.0" for n in range(292, 300)]
    assert len(drawing.arrows) == 8
    assert drawing.description.startswith("Not shown: 292 earlier versions. Version 1.292.0 follows 1.291.0")


def test_versions_that_are_each_others_parents_are_shown() -> None:
    drawing = draw([Step("1.0.0", "2.0.0"), Step("2.0.0", "1.0.0"), Step("3.0.0", "3.0.0")])
    assert {box.texts[0] for box in drawing.boxes} == {"1.0.0", "2.0.0", "3.0.0"}
    assert len(drawing.arrows) == 1


def test_files_of_the_same_versions_share_a_box_whose_arrows_lead_to_all() -> None:
    old, new = raw("a.csv"), raw("b.csv")
    drawing = draw([Step("1.0.0", None, raw_files=(old,)), Step("1.1.0", "1.0.0", raw_files=(old, new))])
    assert sorted(box.texts for box in drawing.boxes if box.kind == "raw") == [("a.csv",), ("b.csv",)]
    boxes = {box.texts[0]: box for box in drawing.boxes}
    to_second = [arrow for arrow in drawing.arrows if arrow.points[-1][0] == boxes["1.1.0"].left]
    assert sum(arrow.points[-1][1] > boxes["1.1.0"].top for arrow in to_second) == 2


@given(st.text(st.characters(exclude_characters="…"), max_size=60), st.integers(10, 40))
def test_a_shortened_text_has_the_ends_of_the_whole(text: str, longest: int) -> None:
    short = shorten(text, longest)
    head, mark, tail = short.partition("…")
    assert text == short if not mark else text.startswith(head) and text.endswith(tail)
    assert len(short) <= longest


def test_a_wide_letter_counts_as_two() -> None:
    assert shorten("データ" * 4, 24) == "データ" * 4
    assert shorten("データ" * 4, 12) == "データ…ータ"
