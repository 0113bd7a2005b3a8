"""What flows through the pipelines: raw files, trial keys, curated records, rejected rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hyperbo.trial import Trial


@dataclass(frozen=True)
class RawFile:
    """A file of trials, one JSON object per line, plain or gzipped.

    Attributes:
      path: where it lies.
      split: which of the two sets of inputs its trials belong to.
      phase: the collection phase of its trials.
      sha256: hash of its bytes.
      size: number of its bytes.
      rows: number of its lines that are not blank.
    """

    path: Path
    split: str
    phase: int
    sha256: str
    size: int
    rows: int


@dataclass(frozen=True)
class Reject:
    """A row that could not become a record: where it stands and what is wrong with it."""

    file: str
    line: int
    reason: str


class TrialKey(NamedTuple):
    """The few facts of a trial by which duplicates and matched blocks are found.

    A trial with its curves is thousands of times larger; only keys are grouped.
    """

    trial_id: str
    task: str
    split: str
    phase: int
    input_id: str
    source: str
    fingerprint: str


class Block(NamedTuple):
    """A matched block: inputs of one phase that were run on the same set of tasks.

    `trial_ids` names one trial per input and task.
    """

    block_id: str
    phase: int
    tasks: tuple[str, ...]
    inputs: int
    trial_ids: tuple[str, ...]


@dataclass(frozen=True)
class Record:
    """A trial, what was found about it among the others, and its derived arrays.

    Attributes:
      trial: the trial, its raw values untouched.
      duplicates: ids of the other trials of the same task and input, sorted.
      block: id of the matched block in which the trial stands for its task and input; empty for none.
      x: the input in the unit cube, by the declared bounds.
      y: the warped objective, to be maximised; NaN where the trial diverged or has no value.
    """

    trial: Trial
    duplicates: tuple[str, ...] = ()
    block: str = ""
    x: tuple[float, ...] = ()
    y: float = math.nan
