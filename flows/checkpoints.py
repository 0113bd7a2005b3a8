"""Checkpoints of the pre-training in a flow: where they are, and what becomes of those that do not fit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from flows.ledger import Identity, run_id
from flows.progress import say
from hyperbo.checkpoints import CheckpointFolder, checkpoints_available
from hyperbo.errors import InvalidInputError, VersionConflictError
from hyperbo.methods import PretrainedMethod
from hyperbo.pretrain import Job, Pretrained, Progress
from pd1_builder.staging import lock_version

CHECKPOINTS = "checkpoints"


@contextmanager
def checkpoints_of(runs: Path, identities: Sequence[Identity], label: str) -> Iterator[Path]:
    """The folder for checkpoints of a batch of runs, this process's alone; deleted once the batch is done.

    A process that finds another at the same batch waits: it may have nothing to do afterwards. After an
    error, as after a kill, the folder stays, for the next attempt to go on from.

    Args:
      runs: the ledger's folder.
      identities: of the runs, in the order of the batch.
      label: the step, for the line that says why nothing happens.
    """
    batch = {"kind": CHECKPOINTS, "runs": [run_id(identity) for identity in identities]}
    folder = runs / CHECKPOINTS / run_id(batch)
    with lock_version(folder / "calls", lambda: say(f"{label}: waiting for a process at the same batch")):
        yield folder / "calls"
        # Gone already where the process that was waited for has finished the batch.
        shutil.rmtree(folder, ignore_errors=True)


def pretrain_from_checkpoint(
    method: PretrainedMethod, jobs: Sequence[Job], progress: Progress, folder: Path, label: str
) -> list[Pretrained]:
    """Pre-train, from the newest checkpoint in the folder where there is one that fits.

    A checkpoint of other devices, or one that cannot be read, is no obstacle: the training starts anew.

    Args:
      method: what to pre-train for.
      jobs: of the batch.
      progress: called with steps done and in all.
      folder: of the checkpoints; without the package for them, the training does without.
      label: the step, for the line that says so.

    Raises:
      HyperBOError: as the method's `pretrain`.
    """
    if not checkpoints_available():
        say(f"{label}: without checkpoints, for which orbax-checkpoint is not installed")
        return method.pretrain(jobs, progress)
    checkpoint = CheckpointFolder(folder, every_calls=1)
    try:
        return method.pretrain(jobs, progress, checkpoint)
    except (VersionConflictError, InvalidInputError) as error:
        if not folder.exists():
            raise
        say(f"{label}: from the start, as the checkpoint cannot be used: {error}")
        shutil.rmtree(folder)
        return method.pretrain(jobs, progress, checkpoint)
