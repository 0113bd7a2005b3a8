from __future__ import annotations

from pathlib import Path

import pytest
from own_trials import build_own_trials
from synthetic_pd1 import write_release

import pd1_builder


@pytest.fixture(scope="session")
def raw_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of raw files: 4 tasks, 120 rows."""
    return write_release(tmp_path_factory.mktemp("raw"))


@pytest.fixture(scope="session")
def built(raw_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with pd1/mini:1.0.0; read it only."""
    data_dir = tmp_path_factory.mktemp("data")
    pd1_builder.build(raw=raw_release, data_dir=data_dir)
    return data_dir


@pytest.fixture(scope="session")
def built_own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with trials/own:1.0.0 of `own_trials`; read it only."""
    return build_own_trials(tmp_path_factory.mktemp("own"))
