from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hyperbo_pipelines.hpob.layout import SEARCH_SPACES, Variable, mixed_columns, read_descriptors
from synthetic_hpob import describe

from hyperbo.errors import InvalidInputError

REAL = Path("../shared/data/hpob")
real = pytest.mark.skipif(not REAL.is_dir(), reason="the HPO-B rows are not at ../shared/data/hpob")


def written(folder: Path, content: Any) -> Path:
    (folder / "meta-dataset-descriptors.json").write_text(json.dumps(content))
    return folder


@real
def test_the_16_search_spaces_are_those_of_the_official_test_tasks() -> None:
    tasks = json.loads((REAL / "meta-test-tasks-per-space.json").read_text())
    assert set(SEARCH_SPACES) == set(tasks)
    assert set(read_descriptors(REAL)) == set(tasks)


@real
def test_every_real_search_space_has_its_variables_in_the_order_of_x() -> None:
    content = json.loads((REAL / "meta-dataset-descriptors.json").read_text())
    for name, description in read_descriptors(REAL).items():
        assert list(description.search_space.names) == content[name]["variables_order"]
        for split in ("train", "validation", "test"):
            data = json.loads((REAL / f"meta-{split}-dataset.json").read_text())
            for dataset in data.get(name, {}).values():
                assert {len(row) for row in dataset["X"]} == {len(description.variables)}


@real
def test_log_means_the_natural_logarithm_of_the_value_plus_1e_4() -> None:
    checked = 0
    for description in read_descriptors(REAL).values():
        for variable in description.variables:
            for recorded, before in (
                (variable.minimum, variable.minimum_before_log),
                (variable.maximum, variable.maximum_before_log),
            ):
                expected = math.log(before + 1e-4) if variable.log else before
                assert recorded == pytest.approx(expected, rel=1e-9, abs=1e-9), (
                    description.name,
                    variable.name,
                )
                checked += variable.log
    assert checked > 30


@real
def test_real_inputs_follow_from_the_ranges() -> None:
    variable = read_descriptors(REAL)["4796"].variables[0]  # minsplit: powers of two from 2 to 128
    span = variable.maximum - variable.minimum
    levels = [round((math.log(2**k + 1e-4) - variable.minimum) / span, 6) for k in range(1, 8)]
    data = json.loads((REAL / "meta-train-dataset.json").read_text())["4796"]
    assert sorted({row[0] for dataset in data.values() for row in dataset["X"]}) == levels


@real
def test_a_category_is_described_by_its_column() -> None:
    variables = {v.name: v for v in read_descriptors(REAL)["5527"].variables}
    assert variables["kernel.ohe._linear"] == Variable("kernel.ohe._linear", 0, 1, 0, 1, category="linear")
    assert variables["cost"].log
    assert not variables["degree.na"].log


def test_the_search_space_is_the_unit_cube(tmp_path: Path) -> None:
    description = read_descriptors(written(tmp_path, {"7": describe(2)}))["7"]
    assert description.search_space.to_json() == [
        {"name": name, "lower": 0.0, "upper": 1.0, "scaling": "linear"} for name in ("p0", "p1")
    ]
    assert [c.name for c in description.layout.columns][9:] == [
        *("duplicates", "block", "initialisations", "y"),
        *("hyperparameters.p0", "hyperparameters.p1", "x.p0", "x.p1", "metrics.accuracy"),
    ]
    assert json.loads(json.dumps(description.to_json())) == {
        "name": "7",
        "variables": [
            {
                "name": name,
                "minimum": 0.0,
                "maximum": 1.0,
                "minimum_before_log": 0.0,
                "maximum_before_log": 1.0,
                "log": log,
                "category": "",
            }
            for name, log in (("p0", True), ("p1", False))
        ],
    }


def test_mixed_columns_have_lists_in_place_of_named_inputs() -> None:
    kinds = {column.name: column.kind for column in mixed_columns()}
    assert (kinds["hyperparameters"], kinds["x"], kinds["search_space"]) == ("reals", "reals", "text")


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no order": ({"variables_order": None}, "descriptors.json#7: cannot be read"),
    "unknown column": ({"variables_order": ["p0", "q"]}, "KeyError 'q'"),
    "unknown category": (
        {"variables": {"p0": {"categories": ["a"]}}, "variables_order": ["p0.ohe._b"]},
        "names none of the categories",
    ),
    "range upside down": (
        {"variables": {"p0": {"min": 1, "max": 0, "min_before_tf": 0, "max_before_tf": 1}}},
        "p0 ranges from 1.0 to 0.0",
    ),
    "bound before the logarithm is NaN": (
        {"variables": {"p0": {"min": 0, "max": 1, "min_before_tf": math.nan, "max_before_tf": 1}}},
        "p0 ranges from nan to 1.0",
    ),
    "bound is a text": (
        {"variables": {"p0": {"min": "low", "max": 0, "min_before_tf": 0, "max_before_tf": 1}}},
        "could not convert",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_incomplete_descriptions_are_refused(name: str, tmp_path: Path) -> None:
    changes, message = BAD[name]
    with pytest.raises(InvalidInputError, match=message):
        read_descriptors(written(tmp_path, {"7": describe(1) | changes}))


def test_absent_descriptors_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"meta-dataset-descriptors\.json is missing"):
        read_descriptors(tmp_path)
    with pytest.raises(InvalidInputError, match="is a JSON list"):
        read_descriptors(written(tmp_path, []))
    (tmp_path / "meta-dataset-descriptors.json").write_text('{"cut')
    with pytest.raises(InvalidInputError, match="cannot be read as JSON"):
        read_descriptors(tmp_path)
