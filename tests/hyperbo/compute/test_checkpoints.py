from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from compiled_programs import compiled_once
from gp_cases import matched_block, tuning_data, with_blocks

from hyperbo.compute.checkpoints import CheckpointFolder, checkpoints_available, differences
from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.pretrain import (
    EKLTraining,
    Job,
    NLLTraining,
    Pretrained,
    pretrain_ekl,
    pretrain_nll,
)

ARCHITECTURE = Architecture((3,))
DATA = with_blocks(tuning_data((3, 9, 6)), matched_block(("t0", "t1", "t2"), 4, seed=1))
JOBS = (Job(DATA, 0), Job(DATA.hold_out("d1"), 1), Job(DATA, 2, (1.0, 2.0, 3.0)))
# Of NLL, all that a state can hold: optimiser, random key, weights of group DRO, a plateau of the loss.
NLL = NLLTraining(
    steps=60,
    points_per_task=4,
    learning_rate=0.05,
    steps_per_call=2,
    tasks_per_step=2,
    group_dro_step=0.05,
    patience=12,
)
# Several starts, which stop early one after the other; the last call is shorter.
EKL = EKLTraining(iterations=59, restarts=2, tolerance=1e-4, iterations_per_call=2)
# Of each objective: its training, and the units of work in all and per call.
TRAININGS: dict[str, tuple[Callable[..., list[Pretrained]], int, int]] = {
    "NLL": (partial(pretrain_nll, architecture=ARCHITECTURE, training=NLL), NLL.steps, 2),
    "EKL": (partial(pretrain_ekl, architecture=ARCHITECTURE, training=EKL), EKL.iterations, 2),
}

PROGRAM = """
import sys
from pathlib import Path
from test_checkpoints import JOBS, TRAININGS
from hyperbo.compute.checkpoints import CheckpointFolder

pretrain, *_ = TRAININGS[sys.argv[1]]
folder = CheckpointFolder(Path(sys.argv[2]), every_calls=3)
pretrain(JOBS, progress=lambda done, total: print(done, flush=True), checkpoint=folder)
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


@pytest.fixture(scope="module", autouse=True)
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Of a process that finds these tests, and the programs that were compiled for them."""
    root, here = Path(__file__).parents[3], Path(__file__).parent
    found = {"PYTHONPATH": os.pathsep.join(map(str, (root, root / "tests/support", here)))}
    with compiled_once(tmp_path_factory.mktemp("programs")) as variables:
        yield os.environ | variables | found


@pytest.fixture(scope="module")
def uninterrupted(environment: dict[str, str]) -> dict[str, list[Pretrained]]:
    return {name: pretrain(JOBS) for name, (pretrain, *_) in TRAININGS.items()}


@pytest.fixture(scope="module")
def interrupted(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder left by NLL after 10 of 30 calls, with a checkpoint of the ninth."""
    path = tmp_path_factory.mktemp("interrupted") / "checkpoints"
    with pytest.raises(InterruptionError):
        pretrain_nll(JOBS, ARCHITECTURE, NLL, until(20), CheckpointFolder(path, every_calls=3))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["NLL", "EKL"])
def test_a_training_killed_at_any_moment_goes_on_to_the_same_result(
    objective: str,
    tmp_path: Path,
    environment: dict[str, str],
    uninterrupted: dict[str, list[Pretrained]],
) -> None:
    pretrain, total, per_call = TRAININGS[objective]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, objective, str(tmp_path)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 8 * per_call:
            process.kill()  # SIGKILL: it may be writing a checkpoint
            break
    process.stdout.close()
    assert process.wait() == -9
    calls: list[int] = []
    resumed = pretrain(
        JOBS, progress=lambda done, _: calls.append(done), checkpoint=CheckpointFolder(tmp_path, 3)
    )
    assert 0 < calls[0] < total
    assert calls[0] % (3 * per_call) == 0
    assert_equal_models(resumed, uninterrupted[objective])


@pytest.mark.slow
@pytest.mark.parametrize("objective", TRAININGS)
def test_checkpoints_change_nothing_and_a_finished_training_is_not_done_again(
    objective: str, tmp_path: Path, uninterrupted: dict[str, list[Pretrained]]
) -> None:
    pretrain, total, per_call = TRAININGS[objective]
    folder = CheckpointFolder(tmp_path / "new", every_calls=3)
    with pytest.raises(InterruptionError):
        pretrain(JOBS, progress=until(4 * per_call), checkpoint=folder)
    calls: list[int] = []
    resumed = pretrain(JOBS, progress=lambda done, _: calls.append(done), checkpoint=folder)
    assert calls == [*range(3 * per_call, total, per_call), total]
    assert_equal_models(resumed, uninterrupted[objective])
    again = pretrain(JOBS, progress=lambda done, _: calls.append(-done), checkpoint=folder)
    assert calls[-1] == -total
    assert calls[-2] == total
    assert_equal_models(again, uninterrupted[objective])
    last = str(-(-total // per_call))
    assert [path.name for path in folder.path.iterdir() if path.is_dir()] == [last]


@pytest.mark.slow
def test_the_starts_of_ekl_stopped_early(uninterrupted: dict[str, list[Pretrained]]) -> None:
    for model in uninterrupted["EKL"]:
        assert len(model.losses) == EKL.iterations + 1
        assert model.losses[0] > model.losses[-1]
        assert model.losses[-3] == model.losses[-2]


def test_a_training_without_the_package_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checkpoints_available()
    monkeypatch.setitem(sys.modules, "orbax", None)
    monkeypatch.setitem(sys.modules, "orbax.checkpoint", None)
    with (
        pytest.raises(
            NotAvailableError, match=r"no module orbax; pip install .hyperbo-priors\[checkpoints\]"
        ),
        CheckpointFolder(tmp_path).open({}),
    ):
        pass


def other_data() -> tuple[Job, ...]:
    task = DATA.tasks[0]
    tasks = (replace(task, y=task.y + 1e-9), *DATA.tasks[1:])
    return (replace(JOBS[0], training=replace(DATA, tasks=tasks)), *JOBS[1:])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"jobs": JOBS[:2]}, r"jobs has 3 entries, not 2"),
        ({"jobs": (replace(JOBS[0], seed=5), *JOBS[1:])}, r"jobs\[0\]\.seed is 0, not 5"),
        ({"jobs": (replace(JOBS[0], task_weights=(1.0, 1.0, 2.0)), *JOBS[1:])}, "task_weights is"),
        ({"jobs": other_data()}, r"jobs\[0\]\.arrays_sha256 is "),
        ({"architecture": Architecture((4,))}, r"architecture\.hidden\[0\] is 3, not 4"),
        ({"training": replace(NLL, learning_rate=0.01)}, r"training\.learning_rate is 0\.05, not 0\.01"),
    ],
    ids=["jobs", "seed", "weights", "data", "architecture", "setting"],
)
def test_a_checkpoint_of_another_training_is_refused(
    interrupted: Path, changes: dict[str, Any], message: str
) -> None:
    arguments = {"jobs": JOBS, "architecture": ARCHITECTURE, "training": NLL} | changes
    with pytest.raises(VersionConflictError, match=message):
        pretrain_nll(**arguments, checkpoint=CheckpointFolder(interrupted))


def test_a_checkpoint_of_other_code_is_refused(interrupted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hyperbo.pretrain.jobs.code_version", lambda *packages: "9.9.9+0")
    with pytest.raises(VersionConflictError, match=r"code_version is '.*', not '9\.9\.9\+0'"):
        pretrain_nll(JOBS, ARCHITECTURE, NLL, checkpoint=CheckpointFolder(interrupted))


def test_a_checkpoint_whose_files_are_lost_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "9"
    path.mkdir()
    (path / "_CHECKPOINT_METADATA").write_text("{}")
    with pytest.raises(InvalidInputError, match=r"the checkpoint cannot be read: .*delete the folder"):
        pretrain_nll(JOBS, ARCHITECTURE, NLL, checkpoint=CheckpointFolder(tmp_path))


def test_a_folder_that_is_never_written_to_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="every_calls = 0 is not positive"):
        CheckpointFolder(tmp_path, every_calls=0)


def test_differences_are_named_by_their_place() -> None:
    found = {"a": {"b": [1, {"c": None}], "d": 2}, "e": 1}
    expected = {"a": {"b": [1, {"c": 3}], "f": 2}, "e": 1}
    assert differences(found, found) == []
    assert differences(found, expected) == ["a.f is missing", "a.d is unknown", "a.b[1].c is None, not 3"]
