"""The decisions on the priors of a line, the prior in service by them, and `current.json` with both."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from hyperbo.errors import InvalidInputError, VersionConflictError

FORMAT = 1
PRIOR_ID = re.compile(r"[0-9a-f]{16}")

Action = Literal["promoted", "held_back", "rolled_back"]


@dataclass(frozen=True)
class Decision:
    """What was decided on a prior.

    Attributes:
      prior: identifier of the prior; of a roll-back, the one that was taken out of service.
      action: `promoted`, `held_back` or `rolled_back`.
      at: time of the decision, UTC, ISO 8601.
      reason: a sentence for a reader.
      evidence: plain JSON values that the decision rests on.
    """

    prior: str
    action: Action
    at: str
    reason: str
    evidence: Mapping[str, Any]

    def repeats(self, other: Decision) -> bool:
        """Whether this is the other decision once more: on the same prior, with the same evidence."""
        return (self.prior, self.action, self.evidence) == (other.prior, other.action, other.evidence)


@dataclass(frozen=True)
class Line:
    """A line: one job that priors are promoted for.

    Attributes:
      name: such as `pd1-mini/h-nll`.
      current: identifier of the prior in service; None where there is none.
      history: the decisions, oldest first.
    """

    name: str
    current: str | None = None
    history: tuple[Decision, ...] = ()

    @property
    def in_service_by(self) -> Decision | None:
        """The decision that put the current prior in service; None where there is none."""
        return next((each for each in reversed(self.history) if each.action != "held_back"), None)

    def after(self, decision: Decision) -> Line:
        """The line once a decision is made.

        Raises:
          InvalidInputError: as `served`.
        """
        history = (*self.history, decision)
        return Line(self.name, _last(served(history)), history)


def decide(prior: str, action: Action, reason: str, evidence: Mapping[str, Any]) -> Decision:
    """Make a decision now.

    Raises:
      InvalidInputError: the evidence is not plain JSON.
    """
    try:
        # As it is read back: a tuple is a list, and the keys are text.
        plain = json.loads(json.dumps(evidence, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"the evidence is not plain JSON: {error}", where=f"decision on prior {prior}"
        ) from error
    return Decision(prior, action, datetime.now(UTC).isoformat(timespec="seconds"), reason, plain)


def served(history: Iterable[Decision]) -> tuple[str, ...]:
    """The priors that rolling back goes through, the one in service last.

    A promotion of the prior in service adds nothing; a roll-back takes the last one away.

    Raises:
      InvalidInputError: a roll-back is of a prior that was not in service, or that had none before it.

    >>> promoted = [Decision(prior, "promoted", "", "", {}) for prior in "aab"]
    >>> served(promoted), served([*promoted, Decision("b", "rolled_back", "", "", {})])
    (('a', 'b'), ('a',))
    """
    priors: list[str] = []
    for decision in history:
        if decision.action == "promoted" and decision.prior != _last(priors):
            priors.append(decision.prior)
        elif decision.action == "rolled_back":
            if len(priors) < 2 or decision.prior != priors[-1]:
                raise InvalidInputError(f"prior {decision.prior} cannot be rolled back after {priors}")
            priors.pop()
    return tuple(priors)


def _last(priors: list[str] | tuple[str, ...]) -> str | None:
    return priors[-1] if priors else None


def to_json(line: Line) -> bytes:
    """The content of `current.json`."""
    stored = {"format": FORMAT, "current": line.current, "history": [asdict(each) for each in line.history]}
    return json.dumps(stored, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def from_json(name: str, content: bytes, *, where: str) -> Line:
    """Read what `to_json` wrote.

    Args:
      name: of the line.
      content: of the file.
      where: the file, for messages.

    Raises:
      InvalidInputError: the file is damaged, or contradicts itself.
      VersionConflictError: the format is another.
    """
    try:
        stored = json.loads(content)
        if stored["format"] != FORMAT:
            raise VersionConflictError(
                f"{where}: format {stored['format']!r}, this version reads format {FORMAT}"
            )
        history = tuple(map(_decision, stored["history"]))
        if stored["current"] != _last(served(history)):
            raise InvalidInputError(f"its history does not lead to the prior {stored['current']!r}")
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(
            f"damaged: {error!r}",
            where=where,
            fix="put a copy of it back; or move it away: the priors stay, but none of them is in service",
        ) from error
    return Line(name, stored["current"], history)


def _decision(stored: Any) -> Decision:
    types = {field.name: dict if field.name == "evidence" else str for field in fields(Decision)}
    if (
        not isinstance(stored, dict)
        or stored.keys() != types.keys()
        or not all(isinstance(stored[name], kind) for name, kind in types.items())
        or not PRIOR_ID.fullmatch(stored["prior"])
        or stored["action"] not in get_args(Action)
    ):
        raise InvalidInputError(f"a decision is {stored!r}")
    return Decision(**stored)
