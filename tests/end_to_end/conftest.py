from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# Prefect reads its settings when it is imported: here, before any test module can.
os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
os.environ["DO_NOT_TRACK"] = "1"
os.environ["PREFECT_LOGGING_LEVEL"] = "WARNING"


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[None]:
    """Prefect's embedded server with a database of its own, for all tests of a process."""
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=180):
        yield


@pytest.fixture(scope="session")
def tiny_raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Raw files of the preset `tiny`, collected for real."""
    from pipelines.collect.preset import load_preset
    from pipelines.collect.sweep import collect

    return collect(load_preset("tiny"), tmp_path_factory.mktemp("collected") / "raw").folder
