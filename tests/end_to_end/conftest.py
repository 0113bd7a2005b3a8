from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Raw files of the preset `tiny`, collected for real."""
    from hyperbo_pipelines.collect.preset import load_preset
    from hyperbo_pipelines.collect.sweep import collect

    return collect(load_preset("tiny"), tmp_path_factory.mktemp("collected") / "raw").folder
