"""What the values of a column of statuses mean, guessed from their words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

_MEANINGS = (
    ("skip", r"running|waiting|pending|scheduled|queued|in_?progress|active|requested|created|started"),
    ("diverged", r"diverged?|nan|inf(inity)?|exploded"),
    ("infeasible", r"infeasible|fail(ed|ure)?|error(ed)?|crash(ed)?|killed|abort(ed)?|abandoned|time_?out|"
                   r"(memory|mem)_?out|oom|pruned|stopped|early_?stopped|invalid|cancell?ed"),
    ("done", r"done|completed?|finished|succe(ss|eded)|terminated|ok|ended"),
)  # fmt: skip


def guess_statuses(column: str, seen: Sequence[str]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The table `status` of a space file for a column, and comments.

    Args:
      column: its name.
      seen: its values, one for each trial.

    >>> guess_statuses("state", ["COMPLETE", "FAIL", "RUNNING", "COMPLETE"])[0]
    {'column': 'state', 'done': ('COMPLETE',), 'diverged': (), 'infeasible': ('FAIL',), 'skip': ('RUNNING',)}
    """
    counts = Counter(seen)
    found: dict[str, list[str]] = {"done": [], "diverged": [], "infeasible": [], "skip": []}
    unknown = []
    for value in counts:
        plain = re.sub(r"[^a-z]+", "_", value.lower()).strip("_")
        meaning = next((name for name, pattern in _MEANINGS if re.fullmatch(pattern, plain)), "")
        found[meaning or "infeasible"].append(value)
        if not meaning:
            unknown.append(value)
    listed = ", ".join(f"{count} {value}" for value, count in sorted(counts.items()))
    notes = [f"Guess: the words say how trials ended; there are {listed}."]
    if unknown:
        notes.append(
            f"What {', '.join(map(repr, unknown[:8]))} means is not known: it is listed under infeasible."
        )
    return {"column": column, **{name: tuple(values) for name, values in found.items()}}, tuple(notes)
