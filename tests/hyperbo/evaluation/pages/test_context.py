import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from pages import text_of

from hyperbo.evaluation.measures.findings import number
from hyperbo.evaluation.measures.regret import simple_regrets
from hyperbo.evaluation.pages.context import METHOD_LINES, UNDESCRIBED, warping_of
from hyperbo.evaluation.pages.report import page_environment, write_report
from hyperbo.evaluation.pages.words import GLOSSARY, defined
from hyperbo.methods import METHODS
from hyperbo.priors.losses import MOST_POINTS


def entries(path):
    """The terms of the section and what is said of them."""
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    (section,) = (e for e in root.iter("section") if e.get("id") == "reading")
    texts = [text_of(e) for tag in ("dt", "dd") for e in section.iter(tag)]
    return dict(zip(texts[: len(texts) // 2], texts[len(texts) // 2 :], strict=True))


def methods_table(path):
    """The cells of the table of methods, row by row."""
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    (section,) = (e for e in root.iter("section") if e.get("id") == "methods")
    return [[text_of(cell) for cell in row] for row in section.iter("tr") if row[0].get("scope") == "row"]


def test_a_method_of_ones_own_is_told_in_its_own_words(records, metadata, tmp_path):
    rows = records[(records["method"] == "Rand") & (records["task"] == "easy")]
    metadata |= {"tasks": ["easy"], "methods": {"Rand": {"method": "mine:Mine"}}}
    metadata["summaries"] = {"mine:Mine": "Tries <every> second candidate."}
    path = write_report(rows, metadata, tmp_path / "r.html")
    assert methods_table(path) == [["mine:Mine", "Tries <every> second candidate.", "Rand"]]


def test_every_word_that_is_linked_is_in_the_glossary_once(records, metadata, tmp_path):
    path = write_report(records, metadata, tmp_path / "r.html")
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    linked = [e for e in root.iter("a") if e.get("class") == "term"]
    assert {"regret", "baseline", "ahead"} <= {text_of(e) for e in linked}
    for each in linked:
        (line,) = (e for e in root.iter("dt") if e.get("id") == each.get("href")[1:])
        assert text_of(line).lower() in (text_of(each), text_of(each).removesuffix("s"))
    said = entries(path)
    assert all(said[word[:1].upper() + word[1:]] == meaning for word, meaning in GLOSSARY.items())


def test_only_the_first_use_of_a_word_is_linked_and_no_tag_is():
    text = defined(
        page_environment().filters["unbroken"]("seed-1 <b> seeds, the final regret, regret"),
        "seed",
        "regret",
        "final regret",
    )
    assert re.sub(r'<a class="term" href="#word-([^"]*)">([^<]*)</a>', r"{\1|\2}", str(text)) == (
        '<span class="word">seed-1</span> &lt;b&gt; {seed|seeds}, the {final-regret|final regret}, '
        "{regret|regret}"
    )


def test_every_method_of_the_project_has_its_line():
    assert set(METHOD_LINES) == set(METHODS)
    assert all("\n" not in line and line.endswith(".") for line in METHOD_LINES.values())


@pytest.mark.parametrize(
    ("objective", "direction", "expected"),
    [
        (lambda y: np.exp(-y) - 1e-10, "minimize", "negative_log"),
        (lambda y: np.exp(-y) - 1e-10, "maximize", None),
        (lambda y: -y, "minimize", "negative"),
        (lambda y: y, "maximize", "identity"),
        (lambda y: y, "minimize", None),
        (lambda y: y**3, "maximize", None),
    ],
)
def test_the_warping_is_the_one_that_makes_every_y(objective, direction, expected, records, metadata):
    records = records.assign(objective=objective(records["y"]))
    metadata["objective"] = {"name": "loss", "direction": direction}
    assert warping_of(records, metadata) == expected
    one_differs = records["objective"].to_numpy().copy()
    one_differs[7] += 0.01
    assert warping_of(records.assign(objective=one_differs), metadata) is None


def test_regret_and_y_are_explained_in_terms_of_the_objective(records, metadata, tmp_path):
    records = records[records["task"].isin(metadata["tasks"][:1]) & (records["method"] == "Rand")]
    metadata |= {"tasks": metadata["tasks"][:1], "methods": {"Rand": {}}}
    metadata["objective"] = {"name": "best_valid/error_rate", "direction": "minimize"}
    said = entries(write_report(records, metadata, tmp_path / "r.html"))
    warped = "y = -ln(r + 10-10), where r is best_valid/error_rate, to be minimised."
    assert said["y"].startswith(warped.replace("-", "\N{MINUS SIGN}"))
    assert "A regret of 0.1 is an r about 10 % above that of the best candidate" in said["y"]
    # What the sentence says of 0.1 and 0.7: ratios of error rates.
    np.testing.assert_allclose(np.exp([0.1, 0.7]), [1.1, 2.0], rtol=0.01)
    assert "divided by the range" not in said["Regret"]
    assert said["Preparation"].startswith("paper: ")
    assert "NLL" not in said

    records = records.assign(y_min=records.groupby("task")["y"].transform("min"))
    normalised = metadata | {"regret": "normalised"}
    path = write_report(records, normalised, tmp_path / "r.html")
    said = entries(path)
    mean = simple_regrets(records, normalised).values[..., -1].mean()
    page = path.read_text(encoding="utf-8")
    assert f"{number(float(mean))}</td></tr>" in page[page.index("as HPO-B reports it") :]
    assert "divided by the range of y on the task" in said["Regret"]
    assert "A regret of 0.1" not in said["y"]

    said = entries(write_report(records.assign(objective=0.5), metadata, tmp_path / "r.html"))
    assert said["y"] == "What is maximised, made from best_valid/error_rate, of which less is better."


def test_methods_are_told_by_what_they_are_and_losses_where_there_are_any(
    records, losses, metadata, tmp_path
):
    metadata["tasks"] = metadata["tasks"][:2]
    records = records[records["task"].isin(metadata["tasks"])]
    losses = losses[losses["task"].isin(["", *metadata["tasks"]])]
    own = "nearest_neighbour:NearestNeighbour"
    for label, method in (("H-NLL", "H-NLL"), ("H-EKL", "H-NLL"), ("STBO", own), ("Rand", "Rand")):
        metadata["methods"][label] = {"method": method}
    path = write_report(records, metadata, tmp_path / "r.html", losses=losses)
    assert methods_table(path) == [
        ["H-NLL", METHOD_LINES["H-NLL"], "H-NLL; H-EKL"],
        [own, UNDESCRIBED, "STBO"],
        ["Rand", METHOD_LINES["Rand"], "Rand"],
    ]
    said = entries(path)
    assert f"more than {MOST_POINTS:,} observations" in said["NLL"]
    assert "mean over the prior's training tasks" in said["NLL"]
    assert "at all matched inputs jointly: a sum" in said["EKL"]
    page = path.read_text(encoding="utf-8")
    assert 'href="#reading"' in page[page.index('<section id="losses">') :]
