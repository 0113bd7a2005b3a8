"""Text: the descriptions of datasets that come inside scikit-learn, by characters, by words, and by page."""

from __future__ import annotations

import importlib.resources
import re
from collections import Counter

import numpy as np
from jaxtyping import Int32

from hyperbo_pipelines.collect.datasets.dataset import Split, TaskDataset, library_module, shuffled_splits

CHARACTERS, WORDS, PAGE_WORDS = 24, 8, 10
VOCABULARY = 300
PAGES = 6


def characters() -> TaskDataset:
    """The next character, one class each; the text is cut into windows that do not overlap."""
    text = "".join(_pages().values())
    alphabet = sorted(set(text))
    codes = np.searchsorted(alphabet, list(text)).astype(np.int32)
    splits = _next_token(codes, CHARACTERS, train=700, valid=300, test=100)
    return TaskDataset("sklearn_text", "tokens", len(alphabet), *splits, len(alphabet), "characters")


def words() -> TaskDataset:
    """The next word among the most frequent ones; the others are one class."""
    found = [word for page in _pages().values() for word in _words(page)]
    splits = _next_token(_numbered(found), WORDS, train=500, valid=500, test=90)
    return TaskDataset("sklearn_text", "tokens", VOCABULARY, *splits, VOCABULARY, "words")


def pages() -> TaskDataset:
    """Windows of words from the longest pages; the class is the page."""
    longest = sorted(map(_words, _pages().values()), key=len, reverse=True)[:PAGES]
    codes = _numbered([word for page in longest for word in page])
    inputs, labels, first = [], [], 0
    for number, page in enumerate(longest):
        count = len(page) // PAGE_WORDS
        inputs.append(codes[first : first + count * PAGE_WORDS].reshape(count, PAGE_WORDS))
        labels.append(np.full(count, number))
        first += len(page)
    splits = shuffled_splits(np.concatenate(inputs), np.concatenate(labels), train=200, valid=350)
    return TaskDataset("sklearn_text", "tokens", PAGES, *splits, VOCABULARY, "pages")


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+|[0-9]+|[^\sa-z0-9]+", text)


def _numbered(found: list[str]) -> Int32[np.ndarray, " n"]:
    """Number the most frequent words from 1; all other words are 0."""
    frequent = sorted(word for word, _ in Counter(found).most_common(VOCABULARY - 1))
    numbers = {word: number for number, word in enumerate(frequent, start=1)}
    return np.array([numbers.get(word, 0) for word in found], np.int32)


def _pages() -> dict[str, str]:
    """The pages by name, in lower case."""
    library_module("sklearn.datasets")  # a missing library is named with the extra to install
    folder = importlib.resources.files("sklearn.datasets").joinpath("descr")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".rst")), key=lambda f: f.name)
    return {file.name: file.read_text(encoding="utf-8").lower() for file in files}


def _next_token(
    codes: Int32[np.ndarray, " n"], length: int, train: int, valid: int, test: int
) -> tuple[Split, Split, Split]:
    """Windows of tokens, and as labels the tokens that follow each of them."""
    count = (len(codes) - 1) // length
    inputs = codes[: count * length].reshape(count, length)
    labels = codes[1 : count * length + 1].reshape(count, length)
    return shuffled_splits(inputs, labels, train, valid, test)
