"""The page of an arena: a leaderboard for each division, in one self-contained HTML file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from hyperbo.evaluation.measures.comparisons import TIE_TOLERANCE
from hyperbo.evaluation.measures.findings import WITHOUT_MODEL, number
from hyperbo.evaluation.measures.leaderboard import Estimate, Leaderboard, shared_lowest, simplest_ahead_of
from hyperbo.evaluation.pages.context import METHOD_LINES
from hyperbo.evaluation.pages.report import page_environment
from hyperbo.storage.atomic import write_atomically
from hyperbo.storage.printable import count

_STYLES = ("report.css", "arena.css")


@dataclass(frozen=True)
class DataLine:
    """A dataset version of a division: its reference, content hash and preparation."""

    dataset: str
    content_hash: str
    preparation: str


@dataclass(frozen=True)
class MachineLine:
    """A machine that runs were made on."""

    name: str
    processor: str
    cores: int
    system: str
    libraries: str
    code_version: str
    load: tuple[float, ...]


@dataclass(frozen=True)
class DivisionPage:
    """A division on the page.

    Attributes:
      name: its name.
      words: what is learned from and tested.
      board: its leaderboard.
      does_not_apply: methods that were not run, and why.
      incomplete: methods that lack runs, and how many.
      clusters: how many clusters of which kind.
      normalised: whether regret is divided by the range of the task.
      data: its dataset versions.
      protocol: folds, candidates and repeats in words.
      seconds: by machine and method, seconds of pre-training by prior, and of a choice.
    """

    name: str
    words: str
    board: Leaderboard
    does_not_apply: Mapping[str, str]
    incomplete: Mapping[str, str]
    clusters: str
    normalised: bool
    data: tuple[DataLine, ...]
    protocol: str
    seconds: tuple[tuple[str, Mapping[str, tuple[float, float]]], ...]


@dataclass(frozen=True)
class ArenaPage:
    """What the page shows: the protocol by number and hash, the divisions, the machines, and whose methods.

    Attributes:
      number: of the protocol.
      sha256: of the protocol.
      baselines: methods that all others are compared with.
      divisions: in their order.
      machines: where runs were made.
      strangers: methods that are not of the project.
    """

    number: int
    sha256: str
    baselines: tuple[str, ...]
    divisions: tuple[DivisionPage, ...]
    machines: tuple[MachineLine, ...]
    strangers: tuple[str, ...]


def write_arena_page(page: ArenaPage, path: Path) -> None:
    """Write the page, atomically."""
    write_atomically(path, render_arena_page(page).encode())


def render_arena_page(page: ArenaPage) -> str:
    """The text of the page that `write_arena_page` writes; equal results give equal text."""
    environment = page_environment()
    environment.filters.update(interval=interval, verdict=verdict)
    style, script = (
        Markup("".join(environment.get_template(name).render() for name in names))
        for names in (_STYLES, ("arena.js",))
    )
    return environment.get_template("arena.html").render(
        page=page,
        style=style,
        script=script,
        style_hash=_policy_hash(style),
        script_hash=_policy_hash(script),
        simplest={each.name: simplest_sentence(each.board) for each in page.divisions},
        method_lines=METHOD_LINES,
    )


def simplest_sentence(board: Leaderboard) -> str:
    """Whether a method of the project without a model is ahead of all others, in a sentence or two."""
    simple = [method for method in board.methods if method in WITHOUT_MODEL]
    if len(simple) == len(board.methods):
        return f"No method here has a model: {', '.join(simple)}."
    ahead = simplest_ahead_of(board, simple)
    shared = "; ".join(
        f"after {count(budget, 'trial')} {', '.join(lowest[:-1])} and {lowest[-1]} share the lowest mean "
        f"regret, {number(board.standings[budget, lowest[0]].regret.mean)}"
        for budget, lowest in shared_lowest(board, simple)
    )
    shared = f" A tie: {shared}." if shared else ""
    if not ahead:
        return (
            f"No method without a model ({', '.join(simple)}) is ahead of all others in mean regret at any "
            f"budget.{shared}"
        )
    told = []
    for budget, method, rival, beyond in ahead:
        standing, other = board.standings[budget, method], board.standings[budget, rival]
        told.append(
            f"after {count(budget, 'trial')} {method} has {number(standing.regret.mean)} and {rival}, the "
            f"best of the others, {number(other.regret.mean)} "
            f"({'a difference beyond chance' if beyond else 'not told apart'})"
        )
    return f"A method without a model is ahead of all others: {'; '.join(told)}.{shared}"


def interval(estimate: Estimate, *, floor: float | None = None) -> str:
    """The interval of an estimate for a reader; empty where there is none.

    >>> interval(Estimate(0.2, -0.1, 0.5), floor=0.0)
    '[0, 0.5]'
    """
    if estimate.lower != estimate.lower:
        return ""
    lower = estimate.lower if floor is None else max(estimate.lower, floor)
    return f"[{number(lower, 2)}, {number(estimate.upper, 2)}]"


def verdict(difference: Estimate) -> str:
    """What an interval of a difference says: ahead (less regret), behind, or nothing.

    >>> verdict(Estimate(-0.2, -0.3, -0.1)), verdict(Estimate(-0.2, -0.5, 0.1))
    ('ahead', 'not told apart')
    """
    if difference.upper < -TIE_TOLERANCE:
        return "ahead"
    return "behind" if difference.lower > TIE_TOLERANCE else "not told apart"


def _policy_hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
