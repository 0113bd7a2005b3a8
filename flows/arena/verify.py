"""Verify a bundle: its protocol, that it is whole, and that its observations are those of the data.

Each run is replayed: the recorded y of every observation must be the dataset's y of that trial, no trial may
be there twice before all have been tried, and the best and worst y of the task must be the dataset's. So the
regret is that of the data. That a method chose so is shown by simulating some runs anew.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from flows.arena.bundle import Bundle
from flows.arena.protocol import PROTOCOL, Division, Part, Protocol
from flows.arena.results import protocol_entry
from flows.arena.run import PlannedPart, plan_part, run_part
from flows.experiments.arms import arms_by_name
from flows.experiments.plan import numeric_code
from flows.experiments.protocols import TestBed
from hyperbo.data.tuning_data import Task
from hyperbo.errors import HyperBOError, InvalidInputError
from hyperbo.evaluation.records.join import Evaluation
from hyperbo.evaluation.records.runs import RUN
from hyperbo.methods import METHODS

# Of the problems of one kind, in one line.
_MOST_NAMED = 3


def parts_of(bundle: Bundle, protocol: Protocol = PROTOCOL) -> list[tuple[Division, Part]]:
    """The divisions and parts of the protocol that a bundle has, in the order of the protocol.

    Raises:
      InvalidInputError: the bundle is of another protocol, or has a part that the protocol has not.
    """
    ours = protocol_entry(protocol)
    if bundle.protocol != ours:
        raise InvalidInputError(
            f"protocol {bundle.protocol['number']} ({bundle.protocol['sha256'][:12]}) is not protocol "
            f"{ours['number']} ({ours['sha256'][:12]}) of this version",
            where="bundle",
            fix="use the version of hyperbo that it was made with, or run the arena again",
        )
    found = [
        (division, part)
        for division in protocol.divisions
        for part in division.parts
        if part.name in bundle.parts
    ]
    unknown = sorted(set(bundle.parts) - {part.name for _, part in found})
    if unknown:
        raise InvalidInputError(f"the protocol has no part {', '.join(unknown)}", where="bundle")
    return found


def verify_bundle(bundle: Bundle, data: Path, protocol: Protocol = PROTOCOL) -> list[str]:
    """What is wrong with a bundle, in lines; none where it is as it should be.

    Args:
      bundle: the bundle.
      data: folder of dataset versions.
      protocol: by which it must be made.

    Raises:
      InvalidInputError: the bundle is of another protocol.
    """
    problems, found = [], parts_of(bundle, protocol)
    for division, part in found:
        try:
            lines = _problems(bundle, division, part, protocol.baselines, data)
            problems += [f"{part.name}: {each}" for each in lines]
        except HyperBOError as error:
            problems.append(f"{part.name}: cannot be verified: {error}")
    here = {part.name for _, part in found}
    for division in protocol.divisions:
        names = {part.name for part in division.parts}
        if names & here and names - here:
            problems.append(f"division {division.name} lacks {', '.join(sorted(names - here))}")
    return problems


def _problems(
    bundle: Bundle, division: Division, part: Part, baselines: Sequence[str], data: Path
) -> Iterator[str]:
    evaluation = bundle.parts[part.name]
    # The data alone are needed: the simplest baselines stand for the methods of the bundle.
    planned = plan_part(part, division, baselines, data / "runs", data)
    yield from _differences(evaluation, planned, division)
    methods = set(evaluation.metadata["methods"])
    without = [name for name in baselines if name not in methods]
    if without:
        yield f"the baselines {', '.join(without)} are missing"
    declared = methods | set(bundle.does_not_apply.get(part.name, {}))
    every = {name for each in bundle.parts.values() for name in each.metadata["methods"]}
    if every - declared:
        yield f"nothing is said of {', '.join(sorted(every - declared))}"
    yield from _other_methods(bundle, evaluation, part)
    yield from _incomplete(evaluation, planned.plan.test_bed, part, division)
    yield from _replayed(evaluation.records, planned.plan.test_bed)


def _differences(evaluation: Evaluation, planned: PlannedPart, division: Division) -> Iterator[str]:
    """What the metadata say otherwise than the protocol."""
    metadata, bed = evaluation.metadata, planned.plan.test_bed
    provenance = bed.data.provenance
    expected = {
        "dataset": provenance.dataset,
        "manifest_hash": provenance.manifest_hash,
        "preparation": provenance.preparation,
        "protocol": bed.protocol,
        "iterations": division.budgets[-1],
        "tasks": [task.name for task in bed.tests],
        "seeds": [run for seed in planned.part.seeds for run in bed.run_seeds(seed)],
        "regret": "normalised" if bed.normalised else None,
    }
    for name, value in expected.items():
        if metadata.get(name) != value:
            yield f"{name} is {metadata.get(name)!r}, and the protocol has {value!r}"


def _other_methods(bundle: Bundle, evaluation: Evaluation, part: Part) -> Iterator[str]:
    """Methods that are not configured as their names say, and sources that are not those that ran."""
    methods = evaluation.metadata["methods"]
    ours = [name for name in methods if name in METHODS]
    # Of other code, the defaults may differ.
    if all(each["code_version"] == numeric_code() for each in bundle.machines):
        for name, arm in arms_by_name(ours, part.dataset).items():
            if arm.description() != methods[name]:
                yield f"{name} is not at the defaults of this version"
    for name in sorted(set(methods) - set(ours)):
        source = bundle.sources.get(name)
        if source is None or hashlib.sha256(source).hexdigest() != methods[name].get("source_sha256"):
            yield f"the source of {name} is not in the bundle, or is not what ran"


def _incomplete(evaluation: Evaluation, bed: TestBed, part: Part, division: Division) -> Iterator[str]:
    """Runs that are neither recorded whole nor named as failed."""
    lengths = evaluation.records.groupby(RUN).size()
    whole = set(lengths.index[lengths == division.budgets[-1]])
    failed = {tuple(each[key] for key in RUN) for each in evaluation.metadata.get("failures", ())}
    asked = {
        (method, task.name, run)
        for method in evaluation.metadata["methods"]
        for task in bed.tests
        for seed in part.seeds
        for run in bed.run_seeds(seed)
    }
    missing, extra = sorted(asked - whole - failed), sorted(set(lengths.index) - asked)
    if missing:
        yield f"{len(missing)} runs are missing, and no failure is recorded: {_named(missing)}"
    if extra:
        yield f"{len(extra)} runs are not of the protocol: {_named(extra)}"


def _replayed(records: pd.DataFrame, bed: TestBed) -> Iterator[str]:
    """Observations that are not those of the data."""
    for name, rows in records.groupby("task"):
        found = [task for task in bed.tests if task.name == name]
        if found:
            yield from _replayed_task(rows, found[0], bed)


def _replayed_task(rows: pd.DataFrame, task: Task, bed: TestBed) -> Iterator[str]:
    place = {trial: row for row, trial in enumerate(task.trial_ids)}
    at = rows["trial_id"].map(place)
    if at.isna().any():
        yield f"{task.name} has no trial {rows['trial_id'][at.isna()].iloc[0]!r}"
        return
    at = at.to_numpy(np.int64)
    best = max if bed.beginnings else None
    recorded = {
        "y": task.y[at],
        "objective": task.objective[at],
        "y_max": task.y.max(),
        "y_min": task.y.min(),
    }
    wrong = rows["task_dataset"].to_numpy() != task.dataset
    for column, value in recorded.items():
        wrong |= rows[column].to_numpy() != value
    if best is not None:
        wrong |= rows["y_initial"].to_numpy() != _given(rows, task, bed)
    if wrong.any():
        first = rows[wrong].iloc[0]
        yield (
            f"{int(wrong.sum())} observations of {task.name} are not those of the data, the first: "
            f"{first['method']}, seed {first['seed']}, iteration {first['iteration']}, trial "
            f"{first['trial_id']}, y {first['y']}"
        )
    again = _repeats(rows, task, bed)
    if again:
        yield f"{task.name}: a trial is observed twice before all are: {_named(again)}"


def _given(rows: pd.DataFrame, task: Task, bed: TestBed) -> np.ndarray:
    """The best y that each row's run was given."""
    starts = bed.beginnings[task.name]
    best = np.array([max(task.y[list(each)]) for each in starts])
    return best[rows["seed"].to_numpy() % len(starts)]


def _repeats(rows: pd.DataFrame, task: Task, bed: TestBed) -> list[tuple[str, str, int]]:
    """The runs that observe a trial again, a given one included, while others are left."""
    found = []
    starts = bed.beginnings.get(task.name, ((),))
    for label, run in rows.groupby(["method", "seed"]):
        method, seed = cast("tuple[str, int]", label)
        given = [task.trial_ids[row] for row in starts[seed % len(starts)]]
        tried = [*given, *run.sort_values("iteration")["trial_id"]][: len(task.y)]
        if len(set(tried)) != len(tried):
            found.append((method, task.name, seed))
    return found


def simulate_again(
    bundle: Bundle, data: Path, count: int, seed: int = 0, protocol: Protocol = PROTOCOL
) -> list[str]:
    """Simulate some priors of a bundle anew, and compare every observation.

    Methods that are not of the project are imported by their name: their code is run.

    Args:
      bundle: the bundle.
      data: folder of dataset versions.
      count: how many arms of parts are drawn; of each, one fold with one seed is simulated.
      seed: of the draws.
      protocol: by which the bundle was made.

    Returns:
      What differs, in lines.

    Raises:
      HyperBOError: a method cannot be run here.
    """
    random = np.random.default_rng(seed)
    choices = [
        (division, part, method)
        for division, part in parts_of(bundle, protocol)
        for method in sorted(bundle.parts[part.name].metadata["methods"])
    ]
    lines = []
    for place in random.permutation(len(choices))[:count]:
        division, part, method = choices[place]
        learned = int(random.choice(part.seeds))
        with tempfile.TemporaryDirectory(prefix="arena-again-") as runs:
            planned = plan_part(replace(part, seeds=(learned,)), division, [method], Path(runs), data)
            folds = planned.plan.test_bed.folds
            chosen = sorted(folds)[int(random.integers(len(folds)))]
            bed = replace(planned.plan.test_bed, folds={chosen: folds[chosen]})
            result = run_part(replace(planned, plan=replace(planned.plan, test_bed=bed)), "verify")
        lines += _compared(result.evaluation.records, bundle.parts[part.name].records, part, method)
    return lines


def _compared(again: pd.DataFrame, recorded: pd.DataFrame, part: Part, method: str) -> Iterator[str]:
    key = [*RUN, "iteration"]
    both = again.merge(recorded[recorded["method"] == method], on=key, suffixes=("", "_recorded"))
    differ = both[both["trial_id"] != both["trial_id_recorded"]]
    if len(differ):
        first = differ.sort_values("iteration").iloc[0]
        runs = differ.groupby(RUN).ngroups
        yield (
            f"{part.name}, {method}: {runs} of {both.groupby(RUN).ngroups} runs differ when simulated anew, "
            f"the first on {first['task']} with seed {first['seed']} in iteration {first['iteration']}: "
            f"{first['trial_id']} here, {first['trial_id_recorded']} in the bundle"
        )


def _named(runs: list[tuple[str, str, int]]) -> str:
    told = "; ".join(f"{method} on {task} with seed {seed}" for method, task, seed in runs[:_MOST_NAMED])
    return told + (f"; and {len(runs) - _MOST_NAMED} more" if len(runs) > _MOST_NAMED else "")
