from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hyperbo import __version__
from hyperbo.errors import NotAvailableError
from hyperbo.storage.code_version import code_version


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "somepackage"
    (root / "inner").mkdir(parents=True)
    (root / "__init__.py").write_bytes(b"raise RuntimeError('imported')\n")
    (root / "inner" / "code.py").write_bytes(b"a = 1\nb = 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    return root


def test_format_and_order() -> None:
    version, digest = code_version("hyperbo_pipelines", "hyperbo").split("+")
    assert version == __version__
    assert len(digest) == 12
    assert code_version("hyperbo", "hyperbo_pipelines") == f"{version}+{digest}"
    assert code_version("hyperbo") != code_version("hyperbo_pipelines")


def test_content_and_names_count_and_nothing_is_imported(package: Path) -> None:
    first = code_version("somepackage")
    code = package / "inner" / "code.py"
    code.write_bytes(b"a = 1\nb = 3\n")
    changed = code_version("somepackage")
    code.rename(package / "inner" / "other.py")
    assert len({first, changed, code_version("somepackage")}) == 3


def test_line_endings_times_and_other_files_do_not_count(package: Path) -> None:
    first = code_version("somepackage")
    code = package / "inner" / "code.py"
    code.write_bytes(b"a = 1\r\nb = 2\r\n")
    os.utime(code, (0, 0))
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "code.pyc").write_bytes(b"\0")
    (package / "notes.md").write_text("notes")
    assert code_version("somepackage") == first


def test_rooms_and_modules_count_alone(package: Path) -> None:
    room, module = code_version("somepackage.inner"), code_version("somepackage.inner.code")
    assert room == module  # the only file of the room
    (package / "other.py").write_text("c = 3\n")
    assert code_version("somepackage.inner") == room
    (package / "inner" / "other.py").write_text("c = 3\n")
    assert code_version("somepackage.inner") != room
    assert code_version("somepackage.inner.code") == module
    assert code_version("somepackage.inner", "somepackage.inner.code") == code_version("somepackage.inner")


@pytest.mark.parametrize("name", ["nosuchpackage", "hyperbo.nosuchroom"])
def test_missing_packages(name: str) -> None:
    with pytest.raises(NotAvailableError, match=name):
        code_version(name)


def test_heavy_packages_stay_unimported() -> None:
    script = (
        "import sys; from hyperbo.storage.code_version import *\n"
        "code_version(*NUMERIC, *EVALUATION, *CURATION)\n"
        "heavy = {'pd1_builder', 'hyperbo_pipelines', 'hyperbo_flows', 'jax', 'numpy', 'apache_beam'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
