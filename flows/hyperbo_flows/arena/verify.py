"""Verify a bundle: its protocol, that it is whole, and that its observations are those of the data.

Each run is replayed (`hyperbo_flows.arena.replay`): so the regret is that of the data. That a method chose
so is shown by simulating some runs anew (`hyperbo_flows.arena.again`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hyperbo.data.warping import output_warping
from hyperbo.errors import HyperBOError, InvalidInputError
from hyperbo.evaluation.records.join import Evaluation
from hyperbo.evaluation.records.runs import RUN
from hyperbo.methods import METHODS
from hyperbo.storage.printable import printable
from hyperbo_flows.arena.bundle import Bundle
from hyperbo_flows.arena.merge import settings_of
from hyperbo_flows.arena.protocol import PROTOCOL, Division, Part, Protocol
from hyperbo_flows.arena.replay import named_runs, replayed, shown
from hyperbo_flows.arena.results import protocol_entry
from hyperbo_flows.arena.run import NEEDS_MATCHED, PlannedPart, plan_part
from hyperbo_flows.arena.table import unknown_columns
from hyperbo_flows.experiments.arms import arms_by_name
from hyperbo_flows.experiments.plan import numeric_code
from hyperbo_flows.experiments.protocols import TestBed

# Of a list in a message, in characters.
_LONGEST_LIST = 500


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
        raise InvalidInputError(f"the protocol has no part {_list(unknown)}", where="bundle")
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
    problems += [
        f"{method} has other settings in other parts"
        for (method, _), settings in settings_of(bundle).items()
        if len(settings) > 1
    ]
    problems += [
        f"{shown(part)}, where methods are said not to apply, is no part of the bundle"
        for part in bundle.does_not_apply
        if part not in bundle.parts
    ]
    here = {part.name for _, part in found}
    for division in protocol.divisions:
        names = {part.name for part in division.parts}
        if names & here and names - here:
            problems.append(f"division {division.name} lacks {', '.join(sorted(names - here))}")
    return list(dict.fromkeys(problems))


def not_checked(bundle: Bundle, protocol: Protocol = PROTOCOL) -> list[str]:
    """What `verify_bundle` cannot check in a bundle, in lines; none where it checks all.

    Args:
      bundle: the bundle.
      protocol: by which it must be made.

    Raises:
      InvalidInputError: the bundle is of another protocol.
    """
    parts = [part for _, part in parts_of(bundle, protocol)]
    other = _other_code(bundle)
    changed = {method for part in parts for method in _not_at_defaults(bundle.parts[part.name], part)}
    lines = []
    if other and changed:
        lines.append(
            f"settings not checked of {_list(sorted(changed))}: they are not the defaults of this version; "
            f"made with code {_list(other)}, here {numeric_code()}"
        )
    for part in parts:
        own = sorted(set(bundle.does_not_apply.get(part.name, {})) - METHODS.keys())
        if own:
            lines.append(f"{part.name}: not checked that {_list(own)} cannot be run there")
    return lines


def _problems(
    bundle: Bundle, division: Division, part: Part, baselines: Sequence[str], data: Path
) -> Iterator[str]:
    evaluation = bundle.parts[part.name]
    # The data are needed, and which methods apply to them; nothing is run.
    planned = plan_part(part, division, list(METHODS), data / "runs", data)
    wrong = unknown_columns(evaluation.records)
    if wrong:
        yield f"columns missing or unknown: {_list(wrong)}"
        return
    yield from _differences(evaluation, planned, division)
    methods = set(evaluation.metadata["methods"])
    without = [name for name in baselines if name not in methods]
    if without:
        yield f"the baselines {', '.join(without)} are missing"
    declared = methods | set(bundle.does_not_apply.get(part.name, {}))
    # Different people may run different divisions; within one, no method is left out in silence.
    beside = [bundle.parts[each.name] for each in division.parts if each.name in bundle.parts]
    every = {name for each in beside for name in each.metadata["methods"]}
    if every - declared:
        yield f"nothing is said of {_list(sorted(every - declared))}"
    yield from _left_out(bundle, planned)
    yield from _other_methods(bundle, evaluation, part)
    yield from _incomplete(evaluation, planned.plan.test_bed, part, division)
    yield from replayed(evaluation.records, planned.plan.test_bed)


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
        "runs_per_prior": bed.runs_per_seed if bed.runs_per_seed > 1 else None,
        "objective": {
            "name": planned.plan.objective,
            "direction": output_warping(planned.plan.warping).direction,
        },
        "flat_tasks": list(bed.flat_training_tasks),
    }
    for name, value in expected.items():
        if metadata.get(name) != value:
            yield f"{name} is {shown(metadata.get(name))}, and the protocol has {shown(value)}"


def _left_out(bundle: Bundle, planned: PlannedPart) -> Iterator[str]:
    """Methods that are said not to apply and do, or the other way round."""
    name = planned.part.name
    said, methods = bundle.does_not_apply.get(name, {}), set(bundle.parts[name].metadata["methods"])
    every = {each for part in bundle.parts.values() for each in part.metadata["methods"]}
    folds = planned.plan.test_bed.folds.values()
    matched = all(fold.training.complete_blocks for fold in folds)
    for method, reason in said.items():
        if method in methods:
            yield f"{shown(method)} is said not to apply, and has runs"
        elif method not in every | METHODS.keys():
            yield f"{shown(method)} is said not to apply, and is no method of the bundle"
        elif method in METHODS and method not in planned.does_not_apply:
            yield f"{method} is said not to apply, and does"
        elif method not in METHODS and matched:
            yield f"{shown(method)} is said not to apply, and the inputs are matched"
        elif reason != NEEDS_MATCHED:
            yield f"{shown(method)} is said not to apply, since {shown(reason)}, and not {NEEDS_MATCHED!r}"
    for method in sorted(methods & planned.does_not_apply.keys()):
        yield f"{method} has runs, and does not apply"


def _other_methods(bundle: Bundle, evaluation: Evaluation, part: Part) -> Iterator[str]:
    """Methods that are not configured as their names say, and sources that are not those that ran."""
    methods = evaluation.metadata["methods"]
    # Of other code the defaults may differ: `not_checked` says so.
    if not _other_code(bundle):
        for name in _not_at_defaults(evaluation, part):
            yield f"{name} is not at the defaults of this version"
    for name in sorted(methods.keys() - METHODS.keys()):
        source = bundle.sources.get(name)
        if source is None or hashlib.sha256(source).hexdigest() != methods[name].get("source_sha256"):
            yield f"the source of {_list([name])} is not in the bundle, or is not what ran"


def _not_at_defaults(evaluation: Evaluation, part: Part) -> list[str]:
    """The methods of the project whose settings are not the defaults here."""
    methods = evaluation.metadata["methods"]
    ours = [name for name in methods if name in METHODS]
    defaults = arms_by_name(ours, part.dataset) if ours else {}
    return [name for name, arm in defaults.items() if plain(arm.description()) != plain(methods[name])]


def plain(settings: Mapping[str, Any]) -> Any:
    """Settings as JSON has them, which knows no tuples."""
    return json.loads(json.dumps(settings))


def _other_code(bundle: Bundle) -> list[str]:
    versions = dict.fromkeys(each["code_version"] for each in bundle.machines)
    return [version for version in versions if version != numeric_code()]


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
        yield f"{len(missing)} runs are missing, and no failure is recorded: {named_runs(missing)}"
    if extra:
        yield f"{len(extra)} runs are not of the protocol: {named_runs(extra)}"


def _list(names: Sequence[str]) -> str:
    return printable(", ".join(names), _LONGEST_LIST)
