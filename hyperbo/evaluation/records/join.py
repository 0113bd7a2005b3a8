"""Joining evaluations: the parts of an evaluation that ran on several machines or at several times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Any

import pandas as pd

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.records.losses import COLUMNS as LOSS_COLUMNS
from hyperbo.evaluation.records.losses import validate_losses
from hyperbo.evaluation.records.metadata import EvaluationMetadata, validate_metadata
from hyperbo.evaluation.records.runs import (
    COLUMNS,
    INITIAL_COLUMN,
    INITIAL_OBJECTIVE_COLUMN,
    RANGE_COLUMN,
    RUN,
    validate_records,
)

# Optional columns that regret depends on: where a part has one, what it says must be so in all.
_OF_REGRET = (RANGE_COLUMN, INITIAL_COLUMN, INITIAL_OBJECTIVE_COLUMN)
# Metadata that parts must share; `methods` must be equal where two parts have the same method.
SHARED = ("dataset", "manifest_hash", "preparation", "protocol", "iterations")
SHARED_IF_THERE = ("regret", "runs_per_prior", "objective")


@dataclass(frozen=True)
class Evaluation:
    """An evaluation in memory: run records, metadata, and losses of priors if it has any."""

    records: pd.DataFrame
    metadata: EvaluationMetadata
    losses: pd.DataFrame | None = None


def join_evaluations(parts: Mapping[str, Evaluation]) -> Evaluation:
    """Join evaluations of the same data under the same protocol.

    A run that several parts hold must be equal in all of them, in all that regret depends on. It is kept
    once, with the predictions and further columns of the first part that holds it. Versions of code and
    platforms may differ; the result names all. Seconds are summed, except those of a part whose runs
    (`run_ids`) all belong to another part. The total is not known if parts share some runs.

    Args:
      parts: evaluations by a name for messages, such as their folder.

    Returns:
      The union of their records, losses, methods, tasks and seeds.

    Raises:
      InvalidInputError: there is no part; parts differ in metadata that they must share, in a method's
        configuration, or in a run; or the joined evaluation is not valid.
    """
    if not parts:
        raise InvalidInputError("no evaluation to join", fix="name at least one")
    names, evaluations = list(parts), list(parts.values())
    for first, second in combinations(parts, 2):
        _check_agree(first, parts[first].metadata, second, parts[second].metadata)
    frames = [each.records for each in evaluations]
    compared = [*COLUMNS, *(name for name in _OF_REGRET if any(name in frame.columns for frame in frames))]
    records = _union(frames, names, [*RUN, "iteration"], compared, "run")
    validate_records(records, where=f"records joined of {', '.join(names)}")
    with_losses = {
        name: each.losses for name, each in zip(names, evaluations, strict=True) if each.losses is not None
    }
    losses = None
    if with_losses:
        losses = _union(
            list(with_losses.values()), list(with_losses), list(LOSS_COLUMNS[:-1]), LOSS_COLUMNS, "loss"
        )
        validate_losses(losses, where=f"losses joined of {', '.join(names)}")
    return Evaluation(records, _metadata(parts, records), losses)


def _check_agree(first: str, expected: EvaluationMetadata, name: str, given: EvaluationMetadata) -> None:
    differing = [
        f"{key} ({expected.get(key)!r}, {given.get(key)!r})"
        for key in (*SHARED, *SHARED_IF_THERE)
        if expected.get(key) != given.get(key)
    ]
    differing += [
        f"the configuration of {method}"
        for method, configuration in given["methods"].items()
        if method in expected["methods"] and expected["methods"][method] != configuration
    ]
    if differing:
        raise InvalidInputError(
            f"differ in {'; '.join(differing)}",
            where=f"{first} and {name}",
            fix="report them apart; a method that was configured anew needs a name of its own",
        )


def _union(
    frames: Sequence[pd.DataFrame], names: Sequence[str], key: list[str], compared: Sequence[str], what: str
) -> pd.DataFrame:
    joined = pd.concat(frames, ignore_index=True)
    source = pd.Series(
        [name for name, frame in zip(names, frames, strict=True) for _ in range(len(frame))], dtype="str"
    )
    kept = ~joined.duplicated(list(compared))
    again = joined[kept].duplicated(key)
    if again.any():
        row = joined[kept][again].iloc[0]
        same = (joined[key] == row[key]).all(axis=1) & kept
        raise InvalidInputError(
            f"the same {what} with another outcome: {_outcomes(joined[same], compared, key)}",
            where=f"{' and '.join(dict.fromkeys(source[same]))}: {', '.join(f'{k} {row[k]}' for k in key)}",
            fix="keep one of the two; results that do not repeat cannot be joined",
        )
    return joined[kept].reset_index(drop=True)


def _outcomes(rows: pd.DataFrame, compared: Sequence[str], key: Sequence[str]) -> str:
    """What rows of one key differ in, with their values."""
    differing = [name for name in compared if name not in key and rows[name].nunique(dropna=False) > 1]
    return "; ".join(f"{name} {' and '.join(map(str, rows[name].unique()))}" for name in differing)


def _metadata(parts: Mapping[str, Evaluation], records: pd.DataFrame) -> EvaluationMetadata:
    every = [each.metadata for each in parts.values()]
    joined: dict[str, Any] = {key: every[0][key] for key in SHARED}
    joined |= {
        "methods": {name: value for each in every for name, value in each["methods"].items()},
        "code_version": _phrase((each["code_version"] for each in every), "; "),
        "command": _phrase((each["command"] for each in every), "\n"),
        "platform": {
            name: _phrase((each["platform"][name] for each in every if name in each["platform"]), "; ")
            for name in dict.fromkeys(name for each in every for name in each["platform"])
        },
        **_seconds(every),
        "started": _extreme(parts, "started", min),
        "finished": _extreme(parts, "finished", max),
    }
    for key in ("tasks", "seeds", "run_ids", "flat_tasks"):
        if any(key in each for each in every):
            joined[key] = list(dict.fromkeys(value for each in every for value in each.get(key, ())))
    joined["seeds"].sort()
    if any("summaries" in each for each in every):
        joined["summaries"] = {
            name: value for each in every for name, value in each.get("summaries", {}).items()
        }
    joined |= {key: value for key in SHARED_IF_THERE if (value := every[0].get(key)) is not None}
    failures = [failure for each in every for failure in each.get("failures", ())]
    if failures:
        last = records[records["iteration"] == joined["iterations"]]
        complete = set(last[RUN].itertuples(index=False, name=None))
        # Overlapping parts name the same failure.
        by_run = {(*(failure[key] for key in RUN), failure["reason"]): failure for failure in failures}
        joined["failures"] = [failure for run, failure in by_run.items() if run[:-1] not in complete]
    return validate_metadata(joined, where=f"metadata joined of {', '.join(parts)}")


def _phrase(values: Iterable[str], separator: str) -> str:
    return separator.join(dict.fromkeys(values))


def _extreme(parts: Mapping[str, Evaluation], key: str, choose: Any) -> str:
    try:
        return choose((each.metadata[key] for each in parts.values()), key=datetime.fromisoformat)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(
            f"{key} cannot be compared: {error}",
            where=", ".join(parts),
            fix="give ISO 8601 times with a zone",
        ) from error


def _seconds(every: Sequence[EvaluationMetadata]) -> dict[str, Any]:
    counted: list[EvaluationMetadata] = []
    runs: set[str] = set()
    # Largest part first, so that a part whose runs it contains adds nothing.
    for each in sorted(every, key=lambda metadata: -len(metadata["run_ids"])):
        own = set(each["run_ids"])
        if not own or not own <= runs:
            counted.append(each)
            runs |= own
    seconds = {"seconds": _summed([each["seconds"] for each in counted])}
    totals = [each["total_seconds"] for each in counted if "total_seconds" in each]
    apart = sum(len(set(each["run_ids"])) for each in counted) == len(runs)
    return seconds | ({"total_seconds": _summed(totals)} if apart and len(totals) == len(counted) else {})


def _summed(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for part in parts:
        for step, seconds in part.items():
            if isinstance(seconds, Mapping):
                of_step = total.setdefault(step, {})
                for method, value in seconds.items():
                    of_step[method] = of_step.get(method, 0.0) + value
            else:
                total[step] = total.get(step, 0.0) + seconds
    return total
