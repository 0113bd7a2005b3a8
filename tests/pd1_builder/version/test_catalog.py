from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hyperbo.errors import InvalidInputError, NotAvailableError
from pd1_builder.hpob.recipe import CONFIGURATIONS as HPOB
from pd1_builder.pd1.recipe import CONFIGURATIONS as PD1
from pd1_builder.version.catalog import default_data_dir, find, version_folder, versions
from pd1_builder.version.makeable import DATASETS


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
    message = advice("pd1/mini:1.0.9", tmp_path)
    assert message.startswith(f"pd1/mini:1.0.9 is not in {tmp_path} (")
    assert "newest there is pd1/mini:1.1.0, the nearest pd1/mini:1.0.0)" in message


def advice(reference: str, folder: Path) -> str:
    with pytest.raises(NotAvailableError) as refused:
        find(reference, folder)
    return str(refused.value)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("trials/mien:1.0.0", "did you mean trials/mine:1.2.0, which is there?"),
        ("trial/mine", "did you mean trials/mine:1.2.0, which is there?"),
        ("pd1/mimi:1.0.0", "did you mean pd1/mini? build it: hyperbo data build pd1/mini:1.0.0 --data "),
        ("pd1/mini:7.0.0", "hyperbo data build pd1/mini:2.0.0 --data "),
        ("pd1/mini", "build it: hyperbo data build pd1/mini:2.0.0 --data "),
        ("hpob/5636:1.0.0", "downloads its archive: hyperbo data build hpob/5636:1.0.0 --data "),
        ("trials/abc", "make it of your files: hyperbo data add abc FILE --space SPACE.toml --data "),
        ("some/thing", "see what is there: hyperbo data list --data "),
    ],
)
def test_the_advice_fits_what_is_missing(tmp_path: Path, reference: str, said: str) -> None:
    lay(tmp_path, "trials/mine/1.0.0", "trials/mine/1.2.0")
    message = advice(reference, tmp_path)
    assert said in message
    # Without a place to pull from, nothing can be pulled.
    assert "pull" not in message


def test_a_version_in_another_folder_is_found_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYPERBO_DATA_DIR", str(tmp_path / "own data"))
    lay(tmp_path / "runs" / "data", "pd1/mini/1.0.0")
    assert "it is in runs/data: give --data runs/data" in advice("pd1/mini:1.0.0", tmp_path / "other")
    lay(tmp_path / "own data", "trials/mine/1.0.0")
    assert f"give --data '{tmp_path / 'own data'}'" in advice("trials/mine", tmp_path / "other")
    # The default folder is named by no option; a place that is known is one to pull from.
    monkeypatch.setenv("HYPERBO_DATA_SOURCES", "https://example.org/data")
    assert advice("pd1/mini:2.0.0", tmp_path / "own data").endswith(" hyperbo data pull pd1/mini:2.0.0")


def test_what_can_be_built_has_a_recipe() -> None:
    recipes = {f"pd1/{config}" for config in PD1} | {f"hpob/{config}" for config in HPOB}
    assert set(DATASETS) == recipes


@pytest.mark.parametrize("given", [7, b"data", "", ["data"]])
def test_what_is_no_path_is_refused(given: object) -> None:
    with pytest.raises(InvalidInputError, match="is no path"):
        versions(given)  # type: ignore[arg-type]


def test_a_file_in_place_of_the_data_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(InvalidInputError, match="this is a file"):
        find("pd1/mini:1.0.0", str(tmp_path / "data"))


@pytest.mark.parametrize(
    "reference",
    ["pd1", "pd1/mini@1", 7, "pd1/mini:1.0", "pd1/mini:", "../mini:1.0.0", "pd1/mini:01.0.0", "pd1/../x"],
)
def test_malformed_references(tmp_path: Path, reference: Any) -> None:
    with pytest.raises(InvalidInputError, match="write"):
        find(reference, tmp_path)


@pytest.mark.parametrize(("dataset", "version"), [("pd1/mini", 7), (3, "1.0.0")])
def test_numbers_in_place_of_names_are_refused(dataset: Any, version: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"is no (version number|name of a dataset); write"):
        version_folder(dataset, version)


def test_the_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HYPERBO_DATA_DIR", str(tmp_path))
    assert version_folder("pd1/mini", "1.0.0") == tmp_path / "pd1/mini/1.0.0"
    monkeypatch.delenv("HYPERBO_DATA_DIR")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert default_data_dir() == tmp_path / "share" / "hyperbo"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_data_dir() == tmp_path / ".local" / "share" / "hyperbo"
