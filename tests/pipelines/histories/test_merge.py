"""The union of two declarations of one hyperparameter."""

from __future__ import annotations

from typing import Any

import pytest
from hyperbo_pipelines.histories.draft import ConditionDraft, ParameterDraft
from hyperbo_pipelines.histories.merge import merge

from hyperbo.errors import InvalidInputError


def number(kind: Any, lower: float, upper: float, **changes: Any) -> ParameterDraft:
    return ParameterDraft("a", kind, lower, upper, **changes)


def levels(kind: Any, *values: Any, **changes: Any) -> ParameterDraft:
    return ParameterDraft("a", kind, levels=values, **changes)


UNIONS = [
    (number("real", 0.1, 0.5), number("real", 0.3, 2.0), number("real", 0.1, 2.0)),
    (number("integer", 1, 4), number("integer", 2, 8, scaling="log"), number("integer", 1, 8, scaling="log")),
    # A range that holds zero has no logarithm.
    (number("real", 0.1, 1.0, scaling="log"), number("real", 0.0, 0.5), number("real", 0.0, 1.0)),
    (levels("constant", 16), number("integer", 1, 8), number("integer", 1, 16)),
    (levels("choice", "a", "b"), levels("choice", "c", "a"), levels("choice", "a", "b", "c")),
    (levels("ordinal", 16, 32), levels("ordinal", 64), levels("ordinal", 16, 32, 64)),
    # Of two orders that cannot be joined, none is left.
    (levels("ordinal", "low", "high"), levels("ordinal", "mid"), levels("choice", "low", "high", "mid")),
    (levels("constant", "a"), levels("constant", "b"), levels("choice", "a", "b")),
    (levels("constant", True), levels("constant", False), levels("boolean")),
    (levels("constant", True), levels("boolean"), levels("boolean")),
]


@pytest.mark.parametrize(("one", "other", "union"), UNIONS)
def test_a_union_holds_both(one: ParameterDraft, other: ParameterDraft, union: ParameterDraft) -> None:
    merged = merge(one, other)
    assert repr(merged) == repr(union)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (number("real", 0.1, 0.5), number("integer", 1, 4)),
        (number("real", 0.1, 0.5), levels("choice", "a", "b")),
        (number("integer", 1, 4), levels("constant", "a")),
        (number("integer", 1, 4), levels("constant", 2.5)),
        (levels("boolean"), number("real", 0.0, 1.0)),
    ],
)
def test_other_types_are_refused_with_both(one: ParameterDraft, other: ParameterDraft) -> None:
    with pytest.raises(
        InvalidInputError, match=rf"^here: .* (a|an) {one.kind} .* (a|an) {other.kind} .*; rename"
    ):
        merge(one, other, "here")


def test_a_condition_that_only_one_has_is_left_to_the_trials() -> None:
    given = number("real", 0.0, 1.0, condition=ConditionDraft("b", ("x",)))
    assert merge(given, number("real", 0.0, 1.0)).condition is None
    assert merge(given, number("real", 0.0, 2.0, condition=given.condition)).condition == given.condition
