"""How much a prior that was trained on wrong tasks hurts: `make bench-adversarial`.

For every task dataset held out, a prior is trained on the other tasks after these were spoiled: reversed,
shuffled, made constant, replaced by another function (`tests/support/spoiled_tasks.py`). The test tasks are
whole. No trial is observed twice. The tables have regret, averaged over test tasks and seeds, and the number
of trials until the average is at most that of STBO after 20, 50 and 100 trials. STBO, Mix and Rand do not
learn from the training tasks and stand in the first table alone.

Priors are kept in the folder `--out`: an interrupted run trains the missing ones. The settings of the methods
were chosen on PD1 mini 1.0.0 (docs/decisions/mixture.md).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flows.process.environment import prepare_jax

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
from hyperbo.methods import HNLL, STBO, HMix, Method, Mix, PretrainedMethod, Rand  # noqa: E402
from hyperbo.pretrain import Job, NLLTraining, pretrain_nll  # noqa: E402
from hyperbo.priors.file import read_prior, save_prior, trained_prior  # noqa: E402

ARCHITECTURE, TRAINING = Architecture(), NLLTraining(3_000, patience=None)
WITH_PRIOR: dict[str, PretrainedMethod] = {
    "H-NLL": HNLL(ARCHITECTURE, TRAINING),
    "H-Mix": HMix(ARCHITECTURE, TRAINING),
}
WITHOUT: dict[str, Method] = {"Mix": Mix(), "STBO": STBO(), "Rand": Rand()}
BUDGETS, TARGETS = (1, 10, 20, 50, 100), (20, 50, 100)
MISSED = 1_000_000


def priors(
    name: str, jobs: dict[tuple[str, int], TuningData], out: Path
) -> dict[tuple[str, int], GaussianProcess]:
    """The priors of a way to spoil tasks, by fold and seed; the missing ones are trained."""
    folders = {key: out / name.replace(" ", "_") / f"{key[0]}-{key[1]}" for key in jobs}
    missing = [key for key, folder in folders.items() if not (folder / "prior.json").exists()]
    todo = [Job(jobs[key], key[1]) for key in missing]
    for key, job, trained in zip(
        missing, todo, pretrain_nll(todo, ARCHITECTURE, TRAINING) if todo else (), strict=True
    ):
        described = {"held_out": key[0], "output_warping": "identity", "code_version": name}
        save_prior(folders[key], trained_prior(trained, job, "H-NLL", ARCHITECTURE, TRAINING, **described))
    return {key: read_prior(folder).gp for key, folder in folders.items()}


def regrets(method: Method, learned: dict[tuple[str, int], Any], folds: Sequence[Fold]) -> np.ndarray:
    """Regret of every run after 1, 2, ... trials."""
    by_name = {fold.name: fold for fold in folds}
    runs = [
        Run(method.policy(fitted, task), task, seed)
        for (fold, seed), fitted in learned.items()
        for task in by_name[fold].tests
    ]
    found = simulate(runs, BUDGETS[-1], repeats=False).require_usable()
    seen = [run.task.y[choices] for run, choices in zip(runs, found.choices, strict=True)]
    return np.array([run.task.y.max() - np.maximum.accumulate(y) for run, y in zip(runs, seen, strict=True)])


def trials_to(regret: np.ndarray, target: float) -> int:
    """The first trial after which the average regret is at most the target."""
    reached = np.flatnonzero(regret.mean(axis=0) <= target)
    return int(reached[0]) + 1 if len(reached) else MISSED


def add_row(table: Table, label: str, regret: np.ndarray, stbo: np.ndarray) -> None:
    """Mean regret after the budgets, and the trials to STBO's."""
    counts = [trials_to(regret, stbo[:, target - 1].mean()) for target in TARGETS]
    table.add_row(
        label,
        *(f"{regret[:, budget - 1].mean():.4f}" for budget in BUDGETS),
        *("never" if count == MISSED else str(count) for count in counts),
    )


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
    columns = ("method", *map(str, BUDGETS), *(f"to STBO's {target}" for target in TARGETS))
    alone = {
        label: regrets(method, _fitted(method, keys, training), folds) for label, method in WITHOUT.items()
    }
    table = Table(*columns, title="without a prior")
    for label, regret in alone.items():
        add_row(table, label, regret, alone["STBO"])
    rich.print(table)
    for name in options.spoiled:
        jobs = {
            (fold, seed): SPOILED[name](training[fold], np.random.default_rng(seed)) for fold, seed in keys
        }
        gps = priors(name, jobs, out)
        table = Table(*columns, title=name)
        for label, method in WITH_PRIOR.items():
            learned = {key: method.in_use(gps[key], jobs[key]) for key in keys}
            add_row(table, label, regrets(method, learned, folds), alone["STBO"])
        rich.print(table)


def _fitted(
    method: Method, keys: Sequence[tuple[str, int]], training: dict[str, TuningData]
) -> dict[tuple[str, int], Any]:
    jobs = [Job(training[fold], seed) for fold, seed in keys]
    return dict(zip(keys, method.fit(jobs), strict=True))


if __name__ == "__main__":
    main()
