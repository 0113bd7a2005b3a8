"""The leaderboard page of a bundle: all numbers are computed from its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures.leaderboard import leaderboard
from hyperbo.evaluation.pages.arena import ArenaPage, DataLine, DivisionPage, MachineLine, write_arena_page
from hyperbo.storage.printable import printable
from hyperbo_flows.arena.bundle import Bundle, Seconds
from hyperbo_flows.arena.protocol import PROTOCOL, Division, Protocol
from hyperbo_flows.arena.scoring import score_division
from hyperbo_flows.arena.synthetic import SYNTHETIC
from hyperbo_flows.arena.verify import parts_of


def write_board(bundle: Bundle, path: Path, protocol: Protocol = PROTOCOL) -> list[DivisionPage]:
    """Write the page of a bundle, and return what it says of each division.

    Raises:
      InvalidInputError: the bundle is of another protocol, or a division has no method with every run.
    """
    found = parts_of(bundle, protocol)
    divisions = list(dict.fromkeys(division for division, _ in found))
    pages = [_division(bundle, division, protocol.baselines) for division in divisions]
    machines = tuple(
        MachineLine(
            f"machine {place + 1}",
            each["processor"],
            each["cores"],
            each["system"],
            ", ".join(f"{name} {version}" for name, version in each["libraries"].items()),
            each["code_version"],
            tuple(each["load"]),
        )
        for place, each in enumerate(bundle.machines)
    )
    write_arena_page(
        ArenaPage(
            bundle.protocol["number"],
            bundle.protocol["sha256"],
            protocol.baselines,
            tuple(pages),
            machines,
            tuple(sorted(bundle.sources)),
        ),
        path,
    )
    return pages


def _division(bundle: Bundle, division: Division, baselines: Sequence[str]) -> DivisionPage:
    parts = [part for part in division.parts if part.name in bundle.parts]
    scored = score_division(division, {part.name: bundle.parts[part.name] for part in parts})
    if scored.scores.empty:
        lacking = "; ".join(f"{printable(name, 80)}: {why}" for name, why in scored.incomplete.items())
        raise InvalidInputError(
            f"no method has every run ({lacking})",
            where=f"division {division.name}",
            fix=f"complete them with hyperbo arena run {division.name}",
        )
    board = leaderboard(scored.scores, baselines)
    first = bundle.parts[parts[0].name].metadata
    return DivisionPage(
        division.name,
        division.words,
        board,
        {
            method: reason
            for part in parts
            for method, reason in bundle.does_not_apply.get(part.name, {}).items()
        },
        scored.incomplete,
        clusters_in_words(division, len(board.clusters)),
        first.get("regret") == "normalised",
        tuple(DataLine(part.dataset, part.content_hash, part.preparation) for part in parts),
        first["protocol"],
        tuple(
            (f"machine {place + 1}", _seconds(machine["seconds"], [part.name for part in parts]))
            for place, machine in enumerate(bundle.machines)
        ),
    )


def clusters_in_words(division: Division, number: int) -> str:
    """How many clusters a division has, by the word for them: not of the protocol, whose hash is frozen."""
    if all(part.dataset == SYNTHETIC for part in division.parts):
        one, many = "family", "families"
    else:
        one = division.cluster.replace("_", " ")
        many = f"{one}s"
    return f"{number} {one if number == 1 else many}"


def _seconds(
    by_part: Mapping[str, Mapping[str, Seconds]], names: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """Mean seconds of a prior and of a choice over the parts of a division, by method."""
    found: dict[str, list[tuple[float, float]]] = {}
    for name in names:
        for method, each in by_part.get(name, {}).items():
            found.setdefault(method, []).append((each["prior"], each["choice"]))
    return {
        method: (sum(prior for prior, _ in each) / len(each), sum(choice for _, choice in each) / len(each))
        for method, each in found.items()
    }
