"""Run a transform on a real runner and look at what came out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that
from hyperbo_pipelines.curate.elements import RawFile, TrialKey


def pipeline() -> Any:
    """A pipeline on the in-memory runner; the empty list keeps pytest's arguments out of its options."""
    return beam.Pipeline("FnApiRunner", options=PipelineOptions([]))


def expect(collection: Any, expected: Sequence[Any], label: str = "expect") -> None:
    """The collection holds these elements in any order; compared by `repr`, in which NaN equals NaN."""

    def check(actual: Sequence[Any]) -> None:
        assert sorted(map(repr, actual)) == sorted(map(repr, expected))

    assert_that(collection, check, label=label)


def raw_file(path: Path, split: str = "matched", phase: int = 1) -> RawFile:
    """A raw file, described only as far as the parser looks."""
    return RawFile(path, split, phase, sha256="", size=0, rows=0)


def key(trial_id: str, task: str = "t", input_id: str = "i", **changes: Any) -> TrialKey:
    """A trial's key; its source is a line of its own unless given."""
    fields: dict[str, Any] = {
        "trial_id": trial_id,
        "task": task,
        "split": "matched",
        "phase": 1,
        "input_id": input_id,
        "source": f"f.jsonl:{sum(trial_id.encode())}",
        "fingerprint": trial_id,
    }
    return TrialKey(**fields | changes)
