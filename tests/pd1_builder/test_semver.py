from __future__ import annotations

import re
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given
from version_folders import record, write_version

from hyperbo.errors import InvalidInputError, VersionConflictError
from pd1_builder.diff import Bump, Changes
from pd1_builder.semver import check_number, check_version, next_version

CHANGES: dict[Bump, Changes] = {
    "major": Changes(("2 records removed",), ("9 records added",)),
    "minor": Changes((), ("9 records added",)),
    "patch": Changes((), ()),
}


@pytest.mark.parametrize("bump", CHANGES)
def test_what_changed_decides_the_bump(bump: Bump) -> None:
    assert CHANGES[bump].bump == bump


@pytest.mark.parametrize(
    ("bump", "version"),
    [("major", "2.0.0"), ("major", "3.1.4"), ("minor", "1.3.0"), ("minor", "1.9.7"), ("patch", "1.2.4")],
)
def test_a_number_that_first_differs_where_required_is_right(bump: Bump, version: str) -> None:
    check_number("1.2.3", version, CHANGES[bump])


@pytest.mark.parametrize(
    ("bump", "version", "right"),
    [
        ("major", "1.3.0", "2.0.0"),
        ("major", "1.2.4", "2.0.0"),
        ("minor", "2.0.0", "1.3.0"),
        ("minor", "1.2.4", "1.3.0"),
        ("patch", "2.0.0", "1.2.4"),
        ("patch", "1.3.0", "1.2.4"),
    ],
)
def test_a_step_too_small_or_too_large_is_refused_and_the_right_number_named(
    bump: Bump, version: str, right: str
) -> None:
    with pytest.raises(VersionConflictError, match=rf"the change is {bump}: .*; use {re.escape(right)}$"):
        check_number("1.2.3", version, CHANGES[bump])


@pytest.mark.parametrize("version", ["1.2.3", "1.2.2", "1.1.9", "0.9.9"])
@pytest.mark.parametrize("bump", CHANGES)
def test_a_number_has_to_be_greater_than_its_parents(bump: Bump, version: str) -> None:
    with pytest.raises(VersionConflictError, match=rf"version {version} does not follow its parent 1\.2\.3"):
        check_number("1.2.3", version, CHANGES[bump])


def test_numbers_are_compared_as_numbers() -> None:
    check_number("1.9.0", "1.10.0", CHANGES["minor"])


def test_the_message_says_what_changed() -> None:
    with pytest.raises(VersionConflictError) as raised:
        check_number("1.0.0", "1.0.1", CHANGES["minor"])
    assert str(raised.value) == (
        "version 1.0.1 is a patch step from its parent 1.0.0, and the change is minor: 9 records added; "
        "use 1.1.0"
    )


@pytest.mark.parametrize("version", ["1.0", "1.0.0.0", "one", "1.0.x"])
def test_what_is_not_three_numbers_is_refused(version: str) -> None:
    with pytest.raises(InvalidInputError, match="write three numbers"):
        check_number("1.0.0", version, CHANGES["patch"])


@given(st.tuples(*[st.integers(0, 20)] * 3), st.tuples(*[st.integers(0, 20)] * 3))
def test_exactly_one_kind_of_change_fits_a_greater_number(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    parent, version = (".".join(map(str, numbers)) for numbers in (a, b))
    fits = []
    for bump, changes in CHANGES.items():
        check_number(parent, next_version(parent, bump), changes)
        try:
            check_number(parent, version, changes)
            fits.append(bump)
        except VersionConflictError:
            pass
    assert len(fits) == (b > a)


def test_two_folders_are_compared_and_the_difference_returned(tmp_path: Path) -> None:
    parent = write_version(tmp_path, "pd1/mini:1.0.0", {"matched": [record("t-1", "a")]})
    more = {"matched": [record("t-1", "a"), record("t-1", "b")]}
    staged = write_version(tmp_path / "staged", "pd1/mini:1.1.0", more)
    assert check_version(parent, staged).added == {("matched", "t-1"): 1}
    wrong = write_version(tmp_path / "wrong", "pd1/mini:1.0.1", more)
    with pytest.raises(VersionConflictError, match=r"1 record added \(matched t-1 1\); use 1\.1\.0$"):
        check_version(parent, wrong)
