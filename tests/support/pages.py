"""Checks of pages that are one file each."""

import re


def text_of(element):
    """The text of an element and all within it, with single spaces."""
    return re.sub(r"\s+", " ", "".join(element.itertext()))


def require_one_file(page):
    """A page runs nothing, loads nothing, and links to places in itself only."""
    assert "<script" not in page
    assert not re.search(r'\b(?:src|data|srcset|action)\s*=\s*"', page)
    targets = re.findall(r'href="([^"]*)"', page) + re.findall(r"url\(([^)]*)\)", page)
    assert all(target.startswith(("#", "data:image/png;base64,")) for target in targets)
    assert "@import" not in page
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
