from __future__ import annotations

from pathlib import Path

import pytest

from hyperbo.errors import InvalidInputError, NotAvailableError
from pd1_builder.version.catalog import default_data_dir, find, version_folder, versions


def lay(root: Path, *names: str) -> None:
    for name in names:
        (root / name).mkdir(parents=True)
        (root / name / "manifest.json").write_text("{}")


def test_complete_versions_in_numeric_order(tmp_path: Path) -> None:
    lay(
        tmp_path,
        "pd1/mini/1.10.0",
        "pd1/mini/1.9.0",
        "pd1/release/1.0.0",
        "pd1/mini/.building-1.0.0-x",
        "pd1/mini/old",
    )
    (tmp_path / "pd1/mini/2.0.0").mkdir()
    assert [(v.dataset, v.version) for v in versions(tmp_path)] == [
        ("pd1/mini", "1.9.0"),
        ("pd1/mini", "1.10.0"),
        ("pd1/release", "1.0.0"),
    ]
    assert find("pd1/mini", tmp_path).version == "1.10.0"
    assert find("pd1/mini:1.9.0", tmp_path).folder == tmp_path / "pd1/mini/1.9.0"


def test_an_unknown_version_lists_the_known_ones(tmp_path: Path) -> None:
    lay(tmp_path, "pd1/mini/1.0.0", "pd1/mini/1.1.0")
    with pytest.raises(NotAvailableError, match=r"pd1/mini:3\.0\.0 is not in .* there: 1\.0\.0, 1\.1\.0\)"):
        find("pd1/mini:3.0.0", tmp_path)
    with pytest.raises(NotAvailableError, match=r"there: none\)"):
        find("pd1/release", tmp_path)


@pytest.mark.parametrize(
    "reference", ["pd1", "pd1/mini:1.0", "pd1/mini:", "../mini:1.0.0", "pd1/mini:01.0.0", "pd1/../x"]
)
def test_malformed_references(tmp_path: Path, reference: str) -> None:
    with pytest.raises(InvalidInputError, match="write"):
        find(reference, tmp_path)


def test_the_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HYPERBO_DATA_DIR", str(tmp_path))
    assert version_folder("pd1/mini", "1.0.0") == tmp_path / "pd1/mini/1.0.0"
    monkeypatch.delenv("HYPERBO_DATA_DIR")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert default_data_dir() == tmp_path / "share" / "hyperbo"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_data_dir() == tmp_path / ".local" / "share" / "hyperbo"
