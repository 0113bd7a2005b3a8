from __future__ import annotations

import json
import math
import struct
from typing import Any

import pytest
from hyperbo_pipelines.curate.fields import json_object, number
from hypothesis import given
from hypothesis import strategies as st

from hyperbo.errors import InvalidInputError

DIGITS = st.text("0123456789", min_size=1, max_size=40)


@st.composite
def decimals(draw: st.DrawFn) -> str:
    """Numbers as JSON spells them: more digits than a float64 holds, and exponents beyond its range."""
    whole = str(int(draw(DIGITS)))
    fraction = draw(st.one_of(st.just(""), DIGITS.map(lambda digits: f".{digits}")))
    exponent = draw(st.one_of(st.just(""), st.integers(-400, 400).map(lambda power: f"e{power}")))
    return draw(st.sampled_from(["", "-"])) + whole + fraction + exponent


def bits(value: Any) -> bytes:
    return struct.pack("<d", number(value, "value"))


@given(decimals())
def test_a_decimal_is_the_float64_of_the_standard_module(spelled: str) -> None:
    found = json_object(f'{{"value": {spelled}}}'.encode())["value"]
    assert bits(found) == bits(json.loads(spelled))
    # The integer -0 has no sign.
    assert bits(found) == struct.pack("<d", 0.0 if spelled == "-0" else float(spelled))


@given(st.floats(allow_nan=False))
def test_every_float64_survives_its_spelling(value: float) -> None:
    assert bits(json_object(f'{{"value": {value!r}}}'.replace("inf", "1e999").encode())["value"]) == bits(
        value
    )


def test_what_only_the_standard_module_accepts_is_read_beside_other_fields() -> None:
    row = json_object(b'{"a": NaN, "b": [1e999, -Infinity, null], "c": 0.1, "d": "\\ud800"}')
    assert math.isnan(row.pop("a"))
    assert row == {"b": [math.inf, -math.inf, None], "c": 0.1, "d": "\ud800"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"a": 0.1, "b": [1, ', "is not JSON: "),
        (b'{"a": "\xff"}', "is not UTF-8: "),
        (b"[" * 100_000, "is not JSON: "),
        (b'{"a": ' + b"1" * 5000 + b"}", "is not JSON: "),
        (b"[1, 2]", "is a JSON list, not an object"),
        (b"3", "is a JSON int, not an object"),
        (b"", "is not JSON: "),
    ],
    ids=["cut in half", "invalid UTF-8", "nested beyond reason", "5000 digits", "list", "number", "empty"],
)
def test_what_is_no_object_is_refused_with_the_reason(content: bytes, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        json_object(content)
