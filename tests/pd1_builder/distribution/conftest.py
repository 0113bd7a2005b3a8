from __future__ import annotations

from pathlib import Path

import pytest
from version_folders import record, write_version


@pytest.fixture(autouse=True)
def no_place_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HYPERBO_DATA_SOURCES", "HYPERBO_DATA_PUBLIC_KEY", "HYPERBO_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with pd1/mini:1.0.0, its child 1.1.0, and trials/mine:1.0.0; read it only."""
    data_dir = tmp_path_factory.mktemp("own")
    first, second = record("a", "a/0"), record("a", "a/1", a=0.5)
    write_version(data_dir, "pd1/mini:1.0.0", {"one": [first]})
    write_version(
        data_dir, "pd1/mini:1.1.0", {"one": [first, second], "two": [record("b", "b/0")]}, parent="1.0.0"
    )
    write_version(data_dir, "trials/mine:1.0.0", {"one": [first]})
    return data_dir
