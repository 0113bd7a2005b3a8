"""Bad rows of PD1's layout, raw file to version: each is set aside with its place, or stops the build."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic_pd1 import rows, write

import pd1_builder
from hyperbo.errors import InvalidInputError
from pd1_builder.version.catalog import versions

NAME = "pd1_matched_phase1_results.jsonl"
GOOD = rows("matched", 1, inputs=5)
LEARNING_RATE = "hps.lr_hparams.initial_value"
BEST = "best_valid/error_rate"


def bad(number: int, **changes: Any) -> dict[str, Any]:
    return GOOD[0] | {"trial_dir": f"bad{number}"} | changes


def spelled(row: dict[str, Any], text: str) -> str:
    """A row with a number that JSON, or a float64, cannot spell."""
    assert "4242" in json.dumps(row)
    return json.dumps(row).replace("4242", text)


HALF = json.dumps(GOOD[0]).encode()
# In the order of their lines; `None` where the row is good all the same.
ROWS: tuple[tuple[str, dict[str, Any] | str | bytes, str | None], ...] = (
    ("half a row", HALF[: len(HALF) // 2], "is not JSON"),
    ("not UTF-8", b'{"trial_dir": "\xff\xfe"}', "is not UTF-8"),
    ("NaN", spelled(bad(1, **{LEARNING_RATE: 4242}), "NaN"), "learning_rate = nan is outside"),
    ("1e999", spelled(bad(2, **{LEARNING_RATE: 4242}), "1e999"), "learning_rate = inf is outside"),
    ("1e999, negative", spelled(bad(3, **{BEST: 4242}), "-1e999"), f"{BEST} = -inf is outside \\[0, 1\\]"),
    ("curves of two lengths", bad(7, epoch=[1.0]), "curves differ in length"),
    ("above its range", bad(10, **{"hps.opt_hparams.momentum": 1.0}), "momentum = 1.0 is outside"),
    ("error rate of percents", bad(11, **{BEST: 12.5}), f"{BEST} = 12.5 is outside \\[0, 1\\]"),
    ("repeated row", GOOD[4], f"trial id .* repeats the row {NAME}:5"),
    ("repeated id", GOOD[6] | {BEST: 0.5}, f"trial id .* names different trials: {NAME}:7, {NAME}:30"),
    ("unknown column", bad(13, secret=[1, {"a": None}]), None),
    ("metrics not there", spelled(bad(14, **{BEST: 4242}), "NaN"), None),
    ("curve of what is no number", spelled(bad(15, epoch=[4242, None, 1, 2.5, 4242]), "1e999"), None),
    ("any text", bad(16, trial_dir="ä/☃\U0001f600\n\x00"), None),
)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("raw")
    write(folder, NAME, [*GOOD, *(content for _, content, _ in ROWS)])
    return folder


def test_the_build_stops_and_names_the_first_places(raw: Path, tmp_path: Path) -> None:
    refused = 1 + sum(message is not None for _, _, message in ROWS)
    first = rf"{NAME}:7: .*; {NAME}:21: is not JSON"
    with pytest.raises(InvalidInputError, match=rf"{refused} of 34 rows rejected, .*; {first}"):
        pd1_builder.build(raw=raw, data_dir=tmp_path)
    assert versions(tmp_path) == ()
    assert not (tmp_path / "pd1").exists()


def test_where_enough_rejects_are_allowed_each_has_its_place_and_reason(raw: Path, tmp_path: Path) -> None:
    manifest = pd1_builder.build(raw=raw, data_dir=tmp_path, max_reject_share=0.5)
    lines = (tmp_path / "pd1/mini/1.0.0/rejects.jsonl").read_text().splitlines()
    rejects = {each["line"]: each for each in map(json.loads, lines)}
    # One id, two contents: both rows are refused, the first among the good ones.
    assert rejects.pop(7)["reason"].endswith(f"names different trials: {NAME}:7, {NAME}:30")
    for line, (name, _, message) in enumerate(ROWS, start=len(GOOD) + 1):
        if message is None:
            assert line not in rejects, name
        else:
            assert rejects[line]["file"] == NAME
            assert re.match(message, rejects[line]["reason"]), (name, rejects[line])
    kept = sum(message is None for _, _, message in ROWS)
    assert manifest.rows("matched") == len(GOOD) - 1 + kept
    frame = pd1_builder.load("pd1/mini", None, as_="dataframe", data_dir=tmp_path).set_index("trial_id")
    assert frame.loc["bad13", "x.power"] == pytest.approx((GOOD[0]["hps.lr_hparams.power"] - 0.1) / 1.9)
    assert np.isnan(frame.loc["bad14", "y"])
    assert repr(frame.loc["bad15", "curves.epoch"].tolist()) == "[inf, nan, 1.0, 2.5, inf]"
    assert "ä/☃\U0001f600\n\x00" in frame.index
    pd1_builder.verify("pd1/mini:1.0.0", tmp_path)
