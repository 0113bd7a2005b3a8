"""The page of an arena: what it says, that it loads nothing, and how it looks in a browser."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from browser import CHROMIUM, browser

from hyperbo.evaluation.measures.clusters import Estimate
from hyperbo.evaluation.measures.leaderboard import leaderboard
from hyperbo.evaluation.pages.arena import (
    ArenaPage,
    DataLine,
    DivisionPage,
    MachineLine,
    render_arena_page,
    simplest_sentence,
    verdict,
    write_arena_page,
)

METHODS = (
    "H-NLL",
    "H-EKL",
    "H-Mix",
    "FSBO",
    "ABLR",
    "RGPE",
    "CGP",
    "STBO",
    "Portfolio",
    "Best-average",
    "Rand",
)


def board_of(levels):
    """A leaderboard of methods about a level, two priors in each of five clusters, at six budgets."""
    random = np.random.default_rng(2)
    rows = [
        (method, f"{cluster}, {prior}", cluster, budget, level / budget + 0.02 * random.random())
        for method, level in levels.items()
        for budget in (1, 5, 10, 25, 50, 100)
        for cluster in ("digits", "phishing", "text", "textures", "wine")
        for prior in (0, 1)
    ]
    frame = pd.DataFrame(rows, columns=["method", "prior", "cluster", "budget", "regret"])
    return leaderboard(frame, ("Best-average", "Rand"))


def page_of(levels, strange="own:<b>Own</b>"):
    board = board_of(levels)
    seconds = dict.fromkeys(board.methods, (1.5, 0.01))
    division = DivisionPage(
        "mini",
        "Small tasks.",
        board,
        {"EGP": "there are no matched inputs"},
        {strange: "3 runs missing"},
        "5 task datasets",
        False,
        (DataLine("pd1/mini:2.0.0", "ab" * 32, "paper"),),
        "held out related",
        (("machine 1", seconds), ("machine 2", {})),
    )
    machine = MachineLine("machine 1", "A processor", 2, "Linux", "jax 0.10", "0.1.0+abc", (0.5, 2.0))
    return ArenaPage(1, "cd" * 32, ("Best-average", "Rand"), (division,), (machine,), (strange,))


LEVELS = {method: 0.1 + place / 10 for place, method in enumerate(METHODS)}


def test_the_first_sentence_says_whether_the_simplest_is_ahead():
    models = simplest_sentence(board_of(LEVELS))
    assert models.startswith("No method without a model")
    ahead = simplest_sentence(board_of(LEVELS | {"Best-average": 0.01}))
    assert "Best-average" in ahead
    assert ahead.startswith("A method without a model is ahead")
    simple = simplest_sentence(board_of({"Best-average": 0.1, "Rand": 0.5}))
    assert simple == "No method here has a model: Best-average, Rand."
    text = render_arena_page(page_of(LEVELS | {"Best-average": 0.01}))
    assert text.index("is ahead of all") < text.index("<table")


def test_the_first_sentence_counts_ties_of_the_lowest_mean():
    frame = pd.DataFrame(
        [
            (method, f"{cluster}, 0", cluster, budget, 0.0 if budget == 100 else level)
            for method, level in (("H-NLL", 0.1), ("Best-average", 0.2), ("Rand", 0.3))
            for cluster in ("a", "b")
            for budget in (10, 100)
        ],
        columns=["method", "prior", "cluster", "budget", "regret"],
    )
    frame.loc[(frame["method"] == "Rand") & (frame["budget"] == 100), "regret"] = 0.3
    board = leaderboard(frame, ("Best-average", "Rand"))
    assert simplest_sentence(board) == (
        "No method without a model (Best-average, Rand) is ahead of all others in mean regret at any budget. "
        "A tie: after 100 trials H-NLL and Best-average share the lowest mean regret, 0."
    )
    frame.loc[(frame["method"] == "Best-average") & (frame["budget"] == 10), "regret"] = 0.05
    told = simplest_sentence(leaderboard(frame, ("Best-average", "Rand")))
    assert told.startswith("A method without a model is ahead of all others: after 10 trials Best-average")
    assert "A tie: after 100 trials" in told


def test_the_caption_says_that_intervals_of_regret_are_cut_off():
    text = render_arena_page(page_of(LEVELS))
    assert text.count("cut off at 0") == text.count("Underlined: the lowest mean") == 1


def test_a_verdict_is_given_only_where_the_interval_excludes_0():
    assert verdict(Estimate(1.0, 0.5, 1.5)) == "behind"
    assert verdict(Estimate(1.0, -0.5, 2.5)) == "not told apart"
    assert verdict(Estimate(1.0, float("nan"), float("nan"))) == "not told apart"


def test_what_is_missing_or_does_not_apply_is_told_and_names_are_no_markup():
    text = render_arena_page(page_of(LEVELS))
    assert "does not apply: there are no matched inputs" in text
    assert "not ranked: 3 runs missing" in text
    assert "<b>Own" not in text
    assert text.count("On machine 1: seconds") == 1
    assert "On machine 2" not in text


def test_the_page_loads_nothing_and_is_the_same_again():
    text = render_arena_page(page_of(LEVELS))
    assert text == render_arena_page(page_of(LEVELS))
    assert not re.search(r"""(src|href)=["'](?!#)|url\(|@import""", text)
    assert "default-src 'none'" in text


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; apt-get install chromium")
def test_the_page_fits_a_desk_and_a_phone_and_its_tables_can_be_sorted(tmp_path):
    path = tmp_path / "page.html"
    write_arena_page(page_of(LEVELS), path)
    order = (
        "[...document.querySelector('table.sortable').tBodies[0].rows].map((row) => row.cells[0].innerText)"
    )
    with browser(tmp_path / "profile") as tab:
        for width in (1280, 390):
            tab.open(path.as_uri(), width)
            assert tab.run("document.documentElement.scrollWidth") <= width
            assert not [event for event in tab.events if event["method"].startswith("Log")]
            requests = [each["request"]["url"] for each in tab.reported("Network.requestWillBeSent")]
            assert requests == [path.as_uri()]
        ranked = tab.run(order)
        assert ranked[:2] == ["H-NLL", "H-EKL"]
        for _ in range(2):  # up, then down; what has no rank stays below
            tab.click("table.sortable thead th:nth-child(3) button")
        assert tab.run(order)[0] == "Rand"
        assert tab.run(order)[-2:] == ranked[-2:]
