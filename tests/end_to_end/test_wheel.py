"""What is published: the wheel and the sdist, and the first hour of a user who has the wheel only.

The environments are made outside of the checkout, and their home is empty. Their packages come from the
registry that uv knows, in the versions of the lock.
"""

from __future__ import annotations

import ast
import email
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from every_command import COMMANDS
from packaging.metadata import Metadata
from synthetic_pd1 import write_release

from docs.reference import FLOORS
from hyperbo.storage.installation import DISTRIBUTION, install_command

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
UV = Path(sys.executable).parent / "uv"
BUILD = (UV, "build", "--quiet", "--no-build-isolation", "--python", sys.executable)
# Files that the project has, and the wheel has not; such as docs/tuning.md, README.md or prefect.yaml.
LEFT_OUT = re.compile(
    r"(?<![\w/.])(?:\.\./)*(?:docs|tests|benchmarks|docker|kubernetes)/\w[\w./-]*"
    r"|\b(?:ARCHITECTURE|CHANGELOG|CONTRIBUTING)\.md\b|\b(?:prefect|compose)\.yaml\b|\brequirements\.lock\b"
)


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and a user's folder outside of the checkout."""

    environment: Path
    folder: Path

    def run(self, *command: str, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment in the user's folder."""
        kept = ("LANG", "OPENBLAS_NUM_THREADS", "TMPDIR")
        given = {name: os.environ[name] for name in kept if name in os.environ}
        path = f"{self.environment / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin"
        done = subprocess.run(
            [str(self.environment / "bin" / command[0]), *command[1:]],
            env={**given, "HOME": str(self.folder / "home"), "PATH": path, **variables},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert not check or done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the wheel and the sdist: the one that `make dist` names, or a new one."""
    if "HYPERBO_DIST" in os.environ:
        return (ROOT / os.environ["HYPERBO_DIST"]).resolve()
    folder = tmp_path_factory.mktemp("dist")
    # The wheel is made from the sdist.
    subprocess.run([*BUILD, "--out-dir", folder, ROOT], check=True)
    return folder


def wheel_of(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory, extras: str) -> Installed:
    """A new environment with the wheel, and packages as the lock has them."""
    top = tmp_path_factory.mktemp("user")
    found = Installed(top / "environment", top / "work")
    found.folder.mkdir()
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, found.environment], check=True)
    wheel = f"{DISTRIBUTION}{extras} @ {wheel_of(dist).as_uri()}"
    python = found.environment / "bin" / "python"
    command = [
        UV,
        "pip",
        "install",
        "--quiet",
        "--python",
        python,
        "--constraint",
        ROOT / "requirements.lock",
    ]
    done = subprocess.run([*command, wheel], capture_output=True, text=True, timeout=280)
    if done.returncode and re.search("fetch|connect|dns|timed out|network", done.stderr, re.IGNORECASE):
        pytest.skip(f"the registry of packages cannot be reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return found


@pytest.fixture(scope="module")
def whole(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel with all extras; the user's folder has folders and files with names that projects have.

    Each raises an error when it is imported.
    """
    found = installed(dist, tmp_path_factory, "[all]")
    for name in ("flows", "pipelines", "tests", "docs", "benchmarks"):
        (found.folder / name).mkdir()
        (found.folder / name / "__init__.py").write_text(f"raise RuntimeError('{name} of the user')\n")
    for name in ("trials", "run", "curate", "read", "release", "main"):
        (found.folder / f"{name}.py").write_text(f"raise RuntimeError('{name} of the user')\n")
    return found


@pytest.fixture(scope="module")
def base(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel without extras."""
    return installed(dist, tmp_path_factory, "")


@pytest.fixture(scope="module")
def data(whole: Installed) -> Path:
    """A data folder with pd1/mini:1.0.0, of the trials that the wheel has."""
    whole.run("hyperbo", "data", "build", "pd1/mini:1.0.0", "--data", "data")
    return whole.folder / "data"


def contents(archive: Path) -> dict[str, bytes]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist() if not name.endswith("/")}
    with tarfile.open(archive) as sdist:
        found = {each.name.partition("/")[2]: sdist.extractfile(each) for each in sdist if each.isfile()}
        return {name: file.read() for name, file in found.items() if file is not None}


@pytest.mark.slow
def test_the_wheel_holds_the_packages_and_nothing_else(dist: Path) -> None:
    files = contents(wheel_of(dist))
    packaged = {name for name in files if ".dist-info/" not in name}
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *FLOORS.values()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert packaged == {re.sub("^(pipelines|flows)/", "", name) for name in tracked}
    sdist = next(dist.glob("*.tar.gz"))
    assert {name.partition("/")[0] for name in contents(sdist)} == {
        *("LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"),
        *("flows", "hyperbo", "hyperbo_priors.egg-info", "pd1_builder", "pipelines"),
    }


@pytest.mark.slow
def test_a_wheel_of_the_checkout_is_that_of_the_sdist(dist: Path, tmp_path: Path) -> None:
    # From a copy, because setuptools writes into the folder that it builds.
    copy = tmp_path / "copy"
    names = ["LICENSE", "README.md", "pyproject.toml", "hyperbo", "pipelines", "pd1_builder", "flows"]
    copy.mkdir()
    subprocess.run(["cp", "-r", *(ROOT / name for name in names), copy], check=True)
    subprocess.run([*BUILD, "--wheel", "--out-dir", tmp_path / "out", copy], check=True)
    assert contents(wheel_of(tmp_path / "out")) == contents(wheel_of(dist))


@pytest.mark.slow
def test_the_metadata_are_valid_and_complete(dist: Path) -> None:
    files = contents(wheel_of(dist))
    (text,) = (content for name, content in files.items() if name.endswith(".dist-info/METADATA"))
    found = Metadata.from_email(text, validate=True)  # every field, as the index checks it
    assert (found.name, str(found.version)) == (DISTRIBUTION, PROJECT["version"])
    assert found.license_expression == "Apache-2.0"
    assert found.keywords
    assert found.classifiers
    assert found.description_content_type == "text/markdown"
    assert email.message_from_bytes(text).get_payload() == (ROOT / "README.md").read_text()
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in files)


def test_no_text_of_the_wheel_names_a_file_that_is_not_in_it() -> None:
    found = []
    for folder in FLOORS.values():
        for path in sorted(folder.rglob("*")):
            if path.suffix == ".py":
                texts = [
                    node.value
                    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                    if isinstance(node, ast.Constant) and isinstance(node.value, str)
                ]
            elif path.suffix in (".md", ".html", ".js", ".css"):
                texts = [path.read_text(encoding="utf-8")]
            else:
                continue
            found += [
                (path.relative_to(ROOT).as_posix(), name) for each in texts for name in LEFT_OUT.findall(each)
            ]
    assert found == []


@pytest.mark.slow
def test_without_extras_every_command_works_or_names_its_extras(
    base: Installed, tmp_path: Path, whole: Installed, data: Path
) -> None:
    script = ROOT / "tests" / "support" / "every_command.py"
    (base.folder / "every_command.py").write_text(script.read_text())
    done = base.run("python", "every_command.py", str(data))
    told = {each["command"]: each for each in map(json.loads, done.stdout.splitlines())}
    assert told.keys() == COMMANDS.keys() == set(commands())
    for command, (_, extras) in COMMANDS.items():
        lines = told[command]["lines"]
        assert told[command]["uncaught"] == "", command
        if extras:
            assert told[command]["code"] == 1, command
            assert len(lines) == 1, command
            assert lines[0].endswith(f"; {install_command(*extras)}"), lines
        else:
            assert "pip install" not in " ".join(lines), command


def commands() -> list[str]:
    import typer
    from hyperbo_flows.cli.main import app

    def leaves(command: Any, path: tuple[str, ...]) -> list[str]:
        below = getattr(command, "commands", None)
        if below is None:
            return [" ".join(path)]
        return [leaf for name, each in below.items() for leaf in leaves(each, (*path, name))]

    return leaves(typer.main.get_command(app), ())


NAMES = """
import importlib, json, pkgutil
from hyperbo.errors import MissingExtraError
said = {}
def rooms(package):
    yield package
    for each in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if each.ispkg:
            try:
                yield from rooms(importlib.import_module(each.name))
            except MissingExtraError as error:
                said[each.name] = str(error)
for name in ("hyperbo", "hyperbo_pipelines", "pd1_builder", "hyperbo_flows"):
    for room in rooms(importlib.import_module(name)):
        for each in getattr(room, "__all__", ()):
            try:
                getattr(room, each)
            except MissingExtraError as error:
                said[f"{room.__name__}.{each}"] = str(error)
print(json.dumps(said))
"""


@pytest.mark.slow
def test_without_extras_every_public_name_is_there_or_names_its_extra(base: Installed) -> None:
    said = json.loads(base.run("python", "-c", NAMES).stdout)
    assert {"hyperbo.Tuner", "hyperbo.tuning.optuna", "hyperbo.evaluation.write_report"} <= said.keys()
    assert not {"hyperbo.load_prior", "pd1_builder.load", "hyperbo.methods.HNLL"} & said.keys()
    for line in said.values():
        assert re.search(r"; pip install 'hyperbo-priors\[(build|optuna|report)\]'$", line)
    build = "import pd1_builder; pd1_builder.build()"
    done = base.run("python", "-c", build, check=False)
    assert done.stderr.splitlines()[-1].endswith(install_command("build"))


@pytest.mark.slow
def test_the_command_of_a_hint_installs_what_is_missing(base: Installed) -> None:
    (name,) = shlex.split(install_command("sign"))[2:]
    # It is not on an index: what is installed already is kept, and what the extra needs is added.
    python = base.environment / "bin" / "python"
    subprocess.run([UV, "pip", "install", "--quiet", "--python", python, name], check=True, timeout=280)
    base.run(
        "python",
        "-c",
        "from hyperbo.storage.installation import require_extras; require_extras('sign', purpose='x')",
    )


@pytest.mark.slow
def test_the_command_says_what_is_installed(whole: Installed) -> None:
    version = whole.run("hyperbo", "--version").stdout
    assert version.startswith(f"{DISTRIBUTION} {PROJECT['version']}, Python 3.1")
    assert "demo" in whole.run("hyperbo", "--help").stdout
    shown = whole.run("hyperbo", "--show-completion", "bash").stdout
    assert "complete -o default -F _hyperbo_completion hyperbo" in shown
    asked = {"_HYPERBO_COMPLETE": "complete_bash", "COMP_WORDS": "hyperbo prior info ", "COMP_CWORD": "3"}
    assert "pd1-mini/h-ekl" in whole.run("hyperbo", **asked).stdout.split()


@pytest.mark.slow
def test_the_five_lines_of_the_readme_run(whole: Installed) -> None:
    blocks = re.split(r"\n(?=\S)", (ROOT / "README.md").read_text())
    (lines,) = [block for block in blocks if "\n    import hyperbo\n" in block]
    program = "\n".join(line[4:] for line in lines.splitlines() if line.startswith("    "))
    # In a file, beside the folders and files of the user, and as a module.
    (whole.folder / "mine.py").write_text(f"{program}\nprint(tuner.best.objective)\nimport pd1_builder\n")
    assert whole.run("python", "mine.py").stdout == "0.23\n"
    assert whole.run("python", "-m", "mine").stdout == "0.23\n"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_demo_runs_and_writes_its_report(whole: Installed, data: Path) -> None:
    # The demo in full takes two minutes.
    small = ("--seeds", "1", "--iterations", "2", "--steps", "100")
    done = whole.run("hyperbo", "demo", "--data", str(data), *small)
    report = re.findall(r"^report: (.*report\.html)$", done.stdout, re.MULTILINE)[-1]
    page = (whole.folder / report).read_text()
    assert "H-NLL" in page
    assert "<svg" in page
    assert "pd1/mini:1.0.0: present, verified" in done.stdout


@pytest.mark.slow
def test_workers_do_not_take_files_of_the_user_for_modules(whole: Installed) -> None:
    raw = write_release(whole.folder / "raw")
    for name in ("types", "queue", "logging", "typing"):
        (whole.folder / f"{name}.py").write_text(f"raise RuntimeError('{name} of the user')\n")
    whole.run("hyperbo", "data", "build", "--raw", str(raw), "--data", "small", "--workers", "2")
    assert "pd1/mini:1.0.0" in whole.run("hyperbo", "data", "list", "--data", "small").stdout
    for name in ("types", "queue", "logging", "typing"):
        (whole.folder / f"{name}.py").unlink()
