from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hyperbo_flows.command import processes as process_groups
from hyperbo_flows.command.processes import ProcessGroups

# They say when they have begun; the second ignores a request to terminate.
POLITE = "import signal, time; print(1, flush=True); time.sleep(100)"
STUBBORN = POLITE.replace(";", "; signal.signal(signal.SIGTERM, signal.SIG_IGN);", 1)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_groups, "_SECONDS_TO_END", 0.3)


def started(groups: ProcessGroups, folder: Path, code: str) -> subprocess.Popen[bytes]:
    path = folder / "output"
    with path.open("wb") as output:
        process = groups.start([sys.executable, "-S", "-c", code], os.environ, output, output)
    deadline = time.monotonic() + 60
    while not path.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


@pytest.mark.parametrize(("code", "number"), [(POLITE, signal.SIGTERM), (STUBBORN, signal.SIGKILL)])
def test_what_runs_at_the_end_is_asked_to_terminate_then_killed(
    tmp_path: Path, code: str, number: int
) -> None:
    with ProcessGroups() as groups:
        process = started(groups, tmp_path, code)
        assert groups.ended(process) is None
    assert process.returncode == -number


def test_an_interrupt_while_waiting_kills_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    with ProcessGroups() as groups:
        process = started(groups, tmp_path, STUBBORN)
        with monkeypatch.context() as patch:
            patch.setattr(process_groups.time, "sleep", interrupted)
            with pytest.raises(KeyboardInterrupt):
                groups.end([process])
    assert process.returncode == -signal.SIGKILL


def test_what_an_ended_command_left_running_is_let_be(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    child = f"""
import fcntl, time
file = open({str(lock)!r}, "w")
fcntl.flock(file, fcntl.LOCK_EX)
file.write("locked")
file.flush()
time.sleep(100)
"""
    code = f"""
import subprocess, sys, time, pathlib
lock = pathlib.Path({str(lock)!r})
child = subprocess.Popen([sys.executable, "-S", "-c", {child!r}])
while not (lock.exists() and lock.read_text()):
    time.sleep(0.02)
print(child.pid, flush=True)
"""
    with ProcessGroups() as groups:
        process = started(groups, tmp_path, code)
        while groups.ended(process) is None:
            time.sleep(0.02)
    try:
        with lock.open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.kill(int((tmp_path / "output").read_text()), signal.SIGKILL)


def test_the_work_goes_on_without_the_watchman(tmp_path: Path) -> None:
    with ProcessGroups() as groups:
        groups._watchman.kill()
        groups._watchman.wait()
        process = started(groups, tmp_path, POLITE)
    assert process.returncode == -signal.SIGTERM
