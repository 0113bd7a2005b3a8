"""The distribution that is installed: its name and extras have one source; what is missing is one line."""

from __future__ import annotations

import ast
import importlib
import os
import pickle
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import hyperbo
import pd1_builder
from hyperbo.errors import MissingExtraError, NotAvailableError
from hyperbo.storage import installation
from hyperbo.storage.installation import (
    DISTRIBUTION,
    EXTRA_MODULES,
    check_environment,
    install_command,
    missing_extra,
    require_extras,
)

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCES = [
    path
    for folder in ("hyperbo", "pipelines", "pd1_builder", "flows")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
# Extras that bring no module of their own, or none that this project imports.
WITHOUT_MODULES = {"gpu", "tpu", "all", "dev", "docs"}


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the modules of the extra `report`, as if it were not installed."""
    for module in EXTRA_MODULES["report"]:
        monkeypatch.setitem(sys.modules, module, None)


def test_the_name_is_that_of_the_project_and_is_written_once() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if f"{DISTRIBUTION}[" in node.value or "hyperbo[" in node.value
    }
    # Its docstring shows a command.
    assert naming == {"hyperbo/storage/installation.py"}


def test_the_extras_are_those_of_the_project_and_bring_the_modules() -> None:
    extras = PROJECT["optional-dependencies"]
    assert set(EXTRA_MODULES) | WITHOUT_MODULES == set(extras)
    providers = metadata.packages_distributions()
    for extra, modules in EXTRA_MODULES.items():
        asked = {_normal(each) for each in extras[extra]}
        for module in modules:
            if module in providers:  # not all extras are installed for the tests
                brought = {_normal(each) for each in providers[module]}
                assert brought & (asked | _needed_by(asked)), (extra, module)


def test_the_page_on_installing_has_all_extras() -> None:
    page = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (.*) \|$", page, re.MULTILINE)
    listed = {name for names, _ in rows for name in re.findall(r"`(\w+)`", names)}
    extras = PROJECT["optional-dependencies"]
    assert listed == set(extras)
    (of_all,) = [set(re.findall(r"`(\w+)`", words)) for names, words in rows if names == "`all`"]
    assert f"{DISTRIBUTION}[{','.join(sorted(of_all))}]" == _sorted(extras["all"][0])


def _sorted(requirement: str) -> str:
    name, _, extras = requirement.rstrip("]").partition("[")
    return f"{name}[{','.join(sorted(extras.split(',')))}]"


def _normal(requirement: str) -> str:
    name = requirement
    for end in "[=<>;!~ (":
        name = name.partition(end)[0]
    return name.lower().replace("_", "-")


def _needed_by(names: set[str]) -> set[str]:
    found = set()
    for name in names:
        try:
            found |= {_normal(each) for each in metadata.requires(name) or []}
        except metadata.PackageNotFoundError:
            continue
    return found


def test_what_the_project_imports_is_a_dependency_or_in_an_extra() -> None:
    base = {_normal(each) for each in PROJECT["dependencies"]}
    known = {module for modules in EXTRA_MODULES.values() for module in modules}
    providers = metadata.packages_distributions()
    ours = {"hyperbo", "hyperbo_pipelines", "pd1_builder", "hyperbo_flows"}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            for module in {name.partition(".")[0] for name in names} - ours - known:
                if module not in sys.stdlib_module_names:
                    brought = {_normal(each) for each in providers.get(module, [module])}
                    assert brought & base, (path, module)


def test_a_missing_extra_is_named_with_the_command_that_installs_it(hidden: None) -> None:
    with pytest.raises(MissingExtraError) as caught:
        require_extras("build", "report", purpose="a report")
    assert str(caught.value).startswith("a report needs the extra report, ")
    assert str(caught.value).endswith(f"; {install_command('report')}")
    assert caught.value.name in EXTRA_MODULES["report"]
    # It is also the error of an import, and crosses process boundaries.
    assert isinstance(caught.value, NotAvailableError | ImportError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_the_error_of_an_import_becomes_one_that_names_the_extra(hidden: None) -> None:
    found = missing_extra(ModuleNotFoundError("No module named 'jinja2'", name="jinja2.ext"))
    assert found is not None
    assert str(found).endswith(install_command("report"))
    # Of no extra, and of an extra that is there.
    assert missing_extra(ModuleNotFoundError("No module named 'nothing'", name="nothing")) is None
    assert missing_extra(ImportError("no name", name="optuna")) is None


def test_a_name_of_a_room_says_which_extra_it_needs() -> None:
    program = (
        "import sys\n"
        "for name in ('matplotlib', 'jinja2', 'optuna', 'apache_beam', 'orjson'): sys.modules[name] = None\n"
        "import hyperbo, hyperbo.evaluation, pd1_builder\n"
        "def said(room, name):\n"
        "    try: getattr(room, name)\n"
        "    except ImportError as error: print(error)\n"
        "said(hyperbo, 'Tuner'), said(hyperbo.evaluation, 'write_report'), said(pd1_builder, 'add')\n"
        "try: import hyperbo.tuning.optuna.sampler\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    commands = [line.rpartition("; ")[2] for line in done.stdout.splitlines()]
    assert commands == [install_command(extra) for extra in ("optuna", "report", "build", "optuna")]


def test_a_package_that_is_too_old_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    found = metadata.version

    def version(name: str) -> str:
        return {"pandas": "2.3.3", "optuna": "4.5.0"}.get(name) or found(name)

    monkeypatch.setattr(installation.metadata, "version", version)
    check_environment.cache_clear()
    with pytest.raises(NotAvailableError, match=r"pandas 2\.3\.3 .* pip install 'pandas>=3\.0'$"):
        check_environment()
    with pytest.raises(NotAvailableError, match=r"optuna 4\.5\.0 .* pip install 'optuna>=5'$"):
        require_extras("optuna", purpose="tuning")
    monkeypatch.undo()
    check_environment.cache_clear()
    check_environment()


def test_a_python_that_is_too_new_or_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ((3, 10, 13), (3, 13, 0)):
        with monkeypatch.context() as patched:
            patched.setattr(sys, "version_info", version)
            with pytest.raises(ImportError, match=r"Python 3\.11 or 3\.12 is needed"):
                importlib.reload(hyperbo)
    importlib.reload(hyperbo)


def test_packages_list_their_public_names() -> None:
    for package in (hyperbo, pd1_builder):
        assert dir(package) == sorted(package.__all__)


def test_another_project_of_our_name_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "hyperbo").mkdir()
    (tmp_path / "hyperbo/__init__.py").write_text("__version__ = '1.0.3'\n")
    roots = (tmp_path, ROOT / "flows", ROOT / "pipelines", ROOT)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, roots))}
    # An editable install finds modules that are not in the other project's folder; a wheel does not.
    program = (
        "import sys; sys.meta_path[:] = [each for each in sys.meta_path if 'Editable' not in repr(each)];"
        "from hyperbo_flows.__main__ import main; main()"
    )
    command = [sys.executable, "-P", "-c", program, "--help"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    foreign = tmp_path / "hyperbo/__init__.py"
    assert done.stderr.startswith(f"hyperbo: {foreign} is not a file of {DISTRIBUTION}; ")
