"""Findings of an evaluation: sentences computed from its numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hyperbo.evaluation.measures.comparisons import TIE_TOLERANCE, PairedComparison, paired_comparison
from hyperbo.evaluation.measures.regret import regret_curves
from hyperbo.evaluation.records.metadata import EvaluationMetadata, method_of
from hyperbo.evaluation.records.run_array import RunArray, comparable
from hyperbo.storage.printable import count

EARLY_BUDGET = 10

Verdict = Literal["better", "undecided", "worse", "missing"]
_CLAIMS: Mapping[Verdict, str] = {
    "better": "has lower regret than",
    "undecided": "cannot be told apart from",
    "worse": "has higher regret than",
    "missing": "has no completed task in common with",
}
# Of `hyperbo.methods.METHODS`: the simplest use of the training tasks, all that order their inputs, and all
# methods without a model.
_SIMPLEST = "Best-average"
_ORDERS = (_SIMPLEST, "Portfolio")
WITHOUT_MODEL = (*_ORDERS, "Box-Rand", "Default-Rand", "Rand")
# From this number on, an exponent is written.
_LARGEST_PLAIN = 1e6


@dataclass(frozen=True)
class Finding:
    """The comparisons of a method after one budget that have the same verdict, and their sentence."""

    verdict: Verdict
    comparisons: tuple[PairedComparison, ...]
    sentence: str


def number(value: float, digits: int = 3) -> str:
    """A number for a reader, with so many significant digits, a true minus sign, and a dash for NaN.

    Digits before the point are never rounded away below a million.

    >>> number(0.012345), number(203.4, 2), number(1234567.0)
    ('0.0123', '203', '1.23e+06')
    """
    if math.isnan(value):
        return "\N{EN DASH}"
    size = abs(value)
    text = f"{size:.{digits}g}"
    if "e+" in text and size < _LARGEST_PLAIN:
        text = f"{size:.0f}"
    return f"\N{MINUS SIGN}{text}" if value < 0 else text


def budgets_of_findings(iterations: int) -> tuple[int, ...]:
    """The budgets at which methods are compared: an early one and the last one.

    >>> budgets_of_findings(100), budgets_of_findings(7)
    ((10, 100), (7,))
    """
    return tuple(sorted({min(EARLY_BUDGET, iterations), iterations}))


def headline(regrets: RunArray, iteration: int, unit: str = "seed") -> str:
    """The regret of every method after an iteration, as a sentence.

    Args:
      regrets: regrets, missing runs included. The numbers are over `comparable(regrets)`; the sentence names
        what is left out.
      iteration: the budget, counted from 1.
      unit: the noun for a seed (`run_unit` of the metadata).

    Raises:
      InvalidInputError: no task was completed by all methods.
    """
    compared = comparable(regrets)
    curves = regret_curves(compared)
    several = len(regrets.seeds) > 1
    levels = [
        f"{method} {number(median)}" + (f" [{number(lower)}, {number(upper)}]" if several else "")
        for method, median, lower, upper in zip(
            compared.methods,
            curves.median[:, iteration - 1],
            curves.lower[:, iteration - 1],
            curves.upper[:, iteration - 1],
            strict=True,
        )
    ]
    missing = [f"{method} missing" for method in regrets.methods if method not in compared.methods]
    tasks, over = _some(len(compared.tasks), len(regrets.tasks), "task"), count(len(regrets.seeds), unit)
    if several:
        over = f"median over {over}, with the 20th and 80th percentile"
    return (
        f"After {count(iteration, 'iteration')}, the mean simple regret over {tasks} "
        f"({over}) is: {', '.join(levels + missing)}."
    )


def simplest_ahead(regrets: RunArray, metadata: EvaluationMetadata) -> str | None:
    """The sentence that best-average order is ahead of all models, where it is at a budget of the findings.

    It is ahead where an arm of the method Best-average has a lower regret than every arm of another method,
    a portfolio left out: that orders the same inputs. Regret is the number of `headline`. Where no arm has a
    model, nothing is said.

    Args:
      regrets: regrets, missing runs included.
      metadata: what the arms are; the methods' labels are those of the regrets.

    Raises:
      InvalidInputError: no task was completed by all methods.
    """
    compared = comparable(regrets)
    methods = [method_of(metadata, label) for label in compared.methods]
    simple = [row for row, method in enumerate(methods) if method == _SIMPLEST]
    others = [row for row, method in enumerate(methods) if method not in _ORDERS]
    if not simple or set(methods) <= set(WITHOUT_MODEL):
        return None
    median, said = regret_curves(compared).median, []
    for iteration in budgets_of_findings(compared.iterations):
        levels = median[:, iteration - 1]
        first, second = (min(rows, key=lambda row: levels[row]) for rows in (simple, others))
        if levels[first] < levels[second] - TIE_TOLERANCE:
            said.append(
                f"after {count(iteration, 'iteration')} {compared.methods[first]} has the mean simple regret "
                f"{number(levels[first])}, and the best of the others, {compared.methods[second]}, has "
                f"{number(levels[second])}"
            )
    if not said:
        return None
    return (
        "The simplest use of the training tasks, to try inputs in the order of their average value, is ahead "
        f"of all models: {'; '.join(said)}."
    )


def findings_about(regrets: RunArray, method: str, iteration: int) -> tuple[Finding, ...]:
    """Compare a method with every other after an iteration, counted from 1; missing runs are allowed.

    A method is better or worse only if the 95 % bootstrap interval of the difference over seeds excludes
    zero. Each comparison is over the tasks and seeds that its two methods completed.

    Returns:
      One finding for each verdict that occurs: better, undecided, worse, missing. Every other method belongs
      to one of them.

    Raises:
      InvalidInputError: the method or the iteration is unknown.
    """
    regrets.method_index(method)
    by_verdict: dict[Verdict, list[PairedComparison]] = {verdict: [] for verdict in _CLAIMS}
    for other in regrets.methods:
        if other != method:
            compared = paired_comparison(regrets, method, other, iteration)
            by_verdict[_verdict(compared)].append(compared)
    after = f"After {count(iteration, 'iteration')}, {method}"
    return tuple(
        Finding(
            verdict,
            tuple(comparisons),
            f"{after} {_CLAIMS[verdict]} {', '.join(map(_against, comparisons))}.",
        )
        for verdict, comparisons in by_verdict.items()
        if comparisons
    )


def _some(part: int, whole: int, noun: str) -> str:
    return count(whole, noun) if part == whole else f"{part} of {count(whole, noun)}"


def _verdict(compared: PairedComparison) -> Verdict:
    if not compared.tasks:
        return "missing"
    # Equal methods may differ by rounding, in the same direction with every seed.
    if compared.upper < -TIE_TOLERANCE:
        return "better"
    return "worse" if compared.lower > TIE_TOLERANCE else "undecided"


def _against(compared: PairedComparison) -> str:
    """The other method, the difference with its interval, and how many tasks and seeds are compared."""
    if not compared.tasks:
        return compared.second
    said = number(compared.difference)
    if not math.isnan(compared.lower):
        said += f" [{number(compared.lower)}, {number(compared.upper)}]"
    parts = [
        _some(len(there), len(there) + len(missing), noun)
        for there, missing, noun in (
            (compared.tasks, compared.missing_tasks, "task"),
            (compared.seeds, compared.missing_seeds, "seed"),
        )
        if missing
    ]
    return f"{compared.second} ({said}{', over ' if parts else ''}{' and '.join(parts)})"
