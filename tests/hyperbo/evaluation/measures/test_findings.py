"""What an evaluation is said to have found: by hand, and on the page."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from pages import text_of

from hyperbo.evaluation.measures.findings import findings_about, number, simplest_ahead
from hyperbo.evaluation.pages.report import write_report
from hyperbo.evaluation.records.run_array import RunArray


@pytest.mark.parametrize(
    ("own", "verdict", "claim"),
    [
        ([0.1, 0.2, 0.1], "better", "H-NLL has lower regret than Rand (\N{MINUS SIGN}0.367 ["),
        ([0.9, 0.8, 0.9], "worse", "H-NLL has higher regret than Rand (0.367 ["),
        ([0.1, 0.9, 0.5], "undecided", "H-NLL cannot be told apart from Rand (0 ["),
        ([0.5, 0.5, 0.5], "undecided", "H-NLL cannot be told apart from Rand (0 ["),
    ],
)
def test_a_verdict_is_what_the_interval_says(own, verdict, claim):
    values = np.array([own, [0.5, 0.5, 0.5]]).reshape(2, 1, 3, 1)
    (finding,) = findings_about(RunArray(("H-NLL", "Rand"), ("t",), (0, 1, 2), values), "H-NLL", 1)
    assert finding.verdict == verdict
    (compared,) = finding.comparisons
    assert finding.sentence.startswith(f"After 1 iteration, {claim}")
    assert finding.sentence.endswith(f"[{number(compared.lower)}, {number(compared.upper)}]).")


def test_who_is_ahead_early_and_behind_at_the_end_is_said_to_be_both(records, metadata, tmp_path):
    """H-NLL finds a good candidate at once and then none better; STBO is slow and ends at the best."""
    rows = records[records["method"].isin(["H-NLL", "STBO", "Rand"]) & (records["task"] != "easy")].copy()
    early = rows["iteration"] <= 10
    regret = {"H-NLL": 0.4, "STBO": np.where(early, 0.9, 0.1), "Rand": np.where(early, 0.9, 0.8)}
    spread = rows["seed"] / 100
    rows["y"] = rows["y_max"] - spread - np.select([rows["method"] == m for m in regret], [*regret.values()])
    metadata["methods"] = {method: {} for method in regret}
    metadata["tasks"] = [task for task in metadata["tasks"] if task != "easy"]
    write_report(rows, metadata, tmp_path / "r.html")
    root = ElementTree.fromstring((tmp_path / "r.html").read_text(encoding="utf-8"))
    items = [(e.get("class"), text_of(e)) for e in root.iter("li") if e.get("class")]
    found = [(kind, text.partition("iterations")[0], re.findall(r"(\w+) \(", text)) for kind, text in items]
    assert found == [
        ("better", "After 10 ", ["STBO", "Rand"]),
        ("better", "After 30 ", ["Rand"]),
        ("worse", "After 30 ", ["STBO"]),
    ]


def test_a_short_evaluation_has_one_budget(records, metadata, tmp_path):
    short = records[records["iteration"] <= 10]
    write_report(short, metadata | {"iterations": 10}, tmp_path / "r.html")
    text = text_of(ElementTree.fromstring((tmp_path / "r.html").read_text(encoding="utf-8")))
    assert set(re.findall(r"After (\d+) iterations, ", text)) == {"10"}
    assert text.count("After 10 iterations, the mean simple regret") == 1


def test_methods_that_differ_by_rounding_cannot_be_told_apart():
    # 0.1 + 0.2 is above 0.3 with every seed alike.
    values = np.array([[0.3] * 5, [0.1 + 0.2] * 5]).reshape(2, 1, 5, 1)
    assert (values[0] < values[1]).all()
    for first, second in (("a", "b"), ("b", "a")):
        (finding,) = findings_about(RunArray(("a", "b"), ("t",), (0, 1, 2, 3, 4), values), first, 1)
        (compared,) = finding.comparisons
        assert (compared.second, finding.verdict) == (second, "undecided")
        assert (compared.by_task.wins, compared.by_task.ties, compared.by_task.losses) == (0, 1, 0)


def test_one_seed_decides_nothing(records, metadata, tmp_path):
    values = np.array([0.1, 0.9]).reshape(2, 1, 1, 1)
    (finding,) = findings_about(RunArray(("H-NLL", "Rand"), ("t",), (0,), values), "H-NLL", 1)
    assert finding.verdict == "undecided"
    told = "H-NLL cannot be told apart from Rand (\N{MINUS SIGN}0.8)."
    assert finding.sentence == f"After 1 iteration, {told}"
    write_report(records[records["seed"] == 2], metadata | {"seeds": [2]}, tmp_path / "r.html")
    text = text_of(ElementTree.fromstring((tmp_path / "r.html").read_text(encoding="utf-8")))
    assert "With a single seed there is no interval" in text
    assert "interval from" not in text


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (203.4, 2, "203"),
        (-255.0, 2, "\N{MINUS SIGN}255"),
        (99.7, 2, "100"),
        (1234.5, 3, "1234"),
        (999_999.4, 3, "999999"),
        (1e6, 3, "1e+06"),
        (0.00001234, 3, "1.23e-05"),
        (12.34, 3, "12.3"),
        (float("nan"), 3, "\N{EN DASH}"),
    ],
)
def test_numbers_are_plain_below_a_million(value, digits, expected):
    assert number(value, digits) == expected


def ahead(levels, methods=None):
    """The sentence for one task and three seeds; levels by label, after 1 to 12 iterations."""
    values = np.array([np.tile(level, (1, 3, 1)) for level in levels.values()])
    names = methods or {}
    metadata = {"methods": {label: {"method": names[label]} if label in names else {} for label in levels}}
    return simplest_ahead(RunArray(tuple(levels), ("t",), (0, 1, 2), values), metadata)


EARLY, LATE = np.repeat([0.1, 0.9], [10, 2]), np.repeat([0.8, 0.2], [10, 2])


def test_best_average_is_said_to_be_ahead_at_the_budgets_where_it_is():
    said = ahead({"H-NLL": LATE, "STBO": LATE + 0.1, "Best-average": EARLY})
    assert "ahead of all models" in said
    assert "after 10 iterations Best-average has the mean simple regret 0.1" in said
    assert "H-NLL, has 0.8" in said
    assert "12 iterations" not in said
    assert "12 iterations Best-average" in ahead({"H-NLL": EARLY, "Best-average": LATE})
    assert said.count("has the mean") == 1
    assert (
        ahead({"H-NLL": LATE, "Best-average": EARLY - 0.05 + (EARLY > 0.5) * -0.8}).count("has the mean") == 2
    )


@pytest.mark.parametrize(
    "levels",
    [
        {"H-NLL": EARLY, "Best-average": EARLY},
        {"H-NLL": EARLY, "Best-average": EARLY - 1e-12},
        {"H-NLL": EARLY, "Best-average": EARLY + 0.1},
        {"H-NLL": LATE, "Rand": np.zeros(12), "Best-average": EARLY},
        {"H-NLL": LATE, "Portfolio": EARLY},
        {"Rand": LATE, "Portfolio": LATE, "Best-average": EARLY},
    ],
)
def test_nothing_is_said_where_best_average_is_not_ahead_of_a_model(levels):
    assert ahead(levels) is None


def test_labels_do_not_matter_and_a_portfolio_may_be_ahead():
    levels = {"ours": LATE, "greedy": EARLY - 0.05, "average": EARLY, "fewer": EARLY + 0.01}
    methods = {"greedy": "Portfolio", "average": "Best-average", "fewer": "Best-average", "ours": "H-EKL"}
    assert "iterations average has" in ahead(levels, methods)
    assert "ours, has" in ahead(levels, methods)


def test_the_page_begins_with_what_is_ahead(records, metadata, tmp_path):
    rows = records[records["method"].isin(["H-NLL", "Rand"]) & (records["iteration"] <= 3)].copy()
    rows = rows[rows["task"] == "easy"]
    rows["y"] = rows["y_max"] - 0.5 * (rows["method"] == "H-NLL")
    metadata |= {
        "methods": {"H-NLL": {}, "Rand": {"method": "Best-average"}},
        "tasks": ["easy"],
        "iterations": 3,
    }
    write_report(rows, metadata, tmp_path / "r.html")
    text = text_of(ElementTree.fromstring((tmp_path / "r.html").read_text(encoding="utf-8")))
    assert text.index("The simplest use of the training tasks") < text.index("the mean simple regret over")
