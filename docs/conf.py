"""Settings of Sphinx, which makes the site of the documents: `make site`.

The sources are those of the repository, so a relative link leads to the same place there and in the site.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
# The tutorial calls the command `hyperbo` of this environment.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

from docs.reference import write_api, write_commands  # noqa: E402  (found by the line above)

project = "hyperbo"
author = "The hyperbo-priors developers"
project_copyright = author
language = "en"

extensions = ["myst_nb"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**", "pd1_builder/*/README.md"]
# Folders that are named here are not searched. Python files are links to download, and no pages.
exclude_patterns = [
    *(path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in ("docs", "pd1_builder")),
    "docs/_site",
    "docs/optunahub/package",  # a page of another site
    "**/__pycache__",
]
source_suffix = {".md": "myst-nb"}
templates_path = ["_site/templates"]
html_static_path = ["_site/static"]

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
# `text` marks blocks that are in no language; `#` in a TOML block may stand inside a text.
suppress_warnings = ["misc.highlighting_failure"]
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "notebooks")
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True

html_theme = "furo"
html_title = "hyperbo"
html_copy_source = False
html_show_sphinx = False
html_additional_pages = {"index": "redirect.html"}
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}


def _folders_to_their_pages(app: Sphinx, document: nodes.document) -> None:
    """Let a link to a folder, such as `docs/decisions`, lead to the page README.md in it."""
    for link in document.findall(addnodes.pending_xref):
        page = (Path(app.env.doc2path(link["refdoc"])).parent / link["reftarget"] / "README.md").resolve()
        if link["reftype"] == "myst" and not link["refdomain"] and page.is_file():
            name = page.relative_to(ROOT).with_suffix("").as_posix()
            link["refdomain"], link["reftarget"], link["reftargetid"] = "doc", name, None


def _lists(app: Sphinx, page: str, source: list[str]) -> None:
    """Put pages that a page lists below it in the navigation: those of decisions, and of the Python API."""
    if page in ("docs/decisions/README", "docs/generated/api/index"):
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"


def setup(app: Sphinx) -> None:
    """Write the generated pages before Sphinx looks for sources."""
    generated = Path(__file__).parent / "generated"
    app.connect("builder-inited", lambda _: (write_api(generated / "api"), write_commands(generated)), 100)
    app.connect("source-read", _lists)
    app.connect("doctree-read", _folders_to_their_pages)
