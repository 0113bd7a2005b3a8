"""The package for OptunaHub offers the sampler, and its README says how it is called."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import types
from pathlib import Path

import optuna
import pytest
import yaml

from hyperbo.tuning.optuna.sampler import HyperBOSampler

PACKAGE = Path(__file__).parents[4] / "docs" / "optunahub" / "package" / "samplers" / "hyperbo"
README = (PACKAGE / "README.md").read_text(encoding="utf-8")


def loaded(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """What `optunahub.load_local_module` returns: the module by its file, under a name of the registry."""
    name = "optunahub_registry.package.samplers.hyperbo"
    spec = importlib.util.spec_from_file_location(name, PACKAGE / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_the_front_matter_is_what_the_registry_checks() -> None:
    front = yaml.safe_load(README.split("---\n")[1])
    assert {key: type(value) for key, value in front.items()} == {
        **dict.fromkeys(("author", "title", "description", "license"), str),
        **dict.fromkeys(("tags", "optuna_versions"), list),
    }
    assert all(isinstance(each, str) for each in front["tags"] + front["optuna_versions"])
    assert front["license"] == "MIT License"
    assert "sampler" in front["tags"]
    assert optuna.__version__ in front["optuna_versions"]
    assert (PACKAGE / "LICENSE").read_text(encoding="utf-8").startswith("MIT License\n\nCopyright (c) 2")


def test_the_readme_names_the_arguments_with_their_defaults() -> None:
    shown = re.search(r"^- `HyperBOSampler(\(.*\))`$", README, re.M)
    assert shown is not None
    parameters = [
        each.replace(annotation=each.empty) for each in inspect.signature(HyperBOSampler).parameters.values()
    ]
    assert shown[1] == str(inspect.Signature(parameters)).replace("'", '"')
    assert re.findall(r"^  - `(\w+)`: ", README, re.M) == [each.name for each in parameters]


def test_the_package_offers_the_sampler_and_its_example_is_a_study(monkeypatch: pytest.MonkeyPatch) -> None:
    module = loaded(monkeypatch)
    assert module.__all__ == ["HyperBOSampler"]
    assert module.HyperBOSampler is HyperBOSampler
    monkeypatch.setitem(
        sys.modules, "optunahub", types.SimpleNamespace(load_module={"samplers/hyperbo": module}.__getitem__)
    )
    code = (PACKAGE / "example.py").read_text(encoding="utf-8")
    space: dict[str, object] = {"__name__": "__main__"}
    exec(compile(code.replace("n_trials=20", "n_trials=1"), "example.py", "exec"), space)
    assert space["study"].best_value < 0.5


def test_another_package_called_hyperbo_is_told_by_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hyperbo.tuning.optuna.sampler", None)
    with pytest.raises(ImportError, match="hyperbo-priors"):
        loaded(monkeypatch)
