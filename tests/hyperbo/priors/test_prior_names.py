"""Priors by name: the user's own before those that ship, and both before a complaint."""

import os
import subprocess
import sys

import numpy as np
import pytest
from prior_files import write_prior

import hyperbo
from hyperbo.data.search_space import PD1_SEARCH_SPACE
from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.priors.catalog import add_prior, promote
from hyperbo.priors.names import SHIPPED, find_prior, load_prior


@pytest.fixture
def catalog(tmp_path, monkeypatch):
    monkeypatch.setenv("HYPERBO_PRIOR_DIR", str(tmp_path / "priors"))
    return tmp_path / "priors"


@pytest.mark.parametrize("name", ["pd1-mini/h-ekl", "pd1-mini/h-nll"])
def test_shipped_priors_are_there_without_a_catalogue(name, catalog):
    prior = hyperbo.load_prior(name)
    assert prior.description.search_space == PD1_SEARCH_SPACE
    assert prior.description.preparation == "online"
    assert prior.description.held_out == ""
    assert len(prior.description.training_tasks) == 30
    assert find_prior(name).is_relative_to(SHIPPED)
    assert not catalog.exists()


def test_the_own_catalogue_goes_before_what_ships(catalog, tmp_path):
    prior_id = add_prior(catalog, "pd1-mini/h-ekl", write_prior(tmp_path / "mine", 1))
    promote(catalog, "pd1-mini/h-ekl", prior_id, "Mine.", {})
    assert find_prior("pd1-mini/h-ekl") == catalog / "pd1-mini/h-ekl" / prior_id
    assert find_prior(f"pd1-mini/h-ekl@{prior_id[:5]}").name == prior_id
    assert find_prior("pd1-mini/h-nll").is_relative_to(SHIPPED)


def test_a_line_of_candidates_only_hides_nothing(catalog, tmp_path):
    add_prior(catalog, "pd1-mini/h-ekl", write_prior(tmp_path / "mine", 1))
    shipped = find_prior("pd1-mini/h-ekl")
    assert shipped.is_relative_to(SHIPPED)
    assert find_prior(f"pd1-mini/h-ekl@{shipped.name[:4]}") == shipped


def test_a_folder_is_a_prior_too(tmp_path, catalog):
    folder = write_prior(tmp_path / "mine", 1)
    for reference in (folder, str(folder)):
        np.testing.assert_array_equal(load_prior(reference).gp.mean.weight, load_prior(folder).gp.mean.weight)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("nowhere", "pd1-mini/h-ekl, pd1-mini/h-nll; `hyperbo prior list`"),
        ("/no/folder", "pd1-mini/h-ekl, pd1-mini/h-nll; `hyperbo prior list`"),
        ("PD1/h-ekl", r"did you mean pd1-mini/h-ekl\? `hyperbo prior list`"),
        ("h-nll", r"did you mean pd1-mini/h-nll\? "),
        ("pd1-mini/h-elk@12", "did you mean pd1-mini/h-ekl or"),
        ("universal", "hyperbo tune --prior universal"),
    ],
)
def test_an_unknown_name_has_the_nearest_ones(reference, said, catalog):
    with pytest.raises(NotAvailableError, match=said):
        load_prior(reference)


@pytest.mark.parametrize("given", [17, None, ["pd1-mini/h-ekl"]])
def test_what_is_no_prior_says_what_is_accepted(given):
    with pytest.raises(InvalidInputError, match=r"a name such as .*, the folder of a prior, a loaded prior"):
        load_prior(given)


def test_a_folder_that_is_none_names_the_one_that_is(tmp_path):
    folder = write_prior(tmp_path / "line" / "mine", 1)
    for near in (folder.parent, folder / "prior.json"):
        with pytest.raises(NotAvailableError, match=f"{near} is no folder of a prior.*; give {folder}$"):
            load_prior(str(near))
    with pytest.raises(
        NotAvailableError, match=r"holds prior\.safetensors and prior\.json; `hyperbo prior list`"
    ):
        load_prior(tmp_path)
    assert load_prior(prior := load_prior(folder)) is prior


def test_five_lines_run_in_a_new_process(tmp_path):
    lines = f"""
import hyperbo
tuner = hyperbo.Tuner(prior=hyperbo.load_prior("pd1-mini/h-nll"), storage="sqlite:///{tmp_path}/runs.db")
trial = tuner.ask()
tuner.tell(trial, 0.23)
print(tuner.best.objective)
"""
    found = subprocess.run(
        [sys.executable, "-c", lines],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(SHIPPED.parents[2])},
        check=True,
    )
    assert found.stdout == "0.23\n"


def test_the_top_of_the_package_has_nothing_else():
    with pytest.raises(AttributeError, match="tuner_"):
        _ = hyperbo.tuner_
