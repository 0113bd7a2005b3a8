"""How much a prior that was trained on wrong tasks hurts: `make bench-adversarial`.

For every task dataset held out, a prior is trained on the other tasks after these were spoiled: reversed,
shuffled, made constant, replaced by another function (`tests/support/spoiled_tasks.py`). The test tasks are
whole. No trial is observed twice. The tables have regret, averaged over test tasks and seeds, and the number
of trials until the average is at most that of STBO after 20, 50 and 100 trials, with a 95 % interval of the
difference to STBO's own number: task datasets are drawn with replacement, then the priors of each, for both
methods alike. A regret that is not reached counts as the trial after the last. The bar is met where
95 of 100 draws have at most one trial more than STBO. With few task datasets such intervals are too narrow
(docs/decisions/arena.md). STBO, Mix, Best-average and Rand stand in the first
table alone, since they learn no prior; H-EKL, which needs matched inputs, stands beside honest tasks.

Priors are kept in the folder `--out`: an interrupted run trains the missing ones. The settings of the methods
were chosen on PD1 mini 1.0.0 (docs/decisions/mixture.md).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperbo_flows.process.environment import prepare_jax

prepare_jax()

import numpy as np  # noqa: E402 - after the devices have been made
import rich  # noqa: E402
from rich.table import Table  # noqa: E402
from spoiled_tasks import SPOILED  # noqa: E402  # pyright: ignore[reportMissingImports] - of the tests

import pd1_builder  # noqa: E402
from hyperbo.bayesopt.offline import Run, simulate  # noqa: E402
from hyperbo.data.folds import Fold, all_but_test_task, held_out_related  # noqa: E402
from hyperbo.data.tuning_data import TuningData  # noqa: E402
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess  # noqa: E402
from hyperbo.methods import HEKL, HNLL, STBO, BestAverage, HMix, Method, Mix, PretrainedMethod, Rand  # noqa: E402
from hyperbo.pretrain import Job, NLLTraining  # noqa: E402
from hyperbo.priors.file import read_prior, save_prior, trained_prior  # noqa: E402

ARCHITECTURE, TRAINING = Architecture(), NLLTraining(2_000)
WITH_PRIOR: dict[str, PretrainedMethod] = {
    "H-NLL": HNLL(ARCHITECTURE, TRAINING),
    "H-Mix": HMix(ARCHITECTURE, TRAINING),
}
MATCHED = HEKL(ARCHITECTURE)
WITHOUT: dict[str, Method] = {
    "STBO": STBO(),
    "Mix": Mix(),
    "Best-average": BestAverage(),
    "Rand": Rand(),
}
BUDGETS, TARGETS = (1, 5, 10, 20, 50, 100), (20, 50, 100)
DRAWS = 2_000

Key = tuple[str, int]


@dataclass(frozen=True)
class Runs:
    """Regret after 1, 2, ... trials of every run, with its fold and seed: the prior that it used."""

    regret: np.ndarray
    keys: tuple[Key, ...]


def priors(
    name: str, method: PretrainedMethod, jobs: dict[Key, TuningData], out: Path
) -> dict[Key, GaussianProcess]:
    """The priors of a way to spoil tasks, by fold and seed; the missing ones are trained."""
    folders = {key: out / name.replace(" ", "_") / f"{key[0]}-{key[1]}" for key in jobs}
    missing = [key for key, folder in folders.items() if not (folder / "prior.json").exists()]
    todo = [Job(jobs[key], key[1]) for key in missing]
    settings = type(method).__name__, method.architecture, method.training
    for key, job, trained in zip(missing, todo, method.pretrain(todo) if todo else (), strict=True):
        described = {"held_out": key[0], "output_warping": "identity", "code_version": name}
        save_prior(folders[key], trained_prior(trained, job, *settings, **described))
    return {key: read_prior(folder).gp for key, folder in folders.items()}


def runs_of(method: Method, learned: dict[Key, Any], folds: Sequence[Fold]) -> Runs:
    """All runs of a method: every prior on the test tasks of its fold."""
    by_name = {fold.name: fold for fold in folds}
    planned = [(key, task) for key in learned for task in by_name[key[0]].tests]
    runs = [Run(method.policy(learned[key], task), task, key[1]) for key, task in planned]
    found = simulate(runs, BUDGETS[-1], repeats=False).require_usable()
    seen = [run.task.y[choices] for run, choices in zip(runs, found.choices, strict=True)]
    regret = [run.task.y.max() - np.maximum.accumulate(y) for run, y in zip(runs, seen, strict=True)]
    return Runs(np.array(regret), tuple(key for key, _ in planned))


def trials_to(regret: np.ndarray, target: float) -> int:
    """The first trial after which the average regret is at most the target; one more than all for none."""
    # Averages of the same numbers in another order differ by rounding.
    reached = np.flatnonzero(regret.mean(axis=0) <= target + 1e-12)
    return int(reached[0]) + 1 if len(reached) else regret.shape[1] + 1


def differences(runs: Runs, stbo: Runs, target: int) -> np.ndarray:
    """Draws of the trials to STBO's regret after `target` trials, less those of STBO itself."""
    random = np.random.default_rng(0)
    rows: dict[str, dict[int, list[int]]] = {}
    for row, (fold, seed) in enumerate(runs.keys):
        rows.setdefault(fold, {}).setdefault(seed, []).append(row)
    names, found = list(rows), []
    for _ in range(DRAWS):
        drawn = [
            row
            for fold in random.choice(names, len(names))
            for seed in random.choice(list(rows[fold]), len(rows[fold]))
            for row in rows[fold][seed]
        ]
        own, other = stbo.regret[drawn], runs.regret[drawn]
        wanted = own[:, target - 1].mean()
        found.append(trials_to(other, wanted) - trials_to(own, wanted))
    return np.array(found)


def add_row(table: Table, label: str, runs: Runs, stbo: Runs) -> None:
    """Mean regret after the budgets, and the trials to STBO's."""
    cells, met = [], []
    for target in TARGETS:
        count = trials_to(runs.regret, stbo.regret[:, target - 1].mean())
        draws = differences(runs, stbo, target)
        low, high = np.quantile(draws, (0.025, 0.975), method="inverted_cdf")
        never = count > runs.regret.shape[1]
        cells.append(f"{'never' if never else count} [{low:+d}, {high:+d}]")
        met += [str(target)] * bool(np.quantile(draws, 0.95, method="inverted_cdf") <= 1)
    regret = (f"{runs.regret[:, budget - 1].mean():.4f}" for budget in BUDGETS)
    table.add_row(label, *regret, *cells, ", ".join(met))


def main() -> None:
    """Print the table of each way to spoil tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="pd1/mini:1.0.0")
    parser.add_argument("--data", type=Path, help="folder of versions; none: PD1 mini is built for this run")
    parser.add_argument("--preparation", help="named reading of the version; none: the dataset's own")
    parser.add_argument("--out", type=Path, help="folder of the priors; none: they are not kept")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--spoiled", nargs="+", choices=SPOILED, default=list(SPOILED))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        data = _data(options, Path(temporary))
        _compare(data, options, options.out or Path(temporary) / "priors")


def _data(options: argparse.Namespace, temporary: Path) -> TuningData:
    if options.data is None:
        pd1_builder.build("pd1/mini", "1.0.0", data_dir=temporary)
    return pd1_builder.load(options.dataset, options.preparation, data_dir=options.data or temporary)


def _compare(data: TuningData, options: argparse.Namespace, out: Path) -> None:
    single = len(data.task_datasets) == 1  # then a task dataset cannot be held out
    folds = all_but_test_task(data) if single else held_out_related(data)
    keys = [(fold.name, seed) for seed in range(options.seeds) for fold in folds]
    training = {fold.name: fold.training for fold in folds}
    alone = {
        label: runs_of(method, _fitted(method, keys, training), folds) for label, method in WITHOUT.items()
    }
    stbo = alone["STBO"]
    _print("without a prior", alone, stbo)
    for name in options.spoiled:
        jobs = {
            (fold, seed): SPOILED[name](training[fold], np.random.default_rng(seed)) for fold, seed in keys
        }
        learned = {
            label: (method, priors(name, WITH_PRIOR["H-NLL"], jobs, out))
            for label, method in WITH_PRIOR.items()
        }
        if name == "honest" and all(fold.training.complete_blocks for fold in folds):
            whole = {(fold, seed): training[fold] for fold, seed in keys}
            learned["H-EKL"] = (MATCHED, priors("honest by EKL", MATCHED, whole, out))
            jobs = whole
        found = {
            label: runs_of(method, {key: method.in_use(gps[key], jobs[key]) for key in keys}, folds)
            for label, (method, gps) in learned.items()
        }
        _print(name, found, stbo)


def _print(title: str, found: dict[str, Runs], stbo: Runs) -> None:
    to = (f"to STBO's {target}" for target in TARGETS)
    table = Table("method", *map(str, BUDGETS), *to, "bar met at", title=title)
    for label, runs in found.items():
        add_row(table, label, runs, stbo)
    rich.print(table)


def _fitted(method: Method, keys: Sequence[Key], training: dict[str, TuningData]) -> dict[Key, Any]:
    jobs = [Job(training[fold], seed) for fold, seed in keys]
    return dict(zip(keys, method.fit(jobs), strict=True))


if __name__ == "__main__":
    main()
