"""What an evaluation found, in sentences computed from its numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from hyperbo.evaluation.regret import regret_curves
from hyperbo.evaluation.run_array import RunArray
from hyperbo.evaluation.tables import PairedComparison, paired_comparison

HEADLINE_BUDGET = 10

Verdict = Literal["better", "worse", "undecided"]


@dataclass(frozen=True)
class Finding:
    """A comparison with its verdict and the sentence that states it."""

    comparison: PairedComparison
    verdict: Verdict
    sentence: str


def number(value: float, digits: int = 3) -> str:
    """A number for a reader: so many significant digits, a true minus sign, a dash for none.

    >>> number(0.012345), number(1234567.0)
    ('0.0123', '1.23e+06')
    """
    if math.isnan(value):
        return "\N{EN DASH}"
    text = f"{abs(value):.{digits}g}"
    return f"\N{MINUS SIGN}{text}" if value < 0 else text


def count(quantity: int, noun: str) -> str:
    """A quantity with its noun.

    >>> count(1, "seed"), count(5, "task")
    ('1 seed', '5 tasks')
    """
    return f"{quantity} {noun}{'' if quantity == 1 else 's'}"


def headline(regrets: RunArray) -> str:
    """State the regret of every method after 10 iterations, or after the last of a shorter run.

    Raises:
      InvalidInputError: a run is missing.
    """
    budget = min(HEADLINE_BUDGET, regrets.iterations)
    curves = regret_curves(regrets)
    levels = [
        f"{method} {number(median)} [{number(lower)}, {number(upper)}]"
        for method, median, lower, upper in zip(
            regrets.methods,
            curves.median[:, budget - 1],
            curves.lower[:, budget - 1],
            curves.upper[:, budget - 1],
            strict=True,
        )
    ]
    tasks, seeds = count(len(regrets.tasks), "task"), count(len(regrets.seeds), "seed")
    return (
        f"After {count(budget, 'iteration')}, the mean simple regret over {tasks} "
        f"(median over {seeds}, with the 20th and 80th percentile) is: {', '.join(levels)}."
    )


def findings(regrets: RunArray, method: str) -> tuple[Finding, ...]:
    """Compare a method with every other at the headline's budget, and say which is better.

    A difference counts only where its 95 % bootstrap interval over seeds excludes zero.

    Raises:
      InvalidInputError: a run is missing, or the method is unknown.
    """
    regrets.method_index(method)
    budget = min(HEADLINE_BUDGET, regrets.iterations)
    return tuple(
        _finding(paired_comparison(regrets, method, other, budget))
        for other in regrets.methods
        if other != method
    )


def _finding(compared: PairedComparison) -> Finding:
    verdict: Verdict = "undecided"
    if compared.upper < 0:
        verdict = "better"
    elif compared.lower > 0:
        verdict = "worse"
    first, second = compared.first, compared.second
    claim = {
        "better": f"{first} has lower regret than {second}",
        "worse": f"{first} is not better than {second}: it has higher regret",
        "undecided": f"{first} and {second} cannot be told apart",
    }[verdict]
    interval = "with a single seed there is no interval"
    if not math.isnan(compared.lower):
        ends = f"[{number(compared.lower)}, {number(compared.upper)}]"
        interval = f"95\N{NO-BREAK SPACE}% bootstrap interval over seeds {ends}"
    runs = compared.wins + compared.ties + compared.losses
    return Finding(
        compared,
        verdict,
        f"{claim} after {count(compared.iteration, 'iteration')}: mean difference "
        f"{number(compared.difference)}, {interval}; of {count(runs, 'run')} paired by task and seed, "
        f"{count(compared.wins, 'win')}, {count(compared.ties, 'tie')}, "
        f"{compared.losses} {'loss' if compared.losses == 1 else 'losses'}.",
    )
