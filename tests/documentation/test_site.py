"""The site is built without a warning, and the tutorial in it runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What a page loads, not what it links to.
LOADED = re.compile(
    r"""<(?:script|img|link|iframe|source)\b[^>]*?\b(?:src|href)=["']((?:https?:)?//[^"']+)"""
)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    site = tmp_path / "site"
    # A cache of its own: the tutorial is run by the code as it is.
    cache = f"nb_execution_cache_path={tmp_path / 'notebooks'}"
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-c",
        "docs",
        "-D",
        cache,
        ".",
        site,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]

    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert {path.name: found for path, text in pages.items() if (found := LOADED.findall(text))} == {}
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert [
        found for text in styles for found in re.findall(r"(?:url\(|@import)[\s\"']*(?:https?:)?//.*", text)
    ] == []
    assert "docs/index.html" in pages[site / "index.html"]
    tutorial = pages[site / "docs/tutorials/first-hour.html"]
    assert len(re.findall(r'<img [^>]*src="[^"]*_images/', tutorial)) == 4
    assert "is in service" in tutorial  # the prior of one's own was trained
    assert (site / "searchindex.js").is_file()
