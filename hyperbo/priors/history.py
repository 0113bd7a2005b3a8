"""A line of priors: its decisions, the prior in service, and the file `current.json` that holds both."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import StringConstraints

from hyperbo.errors import InvalidInputError
from hyperbo.storage.validation import validated, without_format

FORMAT = 1
PRIOR_ID = re.compile(r"[0-9a-f]{16}")

Action = Literal["promoted", "held_back", "rolled_back"]


@dataclass(frozen=True)
class PriorDecision:
    """A decision on a prior: it goes into service, is held back, or is rolled back.

    Attributes:
      prior: identifier of the prior; of a roll-back, the prior that was taken out of service.
      action: `promoted`, `held_back` or `rolled_back`.
      at: time of the decision, UTC, ISO 8601.
      reason: a sentence for a reader.
      evidence: plain JSON values on which the decision rests.
    """

    prior: Annotated[str, StringConstraints(pattern=f"^{PRIOR_ID.pattern}$")]
    action: Action
    at: str
    reason: str
    evidence: Mapping[str, Any]

    def repeats(self, other: PriorDecision) -> bool:
        """Whether this decision equals the other in prior, action and evidence."""
        return (self.prior, self.action, self.evidence) == (other.prior, other.action, other.evidence)


@dataclass(frozen=True)
class Line:
    """A line of priors: one job, such as tuning with H-NLL on PD1 mini, and the priors made for it.

    Attributes:
      name: such as `pd1-mini/h-nll`.
      current: identifier of the prior in service; None where there is none.
      history: the decisions, oldest first.
    """

    name: str
    current: str | None = None
    history: tuple[PriorDecision, ...] = ()

    @property
    def in_service_by(self) -> PriorDecision | None:
        """The decision that put the current prior in service; None where there is none."""
        return next((each for each in reversed(self.history) if each.action != "held_back"), None)

    def after(self, decision: PriorDecision) -> Line:
        """The line with one more decision.

        Raises:
          InvalidInputError: the decision rolls back a prior that is not in service, or the first one.
        """
        history = (*self.history, decision)
        return Line(self.name, _last(served(history)), history)


@dataclass(frozen=True)
class _Stored:
    """The content of `current.json` but for its format."""

    current: str | None
    history: tuple[PriorDecision, ...]


def decide(prior: str, action: Action, reason: str, evidence: Mapping[str, Any]) -> PriorDecision:
    """Make a decision, dated now.

    Raises:
      InvalidInputError: the evidence is not plain JSON.
    """
    try:
        # The values as they are read back: a tuple becomes a list, and keys become text.
        plain = json.loads(json.dumps(evidence, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"the evidence is not plain JSON: {error}", where=f"decision on prior {prior}"
        ) from error
    return PriorDecision(prior, action, datetime.now(UTC).isoformat(timespec="seconds"), reason, plain)


def served(history: Iterable[PriorDecision]) -> tuple[str, ...]:
    """The prior in service and the earlier ones that a roll-back returns to; the prior in service is last.

    A promotion of the prior in service adds nothing. A roll-back removes the last prior.

    Raises:
      InvalidInputError: a decision rolls back a prior that was not in service, or the first one.

    >>> promoted = [PriorDecision(prior, "promoted", "", "", {}) for prior in "aab"]
    >>> served(promoted), served([*promoted, PriorDecision("b", "rolled_back", "", "", {})])
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
    stored = {"format": FORMAT} | asdict(_Stored(line.current, line.history))
    return json.dumps(stored, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def from_json(name: str, content: bytes, *, where: str) -> Line:
    """Read what `to_json` wrote about the line of that name; `where` names the file in messages.

    Raises:
      InvalidInputError: the file is damaged, or contradicts itself.
      VersionConflictError: the format is another.
    """
    try:
        stored = validated(_Stored, without_format(json.loads(content), FORMAT, where), "")
        if stored.current != _last(served(stored.history)):
            raise InvalidInputError(f"its history does not lead to the prior {stored.current!r}")
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"damaged: {error}",
            where=where,
            fix="restore it from a copy, or remove it: the priors stay, but none of them is in service then",
        ) from error
    return Line(name, stored.current, stored.history)
