"""A prior that knows some parameters of a space: what extending it by the universal prior is worth.

The prior of H-NLL is trained on PD1 mini without one parameter, or the test tasks get a parameter that
changes nothing. The task dataset of a test task is held out; the universal prior has seen no network.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import t as student

from benchmarks.universal.compare import SOURCES
from benchmarks.universal.histories import collected, family, version
from hyperbo.bayesopt.offline import Run, simulate
from hyperbo.data.parameter import Parameter
from hyperbo.data.search_space import SearchSpace
from hyperbo.data.tuning_data import TuningData
from hyperbo.gp.numerics import double_precision
from hyperbo.methods import HMix
from hyperbo.methods.mixture.policy import Mixture, MixturePolicy
from hyperbo.methods.universal import UniversalPolicy, columns_of, fit_hyperprior
from hyperbo.methods.universal.extended import extended_mixture
from hyperbo.pretrain.jobs import Job
from hyperbo.pretrain.nll import NLLTraining

ITERATIONS, TRIALS = 50, (1, 5, 10, 20, 50)
PRIOR_WEIGHT = 0.9
IRRELEVANT = "smoothing"


def options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--dataset", default="pd1/mini:1.0.0")
    parser.add_argument("--cases", nargs="*", default=("learning_rate", "momentum", "power", IRRELEVANT))
    parser.add_argument("--rows", type=int, default=250)


@double_precision
def run(given: argparse.Namespace) -> None:
    """Train the priors, run all methods, print the regret."""
    data = version(given.dataset, given.data)
    histories = {**collected(), **{name: version(name, given.data) for name in SOURCES}}
    kept = {name: each for name, each in histories.items() if family(name) != "networks"}
    learned = fit_hyperprior(kept)
    found = []
    for case in given.cases:
        whole = _with_column(data) if case == IRRELEVANT else data
        places = [place for place, name in enumerate(whole.search_space.names) if name != case]
        known = _only(whole, places)
        jobs = [Job(known.hold_out(name), 0) for name in data.task_datasets]
        method = HMix(training=NLLTraining(2_000))
        trained = [
            each.gp for each in method.trained_as._pretrain(jobs, method.architecture, method.training)
        ]
        columns = columns_of(whole.search_space)
        runs: dict[str, list[Run]] = {"prior alone": [], "extended": [], "universal": []}
        for job, gp in zip(jobs, trained, strict=True):
            held_out = {task.dataset for task in data.tasks} - {task.dataset for task in job.training.tasks}
            alone = MixturePolicy(method.in_use(gp, job.training))
            mixture = extended_mixture(gp, places, columns, learned, PRIOR_WEIGHT)
            extended = MixturePolicy(Mixture((mixture.processes,), mixture.log_weights))
            universal = UniversalPolicy(learned.components(columns))
            for number, task in enumerate(whole.tasks):
                if task.dataset in held_out:
                    random = np.random.default_rng(number)
                    rows = np.sort(random.permutation(len(task.y))[: given.rows])
                    ids = tuple(task.trial_ids[row] for row in rows)
                    table = replace(
                        task, x=task.x[rows], y=task.y[rows], objective=task.objective[rows], trial_ids=ids
                    )
                    runs["prior alone"].append(Run(alone, replace(table, x=table.x[:, places]), 0))
                    runs["extended"].append(Run(extended, table, 0))
                    runs["universal"].append(Run(universal, table, 0))
        for name, mine in runs.items():
            if mine:
                choices = simulate(mine, ITERATIONS).require_usable().choices
                for each, rows in zip(mine, choices, strict=True):
                    regret = each.task.y.max() - np.maximum.accumulate(each.task.y[rows])
                    found.append(
                        {"case": case, "method": name, "task": each.task.name, **dict(enumerate(regret, 1))}
                    )
        _print(pd.DataFrame([row for row in found if row["case"] == case]), case)
    pd.DataFrame(found).rename(columns=str).to_parquet(given.out)


def _only(data: TuningData, places: list[int]) -> TuningData:
    """The same tasks with some of the columns."""
    space = SearchSpace(tuple(data.search_space.parameters[place] for place in places))
    tasks = tuple(replace(task, x=task.x[:, places]) for task in data.tasks)
    return replace(data, search_space=space, tasks=tasks, blocks=())


def _with_column(data: TuningData) -> TuningData:
    """The same tasks with one more parameter, which was drawn at random and changed nothing."""
    space = SearchSpace((*data.search_space.parameters, Parameter(IRRELEVANT, 0.0, 1.0)))
    tasks = []
    for number, task in enumerate(data.tasks):
        drawn = np.random.default_rng([7, number]).uniform(size=(len(task.y), 1))
        tasks.append(replace(task, x=np.concatenate([task.x, drawn], axis=1)))
    return replace(data, search_space=space, tasks=tuple(tasks), blocks=())


def _print(records: pd.DataFrame, case: str) -> None:
    print(f"\n{case}: mean regret after {', '.join(map(str, TRIALS))}; difference to extended (95 %)")
    tables = {name: each.set_index("task")[list(TRIALS)] for name, each in records.groupby("method")}
    for name, table in tables.items():
        lead = table - tables["extended"]
        half = student.ppf(0.975, len(lead) - 1) * lead.std(ddof=1) / np.sqrt(len(lead))
        means = " / ".join(f"{value:.4f}" for value in table.mean())
        leads = ", ".join(f"{a:+.3f} +- {b:.3f}" for a, b in zip(lead.mean(), half, strict=True))
        print(f"  {name:12} {means}   {leads}", flush=True)
