"""Simulate some arms of a bundle anew: whether methods chose as the bundle says."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from hyperbo.evaluation.records.runs import RUN
from hyperbo.methods import METHODS
from hyperbo_flows.arena.bundle import Bundle
from hyperbo_flows.arena.protocol import PROTOCOL, Part, Protocol
from hyperbo_flows.arena.replay import shown
from hyperbo_flows.arena.run import plan_part, run_part
from hyperbo_flows.arena.verify import parts_of, plain
from hyperbo_flows.experiments.methods import method_class, method_source


@dataclass(frozen=True)
class Again:
    """What came out of simulating arms anew.

    Attributes:
      seed: of the draws.
      arms: how many were simulated.
      of_arms: how many the bundle has.
      observations: how many were compared.
      problems: what differs, in lines.
    """

    seed: int
    arms: int
    of_arms: int
    observations: int
    problems: tuple[str, ...]


def simulate_again(
    bundle: Bundle, data: Path, count: int, seed: int | None = None, protocol: Protocol = PROTOCOL
) -> Again:
    """Simulate some priors of a bundle anew, and compare every observation.

    Methods that are not of the project are imported by their name: their code is run. None is simulated whose
    source or settings here are not those of the bundle.

    Args:
      bundle: the bundle.
      data: folder of dataset versions.
      count: how many arms of parts are drawn, at most; of each, one fold with one seed is simulated.
      seed: of the draws; None: one that nobody can foresee.
      protocol: by which the bundle was made.

    Raises:
      HyperBOError: a method cannot be run here.
    """
    drawn = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
    random = np.random.default_rng(drawn)
    choices = [
        (division, part, method)
        for division, part in parts_of(bundle, protocol)
        for method in sorted(bundle.parts[part.name].metadata["methods"])
    ]
    problems: list[str] = []
    arms = observations = 0
    for place in random.permutation(len(choices))[:count]:
        division, part, method = choices[place]
        learned = int(random.choice(part.seeds))
        other = _other_source(bundle, part, method)
        if other:
            problems.append(other)
            continue
        with tempfile.TemporaryDirectory(prefix="arena-again-") as runs:
            planned = plan_part(replace(part, seeds=(learned,)), division, [method], Path(runs), data)
            folds = planned.plan.test_bed.folds
            chosen = sorted(folds)[int(random.integers(len(folds)))]
            bed = replace(planned.plan.test_bed, folds={chosen: folds[chosen]})
            settings = planned.plan.experiment.arms[method].description()
            if plain(settings) != plain(bundle.parts[part.name].metadata["methods"][method]):
                problems.append(
                    f"{part.name}, {shown(method)}: its settings here are not those of the bundle"
                )
                continue
            result = run_part(replace(planned, plan=replace(planned.plan, test_bed=bed)), "verify")
        recorded = bundle.parts[part.name].records
        recorded = recorded[
            (recorded["method"] == method)
            & recorded["task"].isin([task.name for task in bed.tests])
            & recorded["seed"].isin(bed.run_seeds(learned))
        ]
        arms += 1
        problems += _compared(result.evaluation.records, recorded, f"{part.name}, {method}")
        observations += len(result.evaluation.records)
    return Again(drawn, arms, len(choices), observations, tuple(problems))


def _other_source(bundle: Bundle, part: Part, method: str) -> str | None:
    """A line where a method that is not of the project has another source here than in the bundle."""
    if method in METHODS:
        return None
    here = method_source(method_class(method))
    if here == bundle.sources.get(method):
        return None
    return (
        f"{part.name}, {shown(method)}: not simulated anew: its source here (SHA-256 "
        f"{hashlib.sha256(here).hexdigest()[:12]}) is not that of the bundle"
    )


def _compared(again: pd.DataFrame, recorded: pd.DataFrame, arm: str) -> Iterator[str]:
    key = [*RUN, "iteration"]
    every = again.merge(recorded, on=key, suffixes=("", "_recorded"), how="outer", indicator="found")
    for side, words in (
        ("left_only", "here and not in the bundle"),
        ("right_only", "in the bundle and not here"),
    ):
        alone = every[every["found"] == side]
        if len(alone):
            first = alone.iloc[0]
            yield (
                f"{arm}: simulated anew, {len(alone)} observations are {words}, the first on "
                f"{first['task']} with seed {first['seed']} in iteration {first['iteration']}"
            )
    both = every[every["found"] == "both"]
    differ = both[both["trial_id"] != both["trial_id_recorded"]]
    if len(differ):
        first = differ.sort_values("iteration").iloc[0]
        runs = differ.groupby(RUN).ngroups
        yield (
            f"{arm}: {runs} of {both.groupby(RUN).ngroups} runs differ when simulated anew, "
            f"the first on {first['task']} with seed {first['seed']} in iteration {first['iteration']}: "
            f"{first['trial_id']} here, {first['trial_id_recorded']} in the bundle"
        )
