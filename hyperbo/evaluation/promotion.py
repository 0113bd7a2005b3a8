"""Whether a new prior, the challenger, is to take the place of the one in service, the champion.

The challenger is promoted only where it is strictly better: where the 95 % interval of the paired difference
in regret lies below zero (`hyperbo.evaluation.comparisons`), which is what a report calls lower regret.

What few seeds can mean: with two or three, the interval lies below zero exactly where the difference favours
the challenger with every seed, so of two equally good priors the new one passes with a probability of 1/4 and
1/8; with five, about 1/12 where differences are normal; with more it falls towards the 1/40 of an exact
interval. Of many challengers some pass by luck; a roll-back takes them out of service again.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.comparisons import PairedComparison
from hyperbo.evaluation.findings import count, findings
from hyperbo.evaluation.run_array import RunArray, missing_arms

# In a sentence; the evidence names all.
_MOST_NAMED = 3


@dataclass(frozen=True)
class Promotion:
    """A verdict on a challenger, and what it rests on.

    Attributes:
      promoted: whether the challenger is to take the champion's place.
      reason: a sentence for a reader.
      challenger: method of the new prior.
      champion: method of the prior in service; None where there is none.
      iteration: the budget of the comparison.
      missing: runs of the challenger that are not there.
      comparison: of the challenger with the champion, on what both completed; None without a champion.
    """

    promoted: bool
    reason: str
    challenger: str
    champion: str | None
    iteration: int
    missing: tuple[str, ...]
    comparison: PairedComparison | None

    def evidence(self) -> dict[str, Any]:
        """The comparison as plain JSON values, equal for equal records; None stands for NaN."""
        stated = {
            "challenger": self.challenger,
            "champion": self.champion,
            "iteration": self.iteration,
            "missing": list(self.missing),
        }
        if self.comparison is None:
            return stated
        compared = asdict(self.comparison) | {"per_seed": self.comparison.per_seed.tolist()}
        for name in ("first", "second"):
            del compared[name]
        return stated | {name: _plain(value) for name, value in compared.items()}


def verdict(regrets: RunArray, challenger: str, champion: str | None, iteration: int) -> Promotion:
    """Decide whether a challenger is promoted.

    Not promoted is one that is not strictly better, that lacks a run, that has no task in common with the
    champion, or whose comparison rests on a single seed. The first of a line has no champion to be compared
    with, and is promoted where its runs are complete.

    Args:
      regrets: regrets as run, missing runs included; where runs share a prior, those of
        `hyperbo.evaluation.regret.regrets_of_priors`.
      challenger: method of the new prior.
      champion: method of the prior in service; None where there is none.
      iteration: the budget, counted from 1.

    Returns:
      The verdict with its reason.

    Raises:
      InvalidInputError: a name or the iteration is unknown, or the two are one.
    """
    if challenger == champion:
        raise InvalidInputError(f"{challenger} is compared with itself", fix="name two methods")
    regrets.at(iteration)
    alone = regrets.select([challenger], regrets.tasks)
    missing = tuple(map(str, missing_arms(alone)))
    if champion is None:
        compared, better = None, True
        said = [f"{challenger} is the first prior of its line: there is none to compare it with."]
    else:
        (finding,) = findings(regrets.select([challenger, champion], regrets.tasks), challenger, iteration)
        (compared,) = finding.comparisons
        better = finding.verdict == "better"
        said = [finding.sentence]
        if compared.tasks:
            said.append(
                f"Compared on {count(len(compared.tasks), 'task')} with {count(len(compared.seeds), 'seed')}."
            )
        if len(compared.seeds) == 1:
            said.append("One seed gives no interval; at least two are needed.")
    if missing:
        said.append(f"Runs of the challenger are missing: {_first_few(missing)}.")
    return Promotion(
        better and not missing, " ".join(said), challenger, champion, iteration, missing, compared
    )


def _first_few(names: tuple[str, ...]) -> str:
    more = len(names) - _MOST_NAMED
    return "; ".join(names[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None
    return list(value) if isinstance(value, tuple) else value
