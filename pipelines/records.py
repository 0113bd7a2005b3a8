"""What flows through the pipelines: raw files, trial keys, matched blocks, rejected rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Chunk(NamedTuple):
    """Consecutive lines of a file: where the first begins, its number from 1, and how many lines."""

    offset: int
    first: int
    lines: int


@dataclass(frozen=True)
class RawFile:
    """A file that trials are read from.

    Attributes:
      path: where it lies.
      split: which of the two sets of inputs its trials belong to.
      phase: the collection phase of its trials.
      sha256: hash of its bytes.
      size: number of its bytes.
      rows: number of trials it should hold, counted independently of the parser.
      chunks: parts that can be read apart from each other; none where it is read from its beginning only.
    """

    path: Path
    split: str
    phase: int
    sha256: str
    size: int
    rows: int
    chunks: tuple[Chunk, ...] = ()


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
