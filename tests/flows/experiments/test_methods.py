from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
from hyperbo_flows.experiments.methods import method_class, method_identity, method_name, method_summary

from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.methods import FSBO, HNLL, METHODS

OWN = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Own:
    size: int = 3

    def fit(self, jobs, progress=None):
        return [None] * len(jobs)

    def policy(self, fitted, task):
        return None

class NoMethod:
    pass
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory that holds `own_method.py`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_method", raising=False)
    (tmp_path / "own_method.py").write_text(OWN)
    yield tmp_path
    sys.modules.pop("own_method", None)


def test_methods_of_the_project_are_known_by_their_names():
    for name, known in METHODS.items():
        assert method_class(name) is known
        assert method_name(known()) == name
    # A method that derives from another is itself.
    assert method_name(FSBO()) == "FSBO"


def test_a_method_of_the_working_directory_is_found_by_its_import_path(folder):
    own = method_class("own_method:Own")
    assert own.__name__ == "Own"
    assert method_name(own(5)) == "own_method:Own"


def test_a_method_of_ones_own_is_told_by_the_first_line_of_its_docstring(folder):
    assert method_summary(method_class("own_method:Own")()) == ""  # of a dataclass, it would be its signature
    assert method_summary(HNLL()) == ""
    told = OWN.replace("    size: int", '    """Tries all in turn.\n\n    Slowly.\n    """\n\n    size: int')
    Path("told_method.py").write_text(told)
    assert method_summary(method_class("told_method:Own")()) == "Tries all in turn."


def test_a_method_beside_an_experiment_file_is_found(folder, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert method_class("own_method:Own", folder).__name__ == "Own"


def test_the_source_of_ones_own_method_is_part_of_its_identity(folder):
    own = method_class("own_method:Own")
    Path("own_method.py").write_text(OWN + "# changed\n")
    before = method_identity(own(5))
    assert before["configuration"] == {"size": 5}
    assert before["source_sha256"] == hashlib.sha256(OWN.encode()).hexdigest()
    # What is running is what was imported, until it is imported anew.
    assert method_identity(method_class("own_method:Own")(5)) == before
    del sys.modules["own_method"]
    after = method_identity(method_class("own_method:Own")(5))
    assert after["source_sha256"] == hashlib.sha256((OWN + "# changed\n").encode()).hexdigest()
    assert method_identity(own(5)) == before
    assert "source_sha256" not in method_identity(HNLL())


def test_the_source_of_a_base_is_part_of_the_identity_too(folder):
    Path("derived.py").write_text("from own_method import Own\n\nclass Derived(Own):\n    pass\n")
    before = method_identity(method_class("derived:Derived")(5))
    Path("own_method.py").write_text(OWN + "# changed\n")
    del sys.modules["own_method"], sys.modules["derived"]
    assert method_identity(method_class("derived:Derived")(5)) != before


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("H-NIL", InvalidInputError, "'H-NIL'; did you mean 'H-NLL'\\? use H-NLL, or <module>:<class>"),
        ("no_module_here:Own", NotAvailableError, "'no_module_here:Own' cannot be imported"),
        ("own_method:Missing", NotAvailableError, "'own_method:Missing' cannot be imported"),
        ("own_method:NoMethod", InvalidInputError, "'own_method:NoMethod' is not a method"),
        ("pathlib:Path", InvalidInputError, "'pathlib:Path' is not a method"),
    ],
)
def test_what_is_no_method_is_refused(folder, name, error, message):
    with pytest.raises(error, match=message):
        method_class(name)
