"""The catalogue in a real browser, on a desk and on a phone: what it shows, asks for, runs and copies."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest
from browser import CHROMIUM, Browser, browser
from catalogue_cases import write_hostile_place, write_place

from pd1_builder.site.write import write_site

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; apt-get install chromium"),
]

PAGES = ("index.html", "catalogue/pd1/mini/1.1.0.html", "catalogue/trials/hostile/1.0.0.html")
PAGE, HOSTILE = PAGES[1:]
WIDTHS = (360, 1200)


class Site(NamedTuple):
    """A place with its catalogue, its address on this machine, and the paths asked of its server."""

    folder: Path
    url: str
    asked: list[str]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = write_hostile_place(write_place(tmp_path_factory.mktemp("place")))
    write_site(folder, folder)
    asked: list[str] = []

    class Recording(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            asked.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Recording, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Site(folder, f"http://127.0.0.1:{server.server_address[1]}", asked)
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_asks_for_nothing_else_and_runs_nothing_of_others(
    site: Site, tab: Browser, name: str, width: int
) -> None:
    site.asked.clear()
    tab.open(f"{site.url}/{name}", width)
    tab.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert tab.run("document.documentElement.scrollWidth") == width
    # What is wider scrolls inside of its own box.
    assert tab.run(
        "[...document.querySelectorAll('main *')].every((each) => each.closest('.scroll')"
        " || each.getBoundingClientRect().right <= innerWidth)"
    )
    requests = [event["request"]["url"] for event in tab.reported("Network.requestWillBeSent")]
    assert requests == [f"{site.url}/{name}"]
    assert set(site.asked) <= {f"/{name}", "/favicon.ico"}
    assert tab.run("typeof window.hacked") == "undefined"
    # Of what its policy refuses, or a script does wrong, the browser reports.
    faults = [e["entry"]["text"] for e in tab.reported("Log.entryAdded") if "favicon" not in str(e)]
    assert faults + tab.reported("Runtime.exceptionThrown") == []
    # The style is in force.
    assert tab.run("getComputedStyle(document.querySelector('h2')).borderTopStyle") == "solid"
    assert tab.run("getComputedStyle(document.body).display") == "block"


def test_the_drawing_can_be_read_and_followed_on_a_phone(site: Site, tab: Browser) -> None:
    tab.open(f"{site.url}/index.html", WIDTHS[0])
    assert (
        tab.run("Math.min(...[...document.querySelectorAll('svg text')].map((t) => t.getBBox().height))")
        >= 12
    )
    # The letters are as wide as the boxes were made for.
    assert tab.run(
        "[...document.querySelectorAll('svg g')].every((box) => [...box.querySelectorAll('text')].every("
        "(text) => text.getBBox().x + text.getBBox().width < box.querySelector('rect').getBBox().x"
        " + box.querySelector('rect').getBBox().width))"
    )
    tab.events.clear()
    tab.click("svg .version a")
    tab.wait("Page.loadEventFired")
    assert tab.run("location.pathname") == "/catalogue/pd1/mini/1.0.0.html"


def test_a_button_copies_the_whole_line(site: Site, tab: Browser) -> None:
    tab.send("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    tab.open(f"{site.url}/{PAGE}", WIDTHS[0])
    for selector in (".line .copy", "dd .copy", ".files .copy"):
        tab.click(selector)
        tab.until(f"document.querySelector('{selector}').textContent === 'Copied'")
        (shown,) = tab.run(
            f"[document.querySelector('{selector}').closest('.copyable').querySelector('code').textContent]"
        )
        assert len(shown) >= 64
        assert tab.run("navigator.clipboard.readText()") == shown
    tab.until("document.querySelector('.line .copy').textContent === 'Copy'")


def test_without_a_clipboard_a_button_copies_what_it_selects(site: Site, tab: Browser) -> None:
    tab.open(f"{site.url}/{PAGE}", WIDTHS[1])
    tab.run("navigator.clipboard.writeText('something else')")
    tab.run("Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true})")
    tab.click(".line .copy")
    tab.until("document.querySelector('.line .copy').textContent === 'Copied'")
    line = tab.run("document.querySelector('.line code').textContent")
    assert tab.run("getSelection().toString()") == line
    assert tab.run("delete navigator.clipboard, navigator.clipboard.readText()") == line


def test_the_files_alone_and_no_script_are_enough(site: Site, tab: Browser) -> None:
    tab.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open((site.folder / PAGE).as_uri(), WIDTHS[0])
        assert tab.run("document.querySelector('.copy').offsetParent") is None
        assert tab.run("document.querySelector('.line code').innerText").startswith("hyperbo data pull ")
        assert tab.run("document.documentElement.scrollWidth") == WIDTHS[0]
    finally:
        tab.send("Emulation.setScriptExecutionDisabled", value=False)
    tab.open((site.folder / PAGE).as_uri(), WIDTHS[0])
    assert tab.run("document.querySelector('.copy').offsetParent !== null")
    assert tab.reported("Log.entryAdded") == []
