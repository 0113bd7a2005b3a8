import itertools
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from pages import require_one_file, text_of

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.figures import curves as figures
from hyperbo.evaluation.figures.style import line_styles
from hyperbo.evaluation.measures.calibration import measure_calibration
from hyperbo.evaluation.measures.comparisons import paired_comparison
from hyperbo.evaluation.measures.correlations import correlate_losses, quantity_name
from hyperbo.evaluation.measures.findings import findings_about, headline, number
from hyperbo.evaluation.measures.regret import regrets_of_priors, simple_regrets
from hyperbo.evaluation.measures.repeats import measure_repeats
from hyperbo.evaluation.measures.spread import Band
from hyperbo.evaluation.pages.report import write_report
from hyperbo.evaluation.pages.sections import repeats_section

SVG = "{http://www.w3.org/2000/svg}svg"


@pytest.fixture(scope="module")
def page(shared_records, shared_metadata, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert write_report(shared_records, shared_metadata, path) == path
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]
    return path.read_text(encoding="utf-8")


def test_the_page_is_well_formed_and_holds_all_figures(page):
    # Written so that an XML parser, stricter than any browser, accepts it too.
    root = ElementTree.fromstring(page)
    drawn = [e for e in root.iter(SVG) if e.get("role") == "img"]
    assert len(drawn) == 1 + 4 + 3 + 6
    assert all(len(list(svg.iter())) > 30 for svg in drawn)
    for svg in drawn[:8]:
        assert {"H-NLL", "H-EKL", "STBO", "Rand"} <= {text.strip() for text in svg.itertext()}
    captions = [text_of(e) for e in root.iter("figcaption")]
    assert any("over 6 tasks: median over 5 seeds (line) and 20th to 80th percentile" in c for c in captions)
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:url\(#|href="#)([^")]+)', page)
    assert used
    assert set(used) <= set(ids)


def test_the_page_needs_nothing_else(page):
    require_one_file(page)


def test_the_page_names_what_was_run(page, metadata):
    text = text_of(ElementTree.fromstring(page))
    keys = ("dataset", "manifest_hash", "preparation", "protocol", "code_version", "started", "finished")
    for expected in (
        *(metadata[key] for key in (*keys, "command")),
        *metadata["platform"].values(),
        *metadata["run_ids"],
        *metadata["methods"],
        *metadata["tasks"],
        '"learning_rate": 0.001',
        "methodpre-trainevaluate",
        "H-NLL74.5\N{EN DASH}",
        "STBO\N{EN DASH}60.1",
        "Of no single method: build 3.2 s",
    ):
        assert expected in text


def test_the_page_says_what_the_numbers_say(page, records, metadata):
    text = text_of(ElementTree.fromstring(page))
    regrets = simple_regrets(records, metadata)
    for budget in (10, 30):
        means = np.median(regrets.values[..., budget - 1].mean(axis=1), axis=1)
        said = headline(regrets, budget)
        assert said in text
        for method, mean in zip(regrets.methods, means, strict=True):
            assert re.search(rf"{method} {mean:.3g} \[", said)
        found = findings_about(regrets, "H-NLL", budget)
        others = [each.second for finding in found for each in finding.comparisons]
        assert sorted(others) == ["H-EKL", "Rand", "STBO"]
        assert all(finding.sentence in text for finding in found)
    assert re.search("Saturated tasks.*: easy", text)
    assert "Runs are missing" not in text


@pytest.fixture
def predicted(records):
    random = np.random.default_rng(8)
    own = records["method"] == "H-NLL"
    records["mean"] = np.where(own, records["y"] + random.normal(size=len(records)), np.nan)
    records["deviation"] = np.where(own, 0.8, np.nan)
    return records


def test_predictions_and_losses_are_shown_where_they_are(page, predicted, losses, metadata, tmp_path):
    metadata["tasks"] = metadata["tasks"][:2]
    predicted = predicted[predicted["task"].isin(metadata["tasks"])]
    losses = losses[losses["task"].isin(["", *metadata["tasks"]])]
    metadata["objective"] = {"name": "accuracy", "direction": "maximize"}
    metadata["flat_tasks"] = ["flat-1", "flat-2"]
    full = write_report(predicted, metadata, tmp_path / "r.html", losses=losses).read_text(encoding="utf-8")
    root, plain = ElementTree.fromstring(full), text_of(ElementTree.fromstring(page))
    text = text_of(root)
    assert len([e for e in root.iter(SVG) if e.get("role") == "img"]) == 1 + 4 + 3 + 1 + 4 + 2

    assert "calibration cannot be judged" in plain
    # Some runs of the records repeat candidates; none is long enough to stand still.
    share = measure_repeats(predicted, "H-NLL").share
    assert f"H-NLL{100 * share:.1f} %shorter than 40" in text
    assert repeats_section(predicted[predicted["iteration"] == 1], metadata)["repeats"] == []
    assert "Losses" not in plain
    assert "Without predictions: H-EKL, STBO, Rand." in text
    own = measure_calibration(predicted, "H-NLL")
    assert own is not None
    assert f"{100 * own.coverage[0]:.1f} % ± {number(100 * own.coverage_std[0], 2)}" in text
    assert f"{own.predictions}{own.repeats}" in text
    regrets = simple_regrets(predicted, metadata)
    datasets = dict(zip(predicted["task"], predicted["task_dataset"], strict=True))
    for each in correlate_losses(losses, regrets, 30, datasets):
        constant = each.y == "regret" and np.ptp(each.y_values[:2]) == 0
        shown = "not defined" if constant else number(each.coefficient, 2)
        assert f"against {quantity_name(each.x)}: Pearson correlation {shown} over 10 points" in text
    assert "Best observation within 30 iterations by accuracy (to be maximised)" in text
    assert "highest mean marked" in text
    assert "by the raw objective (to be minimised)" in plain
    assert "can pull a prior towards constants: flat-1, flat-2." in text
    assert "pull a prior towards constants" not in plain

    with pytest.raises(InvalidInputError, match="method not named in the metadata: MAF"):
        write_report(predicted, metadata, tmp_path / "r.html", losses=losses.replace("H-EKL", "MAF"))


def test_every_link_of_the_contents_leads_somewhere(page, metadata):
    root = ElementTree.fromstring(page)
    ids = {e.get("id"): e for e in root.iter() if e.get("id")}
    links = {text_of(e): e.get("href")[1:] for e in root.iter("a")}
    assert set(links.values()) <= set(ids)
    for task in metadata["tasks"]:
        article = ids[links[task]]
        assert article.tag == "article"
        assert text_of(next(article.iter("h3"))) == task
        assert len([e for e in article.iter(SVG) if e.get("role") == "img"]) == 1
        assert [text_of(e) for e in article.iter("th") if e.get("scope") == "row"] == list(
            metadata["methods"]
        )


def test_comparisons_say_what_they_are_made_of(page, records, metadata):
    text = text_of(ElementTree.fromstring(page))
    regrets = simple_regrets(records, metadata)
    for other in ("H-EKL", "STBO", "Rand"):
        for iteration in (10, 30):
            c = paired_comparison(regrets, "H-NLL", other, iteration)
            tallies = (f"{t.wins}, {t.ties}, {t.losses}" for t in (c.by_task, c.by_seed))
            row = f"{other}{iteration}{number(c.difference)} [{number(c.lower)}, {number(c.upper)}]"
            assert f"{row}{number(c.p_value)}{''.join(tallies)}none" in text
    assert "cannot give a p-value below 0.0625 with 5 seeds" in text


def test_runs_that_share_a_prior_are_no_seeds(records, losses, metadata, tmp_path):
    metadata["tasks"], metadata["runs_per_prior"] = metadata["tasks"][:2], 2
    records = records[records["task"].isin(metadata["tasks"])]
    losses = losses[losses["task"].isin(["", *metadata["tasks"]])]
    written = write_report(records, metadata, tmp_path / "r.html", losses=losses).read_text(encoding="utf-8")
    text = text_of(ElementTree.fromstring(written))
    regrets = simple_regrets(records, metadata)
    # Of seeds 0 to 4, two each share a prior: three priors.
    c = paired_comparison(regrets_of_priors(regrets, metadata), "H-NLL", "Rand", 30)
    assert len(c.seeds) == 3
    assert f"Rand30{number(c.difference)} [{number(c.lower)}, {number(c.upper)}]{number(c.p_value)}" in text
    assert "A bootstrap of 3 values" in text
    assert "cannot give a p-value below 0.25 with 3 seeds" in text
    assert "standard deviation over 3 seeds; lowest marked" in text
    of_kind = losses[
        (losses["method"] == "H-NLL") & (losses["kind"] == "training_nll") & (losses["held_out"] == "digits")
    ]
    of_run = of_kind.sort_values("seed")["value"].to_numpy()
    of_prior = np.array([of_run[:2].mean(), of_run[2:4].mean(), of_run[4]])
    assert f"H-NLL{number(of_prior.mean())} ± {number(of_prior.std(ddof=1), 2)}" in text
    assert len(re.findall(r"Pearson correlation (?:\S+|not defined) over 6 points", text)) == 4
    assert "2 tasks: median over 5 runs (line)" in text
    assert "4 methods, 2 tasks, 5 runs" in text
    assert "over 5 seeds" not in text


def test_seconds_that_methods_share_are_counted_once_in_all(page, records, metadata, tmp_path):
    metadata["seconds"] = {"pre-train": {"H-NLL": 4.0, "H-EKL": 4.0}, "evaluate": {"H-NLL": 1.5, "Rand": 0.5}}
    dash = "\N{EN DASH}"
    shared = "is in the seconds of each of them, and once in those of all"
    for totals, said in (({"pre-train": 4.0, "evaluate": 2.0}, True), ({"pre-train": 8.0}, False)):
        metadata["total_seconds"] = totals
        write_report(records, metadata, tmp_path / "r.html")
        text = text_of(ElementTree.fromstring((tmp_path / "r.html").read_text(encoding="utf-8")))
        assert f"all methods{totals['pre-train']}{totals.get('evaluate', dash)}" in text
        assert (shared in text) == said
    assert "all methods" not in text_of(ElementTree.fromstring(page)).partition("Cost")[2]


def test_the_same_input_gives_the_same_page(page, records, metadata, tmp_path):
    shuffled = records.sample(frac=1.0, random_state=3)
    assert write_report(shuffled, metadata, tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_missing_arms_are_named_and_hostile_names_are_text(with_missing_arm, metadata, tmp_path):
    evil = "<script>alert('1')</script> & \"$\\frac$\""
    renamed = with_missing_arm.replace({"task": {"wine-mlp-16": evil}, "method": {"Rand": evil}})
    metadata["tasks"] = [evil if task == "wine-mlp-16" else task for task in metadata["tasks"]]
    metadata["methods"] = {
        (evil if name == "Rand" else name): value for name, value in metadata["methods"].items()
    } | {"MAF": {"note": evil}}
    metadata["command"] = evil
    failure = {"method": "STBO", "task": evil, "seed": 3, "reason": evil}
    metadata["failures"] = [failure, failure | {"task": "easy", "reason": "stale"}]
    page = write_report(renamed, metadata, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script" not in page
    text = text_of(ElementTree.fromstring(page))
    assert f"STBO on {evil}: seed 3 (seed 3 failed: {evil})" in text
    assert "stale" not in text  # the run is there all the same
    assert "After 10 iterations, the mean simple regret over 4 of 6 tasks" in text
    # Each comparison is over what its two methods completed.
    findings_of_page = text[text.index("After 10 iterations, H-NLL ") : text.index("In parentheses")]
    assert len(re.findall(r" STBO \([^()]*, over 4 of 6 tasks\)", findings_of_page)) == 2
    assert findings_of_page.count("of 6 tasks)") == 2
    assert "STBO on digits-cnn-64: seed 1" in text
    assert "MAF on easy: seeds 0, 1, 2, 3, 4" in text
    assert "MAF missing." in text
    for budget in (10, 30):
        assert f"After {budget} iterations, H-NLL has no completed task in common with MAF." in text
    assert "without one completed task: MAF" in text
    assert f"Left out of the aggregates: digits-cnn-64, {evil}" in text
    assert "Aggregates are over the 4 tasks of 6" in text
    assert not re.search(r"\bnan\b", text)


def test_the_smallest_evaluation_has_a_report(records, metadata, tmp_path):
    one = (records["method"] == "Rand") & (records["task"] == "easy") & (records["seed"] == 2)
    metadata |= {"methods": {"Rand": {}}, "tasks": ["easy"], "seeds": [2], "iterations": 1}
    only = records[one & (records["iteration"] == 1)]
    page = write_report(only, metadata, tmp_path / "r.html").read_text(encoding="utf-8")
    text = text_of(ElementTree.fromstring(page))
    assert text.count("After 1 iteration, the mean simple regret over 1 task (1 seed) is: Rand") == 1
    assert not re.search(
        r"percentile|\(band\)|\[[^]]*,|±|median over", text[: text.index("What the words mean")]
    )
    assert "Only Rand completed a task, so there is nothing to compare it with." in text


def test_one_seed_shows_no_spread(records, losses, metadata, tmp_path):
    metadata |= {"tasks": metadata["tasks"][:2], "seeds": [1]}
    own, lost = (
        frame[(frame["seed"] == 1) & frame["task"].isin(["", *metadata["tasks"]])]
        for frame in (records, losses)
    )
    page = write_report(own, metadata, tmp_path / "r.html", losses=lost).read_text(encoding="utf-8")
    text = text_of(ElementTree.fromstring(page))
    assert "With one seed it cannot be told whether H-NLL is ahead of" in text
    # Shares of runs, which are of several tasks, have a spread all the same.
    before, _, after = text[: text.rindex("What the words mean")].partition("Iterations after which half")
    said = before + after.partition("Comparisons")[2]
    assert not re.search(r"percentile|±|\[[^]]*[\d,]|median over .{,2}seed|over 1 seed|bootstrap", said)
    assert "Mean simple regret of each seed" not in page


def test_a_ratio_below_one_is_a_slow_down(records, metadata, tmp_path):
    rows = records[records["method"].isin(["H-NLL", "Rand"]) & (records["task"] == "digits-cnn-32")].copy()
    # Rand ends at a regret of 0.5 from its second iteration on; H-NLL passes it in its fifth.
    sooner = rows["iteration"] >= np.where(rows["method"] == "Rand", 2, 5)
    rows["y"] = rows["y_max"] - np.where(sooner, np.where(rows["method"] == "Rand", 0.5, 0.4), 2.0)
    metadata |= {"methods": {"H-NLL": {}, "Rand": {}}, "tasks": ["digits-cnn-32"]}
    path = write_report(rows, metadata, tmp_path / "r.html")
    text = text_of(ElementTree.fromstring(path.read_text(encoding="utf-8")))
    assert "median over tasks: slow-down 2.5." in text
    assert "digits-cnn-32Rand25slow-down 2.5" in text


def test_bad_input_leaves_no_page(records, metadata, tmp_path):
    with pytest.raises(InvalidInputError, match="dataset: the field is missing"):
        write_report(records, {k: v for k, v in metadata.items() if k != "dataset"}, tmp_path / "r.html")
    with pytest.raises(InvalidInputError, match="not named in the metadata"):
        write_report(records, metadata | {"tasks": ["easy"]}, tmp_path / "r.html")
    assert not list(tmp_path.iterdir())


def test_the_opening_has_the_beginning_of_the_manifest_hash(page, metadata):
    (head,) = (text_of(e) for e in ElementTree.fromstring(page).iter("section") if e.get("id") == "verdict")
    digits = metadata["manifest_hash"]
    assert f"manifest {digits[:12]}, code" in head
    assert digits not in head


def test_no_line_ends_at_the_hyphen_of_a_name(page):
    root = ElementTree.fromstring(page)
    words = {text_of(e) for e in root.iter("span") if e.get("class") == "word"}
    assert {"H-NLL", "H-EKL"} <= words
    # Cells that begin a row are never broken; everywhere else the name is in a word of its own.
    broken = [
        e
        for e in root.iter()
        if e.tag in ("th", "li", "p") and "H-NLL" in (e.text or "") and e.get("scope") != "row"
    ]
    assert broken == []


def test_methods_are_told_apart_without_colour_alone():
    styles = list(line_styles([str(i) for i in range(35)]).values())
    assert len({(style.colour, style.dashes) for style in styles}) == 35
    ten = styles[:10]
    assert all(a.dashes != b.dashes for a, b in itertools.pairwise(ten))
    # Where a colour comes again, the line has points, of another shape than those of the first.
    for first, second in zip(styles[:3], styles[7:10], strict=True):
        assert first.colour == second.colour
        assert (first.marked, second.marked) == (False, True)
        assert first.marker != second.marker
    assert all(style.outline.startswith("M") for style in styles)


def test_the_users_matplotlib_settings_do_not_reach_a_figure():
    import matplotlib as mpl

    values = np.array([[1.0, 0.5, 0.0], [0.2, 0.1, 0.1]])

    def draw():
        band = Band(values, values * 0.9, values * 1.1)
        return figures.regret_figure("r", band, ["a", "b"], line_styles(["a", "b"]))

    plain = draw()
    with mpl.rc_context({"lines.linewidth": 9, "font.size": 30, "text.usetex": True, "axes.grid": False}):
        assert draw() == plain


def test_numbers_can_be_had_without_the_report_libraries():
    code = (
        "import sys\n"
        "from hyperbo.evaluation import figures, measures, prior, records\n"
        "assert not {'matplotlib', 'jinja2', 'rich', 'jax', 'scipy'} & set(sys.modules)\n"
        "sys.modules['jinja2'] = None\n"
        "from hyperbo.errors import NotAvailableError\n"
        "try:\n"
        "    import hyperbo.evaluation.pages.report\n"
        "except NotAvailableError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("no module jinja2; pip install 'hyperbo-priors[report]'\n")
