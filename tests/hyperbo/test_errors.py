from __future__ import annotations

import pickle

import pytest

from hyperbo.errors import (
    HyperBOError,
    InvalidInputError,
    NotAvailableError,
    NumericalError,
    VersionConflictError,
)


@pytest.mark.parametrize(
    ("where", "fix", "message"),
    [
        ("a.jsonl:3", "write a number", "a.jsonl:3: rate is 'high'; write a number"),
        ("a.jsonl:3", "", "a.jsonl:3: rate is 'high'"),
        ("", "write a number", "rate is 'high'; write a number"),
        ("", "", "rate is 'high'"),
    ],
)
def test_an_invalid_input_says_what_where_and_what_to_do_in_another_process_too(
    where: str, fix: str, message: str
) -> None:
    error = InvalidInputError("rate is 'high'", where=where, fix=fix)
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert str(one) == message
        assert (one.what, one.where, one.fix) == ("rate is 'high'", where, fix)


def test_errors_are_also_the_builtin_kind_that_they_refine() -> None:
    kinds = {InvalidInputError: ValueError, NumericalError: ArithmeticError, NotAvailableError: LookupError}
    for error, builtin in kinds.items():
        assert issubclass(error, HyperBOError)
        assert issubclass(error, builtin)
    assert issubclass(VersionConflictError, HyperBOError)
