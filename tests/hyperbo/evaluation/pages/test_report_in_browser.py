"""The report in a real browser, at the width of a desk and of a phone: measured there, and photographed."""

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from hyperbo.evaluation.pages.report import write_report

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; apt-get install chromium"),
]

# A frame has the width that is asked for, which a window of a headless browser does not below 500 points.
FRAME = """<!DOCTYPE html>
<html><body style="margin:0"><iframe src="report.html" style="border:0;width:%(width)dpx;height:%(height)dpx">
</iframe><script>
addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument;
  const boxes = (of) => [...page.querySelectorAll(of)].map((element) => {
    const box = element.getBoundingClientRect();
    return {left: box.left, right: box.right, top: box.top, width: box.width, height: box.height,
            label: element.getAttribute("aria-label") ?? element.textContent};
  });
  const found = document.createElement("pre");
  found.id = "found";
  found.textContent = JSON.stringify({
    width: page.documentElement.scrollWidth,
    height: page.body.getBoundingClientRect().height,
    figures: boxes("svg[role=img]"),
    texts: boxes("svg[role=img] text"),
    swatches: boxes("svg.swatch"),
    sections: boxes("section > h2"),
    tables: boxes(":not(details) > .table > .scroll"),
    hidden: [...page.querySelectorAll(":not(details) > .table > .scroll")].map(
      (table) => table.scrollWidth - table.clientWidth),
    words: boxes(".word"),
  });
  document.body.append(found);
});
</script></body></html>
"""
WIDTHS = {"desk": 1280, "phone": 390}
LONGEST = 20_000
METHODS = ("H-NLL", "H-EKL", "FSBO", "ABLR", "MIMO", "RFGP", "MAF", "STBOH", "STBO", "Rand")


@pytest.fixture(scope="module")
def folder(shared_records, shared_metadata, tmp_path_factory):
    """A report on ten methods, two tasks, with predictions and one arm missing."""
    kept = shared_records[shared_records["task"].isin(["digits-cnn-32", "wine-mlp-16"])]
    random = np.random.default_rng(5)
    source = ("H-NLL", "H-EKL", "STBO", "Rand")
    records = []
    for number, method in enumerate(METHODS):
        own = kept[kept["method"] == source[number % 4]].assign(method=method)
        own["seed"] = (own["seed"] + number) % 5
        own["mean"] = own["y"] + random.normal(size=len(own))
        own["deviation"] = 1.0
        records.append(own)
    joined = type(kept)(np.concatenate(records), columns=records[0].columns).infer_objects()
    lost = (joined["method"] == "MAF") & (joined["task"] == "wine-mlp-16") & (joined["seed"] == 1)
    metadata = shared_metadata | {
        "methods": {method: {} for method in METHODS},
        "tasks": ["digits-cnn-32", "wine-mlp-16"],
    }
    path = tmp_path_factory.mktemp("report")
    write_report(joined[~lost], metadata, path / "report.html")
    return path


def browse(folder, *arguments):
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--disable-background-networking",
            "--allow-file-access-from-files",  # so that the frame may be measured
            f"--user-data-dir={folder / 'profile'}",
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=list(WIDTHS))
def seen(request, folder):
    """The width, what was measured at that width, and the photograph."""
    from matplotlib.image import imread

    width = WIDTHS[request.param]
    page = folder / f"{request.param}.html"
    page.write_text(FRAME % {"width": width, "height": LONGEST}, encoding="utf-8")
    dom = browse(folder, "--dump-dom", page.as_uri())
    (found,) = re.findall(r'<pre id="found">(.*?)</pre>', dom, flags=re.DOTALL)
    measured = json.loads(html.unescape(found))
    photograph, size = folder / f"{request.param}.png", f"{max(width, 500)},{round(measured['height'])}"
    browse(folder, f"--window-size={size}", f"--screenshot={photograph}", page.as_uri())
    return width, measured, imread(photograph)[..., :3]


def test_nothing_is_wider_than_the_page(seen):
    width, found, _ = seen
    assert found["width"] <= width
    assert 2000 < found["height"] < LONGEST
    for box in (*found["figures"], *found["sections"]):
        assert 0 <= box["left"] < box["right"] <= width


def test_figures_are_there_and_can_be_read(seen):
    width, found, _ = seen
    figures, texts = found["figures"], found["texts"]
    assert len(figures) == 1 + 4 + 3 + 1 + 2
    for box in figures:
        assert box["width"] > 250
        assert box["height"] > 120
    # Letters no smaller than 9 points, and none cut off at the side.
    assert min(box["height"] for box in texts if box["label"]) >= 9
    assert max(box["right"] for box in texts) <= width
    assert {"H-NLL", "Rand", "iteration", "mean simple regret"} <= {box["label"] for box in texts}
    assert len(found["swatches"]) == 2 * len(METHODS)


def test_the_figure_of_the_verdict_comes_before_the_fold(seen):
    width, found, _ = seen
    opening = found["figures"][0]
    assert opening["label"].startswith("Simple regret by iteration")
    assert opening["top"] + opening["height"] <= 844 if width < 500 else 800
    # Beside the sentence on a desk, below it on a phone.
    assert (opening["left"] > width / 3) == (width > 1000)


def test_names_with_a_hyphen_stay_in_one_line(seen):
    _, found, _ = seen
    names = [box for box in found["words"] if box["label"] in ("H-NLL", "H-EKL")]
    assert len(names) > 4
    assert all(box["height"] < 32 for box in names)


def test_a_table_that_goes_on_has_a_shadow_at_its_edge(seen):
    width, found, photograph = seen
    hidden = np.array(found["hidden"])
    assert (hidden > 20).any() == (width == WIDTHS["phone"])
    page_colour = photograph[5, 5]
    for box, beyond in zip(found["tables"], hidden, strict=True):
        # Between the text of the last row and its rule, where nothing is drawn but the background.
        row, edge = round(box["top"] + box["height"]) - 4, round(box["right"])
        shade = np.abs(photograph[row, edge - 2] - page_colour).max()
        assert (shade > 0.15) == (beyond > 20)


def test_legends_do_not_overlap(seen):
    _, found, _ = seen
    for figure in found["figures"]:
        bottom = figure["top"] + figure["height"]
        within = [
            box
            for box in found["texts"]
            if figure["top"] <= box["top"] < bottom
            and figure["left"] <= box["left"] < figure["right"]
            and box["label"] in METHODS
        ]
        assert len(within) in (0, 2, len(METHODS))
        for i, a in enumerate(within):
            for b in within[i + 1 :]:
                apart = a["right"] <= b["left"] or b["right"] <= a["left"]
                below = abs(a["top"] - b["top"]) >= 0.7 * min(a["height"], b["height"])
                assert apart or below


def test_the_photograph_shows_the_lines(seen):
    _, found, photograph = seen
    assert photograph.shape[0] == round(found["height"])
    for box in found["figures"]:
        top, left = round(box["top"]), round(box["left"])
        part = photograph[top : top + round(box["height"]), left : left + round(box["width"])]
        # Coloured, not a shade of grey: lines and points, in more than one hue.
        spread = part.max(axis=2) - part.min(axis=2)
        coloured = part[spread > 0.35]
        assert len(coloured) > 0.001 * spread.size
        assert len(np.unique(coloured.argmax(axis=1))) >= 2
