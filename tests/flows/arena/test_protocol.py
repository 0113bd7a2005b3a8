"""The protocol is frozen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hyperbo_flows.arena.protocol import PROTOCOL
from hyperbo_flows.arena.provide import is_made_here

from hyperbo.errors import InvalidInputError
from hyperbo.methods import METHODS

# Of every protocol there was. A changed protocol gets a new number, and its hash stands beside the others.
HASHES = {1: "d695721b70a3b7be151d987fa87fc99e3f5580083dca8e9de57e06e0293c472e"}

# Of each part: task datasets that are held out, tasks, search spaces, families.
FOLDS = {"pd1-mini": 7, "taskset": 8, "hpob": 1, "synthetic": 1}


def test_the_protocol_of_a_number_does_not_change():
    assert PROTOCOL.sha256() == HASHES[PROTOCOL.number]
    assert replace(PROTOCOL, baselines=("Rand",)).sha256() != HASHES[PROTOCOL.number]


def test_there_are_methods_and_priors_enough():
    assert len(PROTOCOL.methods) >= 12
    assert set(PROTOCOL.methods) <= set(METHODS)
    assert {"Rand", "Best-average"} == set(PROTOCOL.baselines) <= set(PROTOCOL.methods)
    for division in PROTOCOL.divisions:
        if division.name != "quick":
            assert division.budgets == (1, 5, 10, 25, 50, 100)
            priors = sum(FOLDS[division.name] * len(part.seeds) for part in division.parts)
            assert priors >= 10, division.name


def test_the_document_says_where_all_data_are_from():
    text = (Path(__file__).parents[3] / "docs" / "arena.md").read_text(encoding="utf-8")
    for part in (part for division in PROTOCOL.divisions for part in division.parts):
        assert f"`{part.dataset}`" in text
        if not is_made_here(part.dataset):
            dataset = part.dataset.partition(":")[0].removeprefix("trials/")
            assert f"    hyperbo data {'add' if 'trials/' in part.dataset else 'build'} {dataset}" in text


def test_names_of_parts_and_divisions_are_distinct():
    names = [part.name for division in PROTOCOL.divisions for part in division.parts]
    assert len(set(names)) == len(names)
    assert len({division.name for division in PROTOCOL.divisions}) == len(PROTOCOL.divisions)


def test_an_unknown_division_is_refused():
    assert PROTOCOL.division("hpob").name == "hpob"
    with pytest.raises(InvalidInputError, match="quick"):
        PROTOCOL.division("slow")
