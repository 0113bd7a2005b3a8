"""Checks of a version against its parent: real versions, and what keeps one from being published."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from trial_files import SPACE, row, write_lines
from version_folders import record, write_version

import pd1_builder
from hyperbo.errors import InvalidInputError, VersionConflictError
from pd1_builder.compare.diff import Bump, Changes, diff_folders
from pd1_builder.compare.release_checks import (
    ReleaseChecks,
    check_number,
    check_release,
    drift,
    next_number,
    task_changes,
)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A dataset of 8 trials of one task whose loss goes from 1 to 8."""
    (tmp_path / "space.toml").write_text(SPACE)
    first = write_lines(tmp_path / "first.jsonl", [one(i) for i in range(8)])
    pd1_builder.add("own", [first], tmp_path / "space.toml", data_dir=tmp_path / "data")
    return tmp_path / "data"


def one(number: int, **changes: Any) -> dict[str, Any]:
    return row(str(number), **{"loss": 1.0 + number, "hp.rate": 0.01 * (1 + number), **changes})


def add(data_dir: Path, rows: list[dict[str, Any]], **limits: float) -> Any:
    new = write_lines(data_dir.parent / "new.jsonl", rows)
    gate = partial(check_release, checks=ReleaseChecks(**limits))
    return pd1_builder.add("own", [new], data_dir=data_dir, gate=gate)


def test_what_changed_by_task(data_dir: Path) -> None:
    rows = [one(20 + i) for i in range(5)] + [one(30 + i, task="other") for i in range(3)]
    manifest = add(data_dir, rows, largest_drift=100.0)
    changes = task_changes(*(data_dir / f"trials/own/{version}" for version in ("1.0.0", manifest.version)))
    net, other = changes
    assert (net.task, net.before, net.added, net.removed, net.repeated) == ("net", 8, 5, 0, 0)
    # Losses 1 to 8 have the quartiles 2.75 and 6.25; the new ones are 21 to 25.
    assert net.drift == pytest.approx((23 - 4.5) / 3.5, rel=1e-12)
    assert (other.task, other.before, other.added, math.isnan(other.drift)) == ("other", 0, 3, True)


def test_a_drift_keeps_a_version_from_being_published(data_dir: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"median y of 5 records added to net lies 5\.3") as error:
        add(data_dir, [one(20 + i) for i in range(5)])
    assert error.value.where == "trials/own:1.1.0"
    assert not (data_dir / "trials/own/1.1.0").exists()


@pytest.mark.slow
def test_trials_delivered_twice_under_other_ids(data_dir: Path) -> None:
    rows = [one(i) | {"trial": f"again {i}"} for i in range(8)]
    with pytest.raises(InvalidInputError, match="8 of 8 records added repeat an input"):
        add(data_dir, rows)
    assert add(data_dir, rows, largest_duplicate_share=1.0).version == "1.1.0"


@pytest.mark.parametrize(
    "limits", [{"largest_loss": -0.1}, {"largest_duplicate_share": 1.1}, {"largest_drift": 0.0}]
)
def test_impossible_limits_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(limits))):
        ReleaseChecks(**limits)


_VALUES = st.lists(st.floats(-1e3, 1e3), min_size=5, max_size=30).map(np.array)


@given(_VALUES, _VALUES, st.floats(0.1, 10.0), st.floats(-100.0, 100.0))
def test_drift_does_not_depend_on_units(
    before: np.ndarray, added: np.ndarray, scale: float, shift: float
) -> None:
    found = drift(before, added)
    if math.isnan(found) or np.subtract(*np.quantile(before, [0.75, 0.25])) < 1e-3:
        return
    assert drift(scale * before + shift, scale * added + shift) == pytest.approx(found, rel=1e-6, abs=1e-6)


def test_drift_says_nothing_of_few_or_equal_values() -> None:
    assert math.isnan(drift(np.arange(10.0), np.arange(4.0)))
    assert math.isnan(drift(np.ones(10), np.arange(10.0)))
    # What diverged has no value.
    assert math.isnan(drift(np.arange(10.0), np.array([1.0, 2.0, 3.0, 4.0, np.nan])))


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


@pytest.mark.parametrize("version", ["1.2.3", "1.2.2", "1.1.9", "0.9.9"])
@pytest.mark.parametrize("bump", CHANGES)
def test_a_number_has_to_be_greater_than_its_parents(bump: Bump, version: str) -> None:
    with pytest.raises(VersionConflictError, match=rf"version {version} does not follow its parent 1\.2\.3"):
        check_number("1.2.3", version, CHANGES[bump])


def test_numbers_are_compared_as_numbers() -> None:
    check_number("1.9.0", "1.10.0", CHANGES["minor"])


@pytest.mark.parametrize("version", ["1.0", "1.0.0.0", "one", "1.0.x"])
def test_what_is_not_three_numbers_is_refused(version: str) -> None:
    with pytest.raises(InvalidInputError, match="write three numbers"):
        check_number("1.0.0", version, CHANGES["patch"])


@given(st.tuples(*[st.integers(0, 20)] * 3), st.tuples(*[st.integers(0, 20)] * 3))
def test_exactly_one_kind_of_change_fits_a_greater_number(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    parent, version = (".".join(map(str, numbers)) for numbers in (a, b))
    fits = []
    for bump, changes in CHANGES.items():
        check_number(parent, next_number(parent, bump), changes)
        try:
            check_number(parent, version, changes)
            fits.append(bump)
        except VersionConflictError:
            pass
    assert len(fits) == (b > a)


def test_a_wrong_number_is_refused_with_what_changed_between_two_folders(tmp_path: Path) -> None:
    parent = write_version(tmp_path, "pd1/mini:1.0.0", {"matched": [record("t-1", "a")]})
    more = {"matched": [record("t-1", "a"), record("t-1", "b")]}
    staged = write_version(tmp_path / "staged", "pd1/mini:1.1.0", more)
    changed = diff_folders(parent, staged)
    assert changed.added == {("matched", "t-1"): 1}
    check_number("1.0.0", "1.1.0", changed.changes)
    with pytest.raises(VersionConflictError, match=r"1 record added \(matched t-1 1\); use 1\.1\.0$"):
        check_number("1.0.0", "1.0.1", changed.changes)
