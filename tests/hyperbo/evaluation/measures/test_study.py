from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from hyperbo.evaluation.figures.diagnostics import study_figure
from hyperbo.evaluation.measures.regret import simple_regrets
from hyperbo.evaluation.measures.study import study_points, study_sentence, study_table
from hyperbo.evaluation.pages.report import write_report

SEEDS, TASKS, ITERATIONS = (0, 1, 2), ("a", "b"), 3


def evaluation(arms, y):
    """Records with the values `y[arm][task][seed]`, the same in all iterations but 0 in the first."""
    rows = [
        (arm, task, "d", seed, t, "trial", 0.0 if t == 1 else y[arm][i][k], 0.5, 10.0)
        for arm in arms
        if arm in y
        for i, task in enumerate(TASKS)
        for k, seed in enumerate(SEEDS)
        for t in range(1, ITERATIONS + 1)
    ]
    names = ["method", "task", "task_dataset", "seed", "iteration", "trial_id", "y", "objective", "y_max"]
    metadata = {
        "methods": {label: {} if study is None else {"study": study} for label, study in arms.items()},
        "tasks": list(TASKS),
        "seeds": list(SEEDS),
        "iterations": ITERATIONS,
    }
    return pd.DataFrame(rows, columns=names), metadata


def point(series, at, quantity="points"):
    return {"quantity": quantity, "series": series, "at": at}


ARMS = {"M, 4": point("M", 4), "M, 100": point("M", 100), "R": point("R", None), "lost": point("L", 4)}
Y = {
    "M, 4": [[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]],
    "M, 100": [[8.0, 9.0, 9.5], [9.0, 9.0, 9.0]],
    "R": [[2.0, 2.0, 2.0], [4.0, 4.0, 4.0]],
}


def test_points_are_regret_after_the_last_iteration():
    points = study_points(*evaluation(ARMS, Y))
    assert [(point.arm, point.at) for point in points] == [
        ("M, 4", 4),
        ("M, 100", 100),
        ("R", None),
        ("lost", 4),
    ]
    by_arm = {point.arm: point for point in points}
    for label, values in Y.items():
        per_seed = (10.0 - np.array(values)).mean(axis=0)
        expected = [np.median(per_seed), np.percentile(per_seed, 20), np.percentile(per_seed, 80)]
        found = by_arm[label]
        np.testing.assert_allclose([found.median, found.lower, found.upper], expected)
    # An arm without a record is missing, not bad.
    assert [point.arm for point in points if point.missing] == ["lost"]


def test_an_evaluation_whose_arms_vary_nothing_is_no_study():
    assert study_points(*evaluation(dict.fromkeys(ARMS), Y)) == ()


def test_the_table_names_what_is_missing():
    points = study_points(*evaluation(ARMS, Y))
    console = Console(width=100, record=True)
    console.print(study_table(points, ITERATIONS))
    text = console.export_text()
    assert "Mean simple regret after 3 iterations by points" in text
    cells = [re.split(r"\s*│\s*", line.strip("│ ")) for line in text.splitlines() if line.startswith("│")]
    assert cells[0][:3] == ["M", "4", "6.5"]
    assert cells[2][:3] == ["R", "", "7"]
    assert cells[3] == ["L", "4", "missing", "missing", "missing"]


@pytest.mark.parametrize(
    "arms",
    [
        ARMS,
        {"M, 4": point("M", "PI"), "M, 100": point("M", "EI"), "R": point("R", None)},
        {"M, 4": point("M", "one"), "M, 100": point("N", "one")},
    ],
    ids=["numbers", "names", "two series"],
)
def test_every_arm_with_a_result_is_drawn(arms):
    points = study_points(*evaluation(arms, Y))
    figure = study_figure("study", points)
    assert figure.startswith('<svg role="img" aria-label="Simple regret by points of ')
    for series in {study["series"] for study in arms.values()} - {"L"}:
        assert f">{series}<" in figure  # in the legend
    for at in {study["at"] for study in arms.values()} - {None}:
        assert f">{at}<" in figure  # on the axis
    assert study_figure("study", points) == figure


def test_a_study_is_told_by_its_lowest_and_its_highest_regret():
    records, metadata = evaluation(ARMS, Y)
    regrets = simple_regrets(records, metadata)
    said = study_sentence(study_points(records, metadata), regrets)
    # Regret of M with 100 points: the median of (1 + 2) / 2, (1 + 1) / 2 and (1 + 0.5) / 2.
    assert said == (
        "M has its lowest regret, 1, at 100, and its highest, 6.5, at 4; the 95 % interval of the difference "
        "excludes 0."
    )
    alike = {"M, 4": [[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]], "M, 100": [[2.5, 1.5, 2.5], [5.0, 5.0, 5.0]]}
    records, metadata = evaluation({name: ARMS[name] for name in alike}, alike)
    said = study_sentence(study_points(records, metadata), simple_regrets(records, metadata))
    assert said.endswith("the 95 % interval of the difference includes 0.")
    records, metadata = evaluation({"R": ARMS["R"]}, Y)
    assert study_sentence(study_points(records, metadata), simple_regrets(records, metadata)) == (
        "No method has two values of points to compare."
    )


def test_with_one_seed_the_table_has_no_percentiles():
    records, metadata = evaluation(ARMS, Y)
    points = study_points(records[records["seed"] == 1], metadata | {"seeds": [1]})
    table = study_table(points, ITERATIONS)
    assert [str(column.header) for column in table.columns] == ["method", "points", "regret"]


def test_the_page_of_a_study_opens_with_its_question_and_its_curve(tmp_path):
    arms = {name: study | {"name": "points-per-task"} for name, study in ARMS.items() if name != "lost"}
    records, metadata = evaluation(arms, Y)
    facts = dict.fromkeys(("manifest_hash", "preparation", "protocol", "code_version", "command"), "text")
    metadata |= facts | {"dataset": "pd1/mini:1.0.0", "platform": {}, "seconds": {}, "run_ids": []}
    metadata |= {"started": "2026-01-01T00:00:00Z", "finished": "2026-01-01T00:00:00Z"}
    path = write_report(records, metadata, tmp_path / "r.html")
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    (title,) = root.iter("h1")
    assert title.text == "Points per training task on pd1/mini:1.0.0"
    text = re.sub(r"\s+", " ", "".join(root.itertext()))
    assert "How many trials of each training task does a prior need? Section 7.4.3" in text
    (first, *_) = (each for each in root.iter("{http://www.w3.org/2000/svg}svg") if each.get("aria-label"))
    assert str(first.get("aria-label")).startswith("Simple regret by points")
    assert "cannot be told whether" not in text
