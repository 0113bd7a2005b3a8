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

import pd1_builder
from hyperbo.errors import InvalidInputError
from pd1_builder.release_checks import ReleaseChecks, check_release, drift, task_changes


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


def test_trials_delivered_twice_under_other_ids(data_dir: Path) -> None:
    rows = [one(i) | {"trial": f"again {i}"} for i in range(8)]
    with pytest.raises(InvalidInputError, match="8 of 8 records added repeat an input"):
        add(data_dir, rows)
    assert add(data_dir, rows, largest_duplicate_share=1.0).version == "1.1.0"


@pytest.mark.parametrize(
    "limits", [{"largest_loss": -0.1}, {"largest_duplicate_share": 1.1}, {"largest_drift": 0.0}]
)
def test_limits_that_cannot_be(limits: dict[str, float]) -> None:
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
