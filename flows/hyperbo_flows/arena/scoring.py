"""Scores of a part of the arena, from its records: regret by prior, cluster and budget."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from hyperbo.evaluation.measures.leaderboard import SCORES
from hyperbo.evaluation.measures.regret import regrets_of_priors, simple_regrets
from hyperbo.evaluation.records.join import Evaluation
from hyperbo.evaluation.records.run_array import missing_arms
from hyperbo.storage.printable import count
from hyperbo_flows.arena.protocol import Division, Part
from hyperbo_flows.arena.synthetic import SYNTHETIC, noise_free


@dataclass(frozen=True)
class Scored:
    """Scores of the methods that have every run, and how many runs each of the others lacks."""

    scores: pd.DataFrame
    incomplete: dict[str, str]


def score_division(division: Division, evaluations: dict[str, Evaluation]) -> Scored:
    """Score the parts of a division together; a method that lacks a run in one of them has no score.

    Args:
      division: what the protocol says.
      evaluations: records and metadata by the name of the part.
    """
    scored = {
        part.name: score_part(part, division, evaluations[part.name])
        for part in division.parts
        if part.name in evaluations
    }
    incomplete: dict[str, str] = {}
    for each in scored.values():
        incomplete |= each.incomplete
    frame = pd.concat([each.scores for each in scored.values()], ignore_index=True)
    # A method that was run in some parts only cannot be compared with those that ran in all.
    places: dict[str, set[tuple[str, str]]] = {}
    for name, each in scored.items():
        for method, clusters in each.scores.groupby("method")["cluster"]:
            places.setdefault(str(method), set()).update((name, cluster) for cluster in clusters.unique())
    every = set().union(*places.values())
    partial = [method for method in places if places[method] != every and method not in incomplete]
    incomplete |= dict.fromkeys(partial, "it was not run in all parts of the division")
    return Scored(frame[~frame["method"].isin(list(incomplete))].reset_index(drop=True), incomplete)


def score_part(part: Part, division: Division, evaluation: Evaluation) -> Scored:
    """Score the records of a part.

    Regret is that of the function without noise where it is known. The score of a prior in a cluster is the
    mean over its test tasks there, and over the runs that share the prior.
    """
    records, metadata = as_scored(part, evaluation).records, evaluation.metadata
    runs = simple_regrets(records, metadata)
    regrets = regrets_of_priors(runs, metadata)
    lacking: dict[str, int] = {}
    for arm in missing_arms(runs):
        lacking[arm.method] = lacking.get(arm.method, 0) + len(arm.seeds)
    column = records.groupby("task")[division.cluster].first()
    clusters = np.array([column[task] for task in regrets.tasks])
    # One prior serves a whole fold. Where folds are not clusters, it has a score in several of them.
    shared = part.protocol == "hpob" or bool(part.test)
    rows = [
        (
            method,
            f"{part.name}, {'' if shared else f'{cluster}, '}{seed}",
            str(cluster),
            budget,
            float(regrets.values[number][clusters == cluster, place, budget - 1].mean()),
        )
        for number, method in enumerate(regrets.methods)
        if method not in lacking
        for cluster in dict.fromkeys(clusters)
        for place, seed in enumerate(regrets.seeds)
        for budget in division.budgets
    ]
    words = {method: f"{count(lacks, 'run')} missing" for method, lacks in lacking.items()}
    return Scored(pd.DataFrame(rows, columns=list(SCORES)), words)


def as_scored(part: Part, evaluation: Evaluation) -> Evaluation:
    """The records as they are scored: synthetic ones with the values of the functions without noise."""
    if part.dataset != SYNTHETIC:
        return evaluation
    clean = pd.Series(noise_free())
    by_task = clean.groupby(clean.index.str.rpartition("/").get_level_values(0))
    records = evaluation.records.assign(
        y=evaluation.records["trial_id"].map(clean).astype(float),
        y_max=evaluation.records["task"].map(by_task.max()).astype(float),
        y_min=evaluation.records["task"].map(by_task.min()).astype(float),
    )
    return replace(evaluation, records=records)
