"""What every test runs under: shapes and types checked, two devices, one BLAS thread; a Prefect server."""

from __future__ import annotations

import gc
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

# JAX and OpenBLAS read these once, when they are loaded; so they come before any import of either. Strict
# promotion of dtypes is not set for all: optax's Adam raises a float to an int32 power.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# Most of the time of these tests is compiling: programs that run for milliseconds need not be made fast. The
# emitters of fused loops alone, each with an MLIR context of its own, would take more than half of it.
os.environ["XLA_FLAGS"] = (
    "--xla_force_host_platform_device_count=2 "
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false "
    # Modules cut into up to 32 parts, for as many cores, would each be linked and started on its own.
    "--xla_cpu_parallel_codegen_split_count=1"
)

# Prefect reads its settings when it is imported: here, before any test module can.
os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
os.environ["DO_NOT_TRACK"] = "1"
os.environ["PREFECT_LOGGING_LEVEL"] = "WARNING"
# Many tests start processes, which need not all translate the same modules.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import hypothesis
import jaxtyping
import pytest

# Every annotation of hyperbo is checked at run time, from its first import on.
jaxtyping.install_import_hook("hyperbo", "beartype.beartype")

# The first example of a law waits for a compiler; and a failure must come back on the next run.
hypothesis.settings.register_profile("project", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("project")

# What is imported, collected and compiled stays; at Python's usual pace it would be looked through again
# and again.
gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def own_data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the data folder of the user who runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HYPERBO_DATA_DIR", raising=False)
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("share")))
        yield


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Prefect's embedded server, for all tests of a process; and a copy of its database, migrated and empty.

    Migrations take half of a server's first start. A server of a test's own starts on the copy.
    """
    from prefect.settings import PREFECT_SERVER_DATABASE_CONNECTION_URL
    from prefect.testing.utilities import prefect_test_harness
    from sqlalchemy.engine import make_url

    migrated = tmp_path_factory.mktemp("prefect") / "prefect.db"
    with prefect_test_harness(server_startup_timeout=180):
        database = make_url(PREFECT_SERVER_DATABASE_CONNECTION_URL.value()).database
        assert database is not None
        with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(migrated)) as target:
            source.backup(target)
        yield migrated
