"""What an evaluation found, in sentences computed from its numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from hyperbo.evaluation.comparisons import TIE_TOLERANCE, PairedComparison, paired_comparison
from hyperbo.evaluation.regret import regret_curves
from hyperbo.evaluation.run_array import RunArray, comparable

HEADLINE_BUDGET = 10

Verdict = Literal["better", "worse", "undecided", "missing"]


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


def headline(regrets: RunArray, unit: str = "seed") -> str:
    """State the regret of every method after 10 iterations, or after the last of a shorter run.

    Args:
      regrets: regrets as run, missing runs included; the numbers are over `comparable(regrets)`, and the
        sentence says what that leaves out.
      unit: what one of their seeds is to a reader (`hyperbo.evaluation.metadata.run_unit`).

    Raises:
      InvalidInputError: no task was completed by all methods.
    """
    compared = comparable(regrets)
    budget = min(HEADLINE_BUDGET, compared.iterations)
    curves = regret_curves(compared)
    levels = [
        f"{method} {number(median)} [{number(lower)}, {number(upper)}]"
        for method, median, lower, upper in zip(
            compared.methods,
            curves.median[:, budget - 1],
            curves.lower[:, budget - 1],
            curves.upper[:, budget - 1],
            strict=True,
        )
    ]
    missing = [f"{method} missing" for method in regrets.methods if method not in compared.methods]
    tasks, seeds = _some(len(compared.tasks), len(regrets.tasks), "task"), count(len(regrets.seeds), unit)
    return (
        f"After {count(budget, 'iteration')}, the mean simple regret over {tasks} "
        f"(median over {seeds}, with the 20th and 80th percentile) is: {', '.join(levels + missing)}."
    )


def findings(regrets: RunArray, method: str) -> tuple[Finding, ...]:
    """Compare a method with every other at the headline's budget, and say which is better.

    A difference counts only where its 95 % bootstrap interval over seeds excludes zero. Each comparison is
    over what its own two methods completed.

    Args:
      regrets: regrets as run, missing runs included.
      method: the method that the findings are about.

    Raises:
      InvalidInputError: the method is unknown.
    """
    regrets.method_index(method)
    budget = min(HEADLINE_BUDGET, regrets.iterations)
    return tuple(
        _finding(paired_comparison(regrets, method, other, budget))
        for other in regrets.methods
        if other != method
    )


def _some(part: int, whole: int, noun: str) -> str:
    return count(whole, noun) if part == whole else f"{part} of {count(whole, noun)}"


def _finding(compared: PairedComparison) -> Finding:
    first, second = compared.first, compared.second
    if not compared.tasks:
        return Finding(compared, "missing", f"{first} and {second} have no completed task in common.")
    verdict: Verdict = "undecided"
    # Methods that do the same differ by rounding, and that alike with every seed.
    if compared.upper < -TIE_TOLERANCE:
        verdict = "better"
    elif compared.lower > TIE_TOLERANCE:
        verdict = "worse"
    claim = {
        "better": f"{first} has lower regret than {second}",
        "worse": f"{first} is not better than {second}: it has higher regret",
        "undecided": f"{first} and {second} cannot be told apart",
    }[verdict]
    interval = "with a single seed there is no interval"
    if not math.isnan(compared.lower):
        ends = f"[{number(compared.lower)}, {number(compared.upper)}]"
        test = f"sign-flip p {number(compared.p_value)}"
        interval = f"95\N{NO-BREAK SPACE}% bootstrap interval over seeds {ends}, {test}"
    tasks = _some(len(compared.tasks), len(compared.tasks) + len(compared.missing_tasks), "task")
    seeds = _some(len(compared.seeds), len(compared.seeds) + len(compared.missing_seeds), "seed")
    tally = compared.by_task
    losses = f"{tally.losses} {'loss' if tally.losses == 1 else 'losses'}"
    return Finding(
        compared,
        verdict,
        f"{claim} after {count(compared.iteration, 'iteration')}: mean difference "
        f"{number(compared.difference)}, {interval}; over {tasks} and {seeds}, by task "
        f"{count(tally.wins, 'win')}, {count(tally.ties, 'tie')}, {losses}.",
    )
