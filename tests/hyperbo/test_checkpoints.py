from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from gp_cases import tuning_data

from hyperbo.checkpoints import CheckpointFolder, differences
from hyperbo.errors import InvalidInputError, VersionConflictError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.pretrain import Job, NLLTraining, Pretrained, pretrain_nll

ARCHITECTURE = Architecture((3,))
# Everything that a state can hold: optimiser, random key, weights of group DRO, an early stop.
TRAINING = NLLTraining(
    steps=60,
    points_per_task=4,
    learning_rate=0.05,
    steps_per_call=2,
    tasks_per_step=2,
    group_dro_step=0.05,
    stop_after=12,
)
DATA = tuning_data((3, 9, 6))
JOBS = (Job(DATA, 0), Job(DATA.hold_out("d1"), 1), Job(DATA, 2, (1.0, 2.0, 3.0)))

# Slow enough between calls that the parent can kill it where it likes.
PROGRAM = """
import sys, time
from pathlib import Path
from test_checkpoints import ARCHITECTURE, JOBS, TRAINING
from hyperbo.checkpoints import CheckpointFolder
from hyperbo.pretrain import pretrain_nll

def progress(done, total):
    print(done, flush=True)

pretrain_nll(JOBS, ARCHITECTURE, TRAINING, progress, CheckpointFolder(Path(sys.argv[1]), every_calls=3))
"""


class InterruptionError(Exception):
    pass


def until(step: int) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        if done >= step:
            raise InterruptionError

    return progress


def assert_equal_models(found: list[Pretrained], expected: list[Pretrained]) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a.losses, b.losses)
        assert a.largest_jitter == b.largest_jitter
        jax.tree.map(np.testing.assert_array_equal, a.gp, b.gp)


@pytest.fixture(scope="module")
def uninterrupted() -> list[Pretrained]:
    return pretrain_nll(JOBS, ARCHITECTURE, TRAINING)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder left after 10 of 30 calls, with a checkpoint of the ninth."""
    path = tmp_path_factory.mktemp("interrupted") / "checkpoints"
    with pytest.raises(InterruptionError):
        pretrain_nll(JOBS, ARCHITECTURE, TRAINING, until(20), CheckpointFolder(path, every_calls=3))
    return path


def test_a_training_killed_at_any_moment_goes_on_to_the_same_result(
    tmp_path: Path, uninterrupted: list[Pretrained]
) -> None:
    tests = Path(__file__).parent
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, (tests.parents[1], tests.parent, tests)))
    }
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 24:
            process.kill()  # SIGKILL: it may be writing a checkpoint
            break
    process.stdout.close()
    assert process.wait() == -9
    calls: list[int] = []
    resumed = pretrain_nll(
        JOBS, ARCHITECTURE, TRAINING, lambda done, _: calls.append(done), CheckpointFolder(tmp_path, 3)
    )
    assert 0 < calls[0] < TRAINING.steps
    assert calls[0] % 6 == 0
    assert_equal_models(resumed, uninterrupted)


def test_checkpoints_change_nothing_and_a_finished_training_is_not_done_again(
    tmp_path: Path, uninterrupted: list[Pretrained]
) -> None:
    folder = CheckpointFolder(tmp_path / "new", every_calls=7)
    assert_equal_models(pretrain_nll(JOBS, ARCHITECTURE, TRAINING, checkpoint=folder), uninterrupted)
    calls: list[int] = []
    again = pretrain_nll(JOBS, ARCHITECTURE, TRAINING, lambda done, _: calls.append(done), folder)
    assert calls == [TRAINING.steps]
    assert_equal_models(again, uninterrupted)
    assert [path.name for path in folder.path.iterdir() if path.is_dir()] == ["30"]


def other_data() -> tuple[Job, ...]:
    task = DATA.tasks[0]
    tasks = (replace(task, y=task.y + 1e-9), *DATA.tasks[1:])
    return (replace(JOBS[0], training=replace(DATA, tasks=tasks)), *JOBS[1:])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"jobs": JOBS[:2]}, r"jobs has 3 entries, not 2"),
        ({"jobs": (replace(JOBS[0], seed=5), *JOBS[1:])}, r"jobs\[0\]\.seed is 0, not 5"),
        (
            {"jobs": (replace(JOBS[0], task_weights=(1.0, 1.0, 2.0)), *JOBS[1:])},
            r"jobs\[0\]\.task_weights is",
        ),
        ({"jobs": other_data()}, r"jobs\[0\]\.arrays_sha256 is '\w+', not '\w+'; use another folder"),
        ({"architecture": Architecture((4,))}, r"architecture\.hidden\[0\] is 3, not 4"),
        ({"training": replace(TRAINING, learning_rate=0.01)}, r"training\.learning_rate is 0\.05, not 0\.01"),
    ],
    ids=["jobs", "seed", "weights", "data", "architecture", "setting"],
)
def test_a_checkpoint_of_another_training_is_refused(
    interrupted: Path, changes: dict[str, Any], message: str
) -> None:
    arguments = {"jobs": JOBS, "architecture": ARCHITECTURE, "training": TRAINING} | changes
    with pytest.raises(VersionConflictError, match=f"a checkpoint of another training: {message}"):
        pretrain_nll(**arguments, checkpoint=CheckpointFolder(interrupted))


def test_a_checkpoint_of_other_code_is_refused(interrupted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hyperbo.pretrain.jobs.code_version", lambda *packages: "9.9.9+0")
    with pytest.raises(VersionConflictError, match=r"code_version is '.*', not '9\.9\.9\+0'"):
        pretrain_nll(JOBS, ARCHITECTURE, TRAINING, checkpoint=CheckpointFolder(interrupted))


def test_a_checkpoint_whose_files_are_lost_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "9"
    path.mkdir()
    (path / "_CHECKPOINT_METADATA").write_text("{}")
    with pytest.raises(InvalidInputError, match=r"the checkpoint cannot be read: .*delete the folder"):
        pretrain_nll(JOBS, ARCHITECTURE, TRAINING, checkpoint=CheckpointFolder(tmp_path))


def test_a_folder_that_is_never_written_to_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="every_calls = 0 is not positive"):
        CheckpointFolder(tmp_path, every_calls=0)


def test_differences_are_named_by_their_place() -> None:
    found = {"a": {"b": [1, {"c": None}], "d": 2}, "e": 1}
    expected = {"a": {"b": [1, {"c": 3}], "f": 2}, "e": 1}
    assert differences(found, found) == []
    assert differences(found, expected) == ["a.f is missing", "a.d is unknown", "a.b[1].c is None, not 3"]
