"""What the words of a report mean: links from the first use of a word to its line of the glossary."""

from __future__ import annotations

import re
from collections.abc import Mapping

from markupsafe import Markup, escape

# In the order of the glossary of a page. What `y` and a preparation are depends on the evaluation.
GLOSSARY: Mapping[str, str] = {
    "task": "One tuning problem: a model on a dataset, with a search space and recorded trials. A method is "
    "tested on tasks that it did not learn from.",
    "iteration": "One trial that a method chooses and observes.",
    "run": "One Bayesian optimization: one method on one task with one seed.",
    "seed": "A start of the random numbers of a method, in training and in runs. What differs between seeds "
    "is chance.",
    "prior": "What a method knows before the first trial of a task: here a Gaussian process, trained on the "
    "trials of other tasks.",
    "arm": "A method with its settings and with limits on what it may learn from, under one label.",
    "baseline": "A method that uses the training tasks simply, or not at all. A prior is worth its training "
    "where it is ahead of all of them.",
    "ahead": "With lower mean regret, by more than chance explains: the 95 % interval of the difference, "
    "over seeds, does not include 0. Each interval is of one comparison: of twenty, one may be wrong.",
    "final regret": "Regret after the last iteration.",
    "times sooner": "A speed-up: the iterations in which a method reaches a regret, divided into those of "
    "another method. Below one it is a slow-down, and is told as times later.",
    "percentile": "The 20th percentile is the value that a fifth of the seeds are below, the 80th that which "
    "four fifths are below.",
    "rank": "The place of a method when all are ordered by their regret; 1 is the lowest regret.",
    "saturated": "A task on which every method finds the best candidate: it tells nothing about them.",
    "matched": "Of inputs: tried on all of several tasks, so that the tasks can be compared point by point.",
    "diverged": "Of a trial: it ended without a usable value.",
}


def anchor(word: str) -> str:
    """The identifier of a word's line in the glossary.

    >>> anchor("final regret")
    'word-final-regret'
    """
    return f"word-{word.replace(' ', '-')}"


def defined(text: str, *words: str) -> Markup:
    """Text in which the first use of each of these words leads to its line of the glossary.

    >>> str(defined("Two seeds, one seed", "seed"))
    'Two <a class="term" href="#word-seed">seeds</a>, one seed'
    """
    left = set(words)
    listed = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))

    def link(found: re.Match[str]) -> str:
        if found[1] not in left:
            return found[0]
        left.remove(found[1])
        return f'<a class="term" href="#{anchor(found[1])}">{found[0]}</a>'

    return Markup(re.sub(rf"<[^>]*>|(?<![\w-])({listed})s?(?![\w-])", link, str(escape(text))))
