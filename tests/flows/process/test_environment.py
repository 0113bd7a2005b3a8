from __future__ import annotations

import importlib
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hyperbo_flows.process.environment import prepare_jax, prepare_prefect, quiet_tfds

SET_HERE = (
    "OPENBLAS_NUM_THREADS",
    "XLA_FLAGS",
    "JAX_COMPILATION_CACHE_DIR",
    "PREFECT_HOME",
    "PREFECT_SERVER_ANALYTICS_ENABLED",
    "DO_NOT_TRACK",
    "PREFECT_API_URL",
    "PREFECT_SERVER_EPHEMERAL_ENABLED",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS",
    "PREFECT_LOGGING_LEVEL",
    "PREFECT_LOGGING_TO_API_ENABLED",
    "PREFECT_LOGGING_LOGGERS_PREFECT_FLOW_RUNS_LEVEL",
    "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL",
)


@pytest.fixture
def environment(monkeypatch):
    """An environment without the variables, restored afterwards."""
    for name in SET_HERE:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return monkeypatch


def test_every_core_becomes_a_device(environment):
    environment.setenv("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=true")
    prepare_jax()
    flags = os.environ["XLA_FLAGS"].split()
    assert flags[0] == "--xla_cpu_multi_thread_eigen=true"
    assert flags[1].startswith("--xla_force_host_platform_device_count=")
    seen = subprocess.run(
        [sys.executable, "-c", "import jax; print(len(jax.devices('cpu')))"],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert seen.stdout.strip() == flags[1].partition("=")[2]


def test_what_the_user_has_set_stays(environment, tmp_path):
    for name in SET_HERE:
        environment.setenv(name, "mine")
    environment.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=1")
    before = dict(os.environ)
    prepare_jax()
    prepare_prefect(tmp_path / "home")
    assert dict(os.environ) == before
    assert not (tmp_path / "home").exists()


def test_prefect_is_embedded_and_calls_nobody(environment, tmp_path):
    prepare_prefect(tmp_path / "runs" / "prefect")
    assert os.environ["PREFECT_HOME"] == str(tmp_path / "runs" / "prefect")
    assert Path(os.environ["PREFECT_HOME"]).is_dir()
    script = (
        "from prefect.settings import get_current_settings as g; s = g(); "
        "print(s.server.analytics_enabled, s.server.ephemeral.enabled, s.api.url)"
    )
    seen = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert seen.stdout.split() == ["False", "True", "None"]


def test_only_what_users_cannot_act_on_is_dropped(caplog):
    importlib.import_module("hyperbo_pipelines")
    absl = logging.getLogger("absl")
    filters = list(absl.filters)
    try:
        quiet_tfds()
        absl.warning("Using custom data configuration x")
        logging.getLogger().warning("apitools not found, and so on")
        absl.warning("something else")
    finally:
        absl.filters[:] = filters
    assert caplog.messages == ["something else"]
