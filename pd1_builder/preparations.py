"""Preparations: what a reader makes of a version, named and frozen; every study of PD1 had its own."""

from __future__ import annotations

from dataclasses import dataclass

from hyperbo.errors import InvalidInputError


@dataclass(frozen=True)
class Preparation:
    """A named reading of a version. Trials without `y`, diverged or without a value, are left out of tasks.

    Attributes:
      name: part of the provenance of everything made from it.
      source: who read the data so.
      phases: phases whose trials count; a task and input run in several counts once for each.
    """

    name: str
    source: str
    phases: tuple[int, ...]


PREPARATIONS: dict[str, Preparation] = {
    preparation.name: preparation
    for preparation in (
        Preparation(
            "paper",
            source="Wang et al., JMLR 25 (2024): both phases, rows without a value dropped",
            phases=(0, 1),
        ),
    )
}


def preparation(name: str) -> Preparation:
    """Look a preparation up by name.

    Raises:
      InvalidInputError: there is none of that name.
    """
    if name not in PREPARATIONS:
        raise InvalidInputError(f"unknown preparation {name!r}", fix=f"use one of {', '.join(PREPARATIONS)}")
    return PREPARATIONS[name]
