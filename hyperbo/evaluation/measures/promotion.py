"""Whether a new prior, the challenger, replaces the prior in service, the champion.

The challenger is promoted only if it is strictly better: if the 95 % interval of the paired difference in
regret lies below zero (`hyperbo.evaluation.measures.comparisons`). A report calls this lower regret.

With few seeds, chance matters. With two or three, the interval lies below zero exactly if the challenger is
better with every seed. So of two equally good priors the new one passes with probability 1/4 or 1/8. With
five seeds the probability is about 1/12 if differences are normal; with more seeds it falls towards 1/40,
that of an exact interval. Among many challengers some pass by luck; a roll-back takes them out of service
again.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures.comparisons import PairedComparison
from hyperbo.evaluation.measures.findings import findings_about
from hyperbo.evaluation.records.run_array import RunArray, missing_arms
from hyperbo.storage.printable import count

# Missing runs named in the reason; the evidence names all.
_MOST_NAMED = 3


@dataclass(frozen=True)
class PromotionDecision:
    """Whether a challenger is promoted, and why.

    Attributes:
      promoted: whether the challenger replaces the champion.
      reason: the reason, in sentences.
      challenger: method of the new prior.
      champion: method of the prior in service; None if there is none.
      iteration: the budget of the comparison.
      missing: missing runs of the challenger.
      comparison: comparison of the challenger with the champion; None without a champion.
    """

    promoted: bool
    reason: str
    challenger: str
    champion: str | None
    iteration: int
    missing: tuple[str, ...]
    comparison: PairedComparison | None

    def evidence(self) -> dict[str, Any]:
        """The decision as plain JSON values, equal for equal records; NaN becomes None."""
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


def decide_promotion(
    regrets: RunArray, challenger: str, champion: str | None, iteration: int
) -> PromotionDecision:
    """Decide whether a challenger is promoted.

    A challenger is not promoted if it is not strictly better, lacks a run, has no task in common with the
    champion, or is compared with a single seed. Without a champion, it is promoted if its runs are complete.

    Args:
      regrets: regrets by prior (`hyperbo.evaluation.measures.regret.regrets_of_priors`), missing runs
        included.
      challenger: method of the new prior.
      champion: method of the prior in service; None if there is none.
      iteration: the budget, counted from 1.

    Returns:
      The decision with its reason.

    Raises:
      InvalidInputError: a method or the iteration is unknown, or challenger and champion are the same.
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
        (finding,) = findings_about(
            regrets.select([challenger, champion], regrets.tasks), challenger, iteration
        )
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
    return PromotionDecision(
        better and not missing, " ".join(said), challenger, champion, iteration, missing, compared
    )


def _first_few(names: tuple[str, ...]) -> str:
    more = len(names) - _MOST_NAMED
    return "; ".join(names[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None
    return list(value) if isinstance(value, tuple) else value
