"""The page of a prior: what it says, what it shows, and that it needs nothing else."""

import itertools
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hyperbo_flows.cli.main import app
from hypothesis import given
from hypothesis import strategies as st
from pages import require_one_file, text_of
from tuning_priors import prior_over
from typer.testing import CliRunner

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.evaluation.figures.prior import raw_text, ticks
from hyperbo.evaluation.figures.prior_matrix import matrix_figure
from hyperbo.evaluation.pages.prior import render_prior_page
from hyperbo.evaluation.prior.cuts import Planes
from hyperbo.evaluation.prior.view import view_prior
from hyperbo.priors.catalog import add_prior, promote
from hyperbo.priors.file import save_prior
from hyperbo.priors.history import PriorDecision

SVG, IMAGE = (f"{{http://www.w3.org/2000/svg}}{name}" for name in ("svg", "image"))
SPACE = SearchSpace(
    (Parameter("learning_rate", 1e-4, 1.0, "log"), Parameter("momentum<b>", 0.0, 0.99, "log1m"))
)
PRIOR = prior_over(SPACE)
DECISIONS = (
    PriorDecision(
        "0" * 16, "promoted", "2026-01-02T03:04:05+00:00", "Lower regret [b].", {"difference": -0.5}
    ),
    PriorDecision("0" * 16, "held_back", "2026-01-03T03:04:05+00:00", "No better.", {"per_seed": [1.5, 2.5]}),
)


@pytest.fixture(scope="module")
def page():
    return render_prior_page(PRIOR, "own/line", DECISIONS)


@pytest.fixture(scope="module")
def root(page):
    # Written so that an XML parser, stricter than any browser, accepts it too.
    return ElementTree.fromstring(page)


def test_the_page_holds_all_figures_each_with_a_text_of_its_own(root, page):
    drawn = [each for each in root.iter(SVG) if each.get("role") == "img"]
    # Pairs, three of each parameter, and the training.
    assert len(drawn) == 1 + 3 * SPACE.dimension + 1
    labels = [each.get("aria-label") for each in drawn]
    assert all(labels)
    assert len(set(labels)) == len(labels)
    # One plane of the two parameters, its mean and its deviation, beside two colour bars.
    planes = next(each for each in drawn if "each pair" in each.get("aria-label"))
    assert len(list(planes.iter(IMAGE))) == 4
    assert {"learning_", "rate", "prior mean"} <= {each.strip() for each in planes.itertext()}
    ids = [each.get("id") for each in root.iter() if each.get("id")]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', page)) <= set(ids)


def test_the_page_needs_nothing_else(page):
    require_one_file(page)


def test_the_page_says_the_numbers_of_the_view(root):
    text, promising = text_of(root), view_prior(PRIOR).promising
    raw = SPACE.from_unit(promising.best[None])[0]
    assert f"The prior mean is largest, {promising.best_mean:.3g}" in text
    (said,) = re.findall(r", at learning_rate\s([\d.]+), momentum<b>\s([\d.]+)\.\s", text)
    # Two digits of a rate, and of what momentum lacks to one.
    assert float(said[0]) == pytest.approx(raw[0], rel=0.02)
    assert 1.0 - float(said[1]) == pytest.approx(1.0 - raw[1], rel=0.02)
    low, high = (raw_text(SPACE.parameters[0], each) for each in promising.ranges[0])
    assert f"{low} to {high}" in text
    rows = [[text_of(cell) for cell in row] for row in root.iter("tr")]
    (third,) = (row for row in rows if row[0] == "3")
    assert third[1] == raw_text(SPACE.parameters[0], promising.proposals[2, 0])
    assert third[3].replace("\N{MINUS SIGN}", "-") == f"{promising.proposal_means[2]:.3g}"


def test_the_first_trials_are_labelled_in_the_figure_of_each_parameter(root):
    promising = view_prior(PRIOR).promising
    (first, *_) = (e for e in root.iter(SVG) if "first trials at" in e.get("aria-label", ""))
    texts = [each.strip() for each in first.itertext() if each.strip()]
    for number, at in enumerate(promising.proposals[:, 0], 1):
        assert f"trial {number}" in texts
        assert raw_text(SPACE.parameters[0], at) in texts


def test_the_page_says_what_the_prior_is_and_how_it_did(root):
    text = text_of(root)
    for expected in (
        "Prior own/line",
        "Trained by H-NLL on 1 task of trials/none:1.0.0",
        'hyperbo.load_prior("own/line")',
        "2 is the best that a task has",
        "lower is better",
        PRIOR.identity,
        "Promoted, 2026-01-02T03:04:05 UTC",
        "Lower regret [b].",
        "difference-0.5",
        "Held back, 2026-01-03T03:04:05 UTC",
        "per seed[1.5, 2.5]",
    ):
        assert expected in text
    assert "raw objective of" not in text


@pytest.mark.slow
def test_one_parameter_of_warped_values_has_raw_objectives_and_no_pairs():
    space = SearchSpace(SPACE.parameters[:1])
    prior = prior_over(space, warping="negative_log", preparation="paper")
    page = render_prior_page(prior, "own/line", ())
    mean = view_prior(prior).promising.best_mean
    assert f"a raw objective of {np.exp(-mean) - 1e-10:.3g} in the median" in page
    assert "How it did" not in page
    assert "Pairs of parameters" not in page
    assert page.count('role="img"') == 3 + 1


def test_the_planes_of_eight_parameters_are_all_drawn_and_not_large():
    at, pairs = np.linspace(0.0, 1.0, 48), tuple(itertools.combinations(range(8), 2))
    slopes = np.random.default_rng(0).normal(size=(len(pairs), 2))
    values = slopes[:, :1, None] * at + np.sin(3.0 * slopes[:, 1:, None] * at[:, None])
    columns = tuple(Parameter(f"parameter_{i}", 0.0, 1.0) for i in range(8))
    drawn, width = matrix_figure("planes", Planes(pairs, at, values, np.exp(values), False), at[:8], columns)
    assert len(list(ElementTree.fromstring(drawn).iter(IMAGE))) == 8 * 7 + 2
    assert len(drawn) < 1_000_000
    assert width < 1000


def test_the_same_prior_gives_the_same_page(page):
    assert render_prior_page(PRIOR, "own/line", DECISIONS) == page


def test_the_command_explains_a_prior_by_its_name(tmp_path):
    save_prior(tmp_path / "prior", PRIOR)
    added = add_prior(tmp_path / "catalog", "own/line", tmp_path / "prior")
    promote(tmp_path / "catalog", "own/line", added, "The first.", {})
    out, catalog = tmp_path / "new" / "page.html", str(tmp_path / "catalog")
    done = CliRunner().invoke(app, ["prior", "explain", "own/line", "--out", str(out), "--catalog", catalog])
    assert done.exception is None, repr(done.exception)
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{out}\n", "")
    text = text_of(ElementTree.fromstring(out.read_bytes()))
    assert "Prior own/line" in text
    assert "The first." in text
    failed = CliRunner().invoke(app, ["prior", "explain", "no/line", "--out", str(out), "--catalog", catalog])
    assert failed.exit_code == 1
    assert failed.stderr.startswith("hyperbo: there is no prior 'no/line'")
    assert "did you mean own/line?" in failed.stderr


@st.composite
def parameters(draw):
    scaling = draw(st.sampled_from(["linear", "log", "log1m"]))
    if scaling == "linear":
        lower = draw(st.floats(-1e6, 1e6))
        return Parameter("x", lower, lower + draw(st.floats(1.0, 1e6)))
    lower = 10.0 ** draw(st.floats(-6.0, 3.0))
    upper = lower * 10.0 ** draw(st.floats(0.1, 10.0))
    return (
        Parameter("x", lower, upper, scaling)
        if scaling == "log"
        else Parameter("x", 1 - upper, 1 - lower, scaling)
    )


def read(text):
    """The number that a tick's text says."""
    plain = text.replace("\N{MINUS SIGN}", "-")
    power = re.fullmatch(r"(?:(.+)\N{MULTIPLICATION SIGN})?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", plain)
    if not power:
        return float(plain)
    exponent = power[2].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    return float(power[1] or 1.0) * 10.0 ** int(exponent)


@given(parameters(), st.integers(2, 6))
def test_ticks_are_few_and_stand_where_their_text_says(parameter, most):
    positions, texts = ticks(parameter, most)
    assert 1 <= len(positions) == len(texts) <= most + 1
    assert (np.diff(positions) > 0).all()
    assert ((positions >= 0.0) & (positions <= 1.0)).all()
    whole = parameter.upper - parameter.lower
    for at, text in zip(parameter.raw_value(positions), texts, strict=True):
        assert read(text) == pytest.approx(at, rel=1e-6, abs=1e-6 * whole)
