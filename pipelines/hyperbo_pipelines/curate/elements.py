"""The elements of the pipelines: raw files, trial keys, matched blocks, rejected rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Chunk(NamedTuple):
    """Consecutive lines of a file: offset of the first in bytes, its number from 1, number of lines."""

    offset: int
    first: int
    lines: int


@dataclass(frozen=True)
class RawFile:
    """A file that trials are read from.

    Attributes:
      path: its path.
      split: the split of its trials.
      phase: the collection phase of its trials.
      sha256: hash of its bytes.
      size: number of its bytes.
      rows: number of its trials, counted independently of the parser.
      chunks: parts that can be read independently; empty if the file can be read only from its beginning.
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
    """A row that could not become a record: its file, its line, and the reason."""

    file: str
    line: int
    reason: str


class TrialKey(NamedTuple):
    """The few facts of a trial that duplicates and matched blocks are found by.

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
