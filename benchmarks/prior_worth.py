"""How many tasks and trials are too few for a prior to help: `make bench-prior-worth`.

    python -m benchmarks.prior_worth measure --data FOLDER --dataset pd1/mini:1.0.0 --out FOLDER
    python -m benchmarks.prior_worth tables --out FOLDER

`measure` leaves task datasets (or tasks, where they share none) out one by one, as `hyperbo prior train` does
to say what a prior is worth. Of the others it draws some tasks and of each some trials, as if a user had no
more; trains a prior as `hyperbo prior train` does; and tunes what was left out. Beside it: the tuner
without a prior, which is the mixture of uninformed processes alone, and random search. Smaller draws are
parts of larger ones. `tables` prints what `measure` left in a folder.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hyperbo_flows.process.environment import prepare_jax

prepare_jax()

import jax  # noqa: E402 - after the devices are set
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from hyperbo_flows.experiments.choose_training import choose_method, usable_tasks  # noqa: E402
from hyperbo_flows.experiments.make_prior import PREPARATION, warping_of  # noqa: E402
from hyperbo_flows.experiments.worth import LeftOut, left_out, regrets_of, tuner_rows  # noqa: E402
from hyperbo_flows.process.progress import say  # noqa: E402

from hyperbo.data.tuning_data import Task, TuningData  # noqa: E402
from hyperbo.data.warping import OutputWarping, online_map, output_warping  # noqa: E402
from hyperbo.errors import InvalidInputError, NumericalError  # noqa: E402
from hyperbo.evaluation.measures.clusters import Estimate, cluster_means, estimate  # noqa: E402
from hyperbo.evaluation.measures.worth import BUDGETS, random_regret, regret_after  # noqa: E402
from hyperbo.gp.gaussian_process import GaussianProcess  # noqa: E402
from hyperbo.gp.numerics import double_precision  # noqa: E402
from hyperbo.methods.mixture.uninformed import UNINFORMED, uninformed_processes  # noqa: E402
from hyperbo.pretrain import Job, outcomes_of  # noqa: E402
from hyperbo.tuning.proposals import PRIOR_WEIGHT  # noqa: E402

TASKS, TRIALS, SEEDS = (1, 2, 3, 5, 8), (10, 25, 50, 100), 2
PRIOR, NO_PRIOR, RANDOM = "prior", "no prior", "random search"
_COLUMNS = [f"after {budget}" for budget in BUDGETS]


def small_data(
    training: TuningData, warping: OutputWarping, tasks: int, trials: int, seed: int, fold: int
) -> TuningData:
    """Some trials of some tasks, their values mapped over these trials alone; blocks are left out."""
    random = np.random.default_rng([seed, fold])
    order = random.permutation(len(training.tasks))
    drawn = [random.permutation(len(training.tasks[place].y)) for place in order]
    return replace(
        training,
        tasks=tuple(
            _some_trials(training.tasks[place], np.sort(rows[:trials]), warping)
            for place, rows in list(zip(order, drawn, strict=True))[:tasks]
        ),
        blocks=(),
    )


def _some_trials(task: Task, rows: np.ndarray, warping: OutputWarping) -> Task:
    objective = task.objective[rows]
    feasible = np.isfinite(objective)
    y = online_map(warping.warp(np.where(feasible, objective, 1.0)), feasible)
    return Task(
        task.name, task.dataset, task.x[rows], y, objective, tuple(task.trial_ids[row] for row in rows)
    )


def usable(drawn: TuningData) -> TuningData | None:
    """Its tasks that a prior can learn from, one included; None where there is none."""
    kept = tuple(
        task for task in drawn.tasks if len(np.unique(task.objective[np.isfinite(task.objective)])) > 1
    )
    return replace(drawn, tasks=kept) if kept else None


def measure(
    data: TuningData,
    warping: OutputWarping,
    tasks: Sequence[int],
    trials: Sequence[int],
    seeds: int,
) -> pd.DataFrame:
    """Regrets of all methods, a row for each fold, test task, seed and size of what was drawn."""
    chosen = left_out(data, len(data.tasks), seed=0)
    rows = [*_without_prior(data, chosen, warping, seeds)]
    for number in tasks:
        started = time.process_time()
        found = list(_with_priors(chosen, warping, number, trials, seeds))
        rows += found
        said = np.mean([row["after 5"] for row in found])
        say(f"{number} tasks: {said:.3f} after 5, {time.process_time() - started:.0f} s of the processor")
    return pd.DataFrame(rows)


def _with_priors(
    chosen: LeftOut, warping: OutputWarping, tasks: int, trials: Sequence[int], seeds: int
) -> list[dict[str, Any]]:
    cells = []
    for place, fold in enumerate(chosen.folds):
        if len(fold.training.tasks) < tasks:
            continue
        for seed in range(seeds):
            for number in trials:
                drawn = small_data(fold.training, warping, tasks, number, seed, place)
                kept = usable(drawn)
                if kept is not None:
                    cells.append((fold, seed, number, kept))
    method = choose_method(replace(chosen.folds[0].training, tasks=cells[0][3].tasks, blocks=())).method
    outcomes = outcomes_of(lambda: method.pretrain([Job(kept, seed) for _, seed, _, kept in cells]))
    runs = [
        (cell, outcome.gp, task)
        for cell, outcome in zip(cells, outcomes, strict=True)
        if not isinstance(outcome, NumericalError)
        for task in cell[0].tests
    ]
    choices = tuner_rows([(gp, task) for _, gp, task in runs], warping, PRIOR_WEIGHT, seed=0)
    return [
        _row(PRIOR, fold.name, task, seed, tasks, number, regret_after(regrets_of(task, warping), rows))
        for ((fold, seed, number, _), _, task), rows in zip(runs, choices, strict=True)
    ]


def _without_prior(
    data: TuningData, chosen: LeftOut, warping: OutputWarping, seeds: int
) -> list[dict[str, Any]]:
    gp, rows = first_uninformed(data.search_space.dimension), []
    pairs = [(fold, task) for fold in chosen.folds for task in fold.tests]
    for seed in range(seeds):
        choices = tuner_rows([(gp, task) for _, task in pairs], warping, 1.0 / (UNINFORMED + 1), seed)
        for (fold, task), chosen_rows in zip(pairs, choices, strict=True):
            regrets = regrets_of(task, warping)
            rows.append(_row(NO_PRIOR, fold.name, task, seed, 0, 0, regret_after(regrets, chosen_rows)))
            rows.append(_row(RANDOM, fold.name, task, seed, 0, 0, random_regret(regrets)))
    return rows


@double_precision
def first_uninformed(dimension: int) -> GaussianProcess:
    """One of the uninformed processes, in the place of a prior: the mixture then has nothing else."""
    return jax.tree.map(lambda leaf: leaf[0], uninformed_processes(UNINFORMED, dimension, 0.0, 1.0))


def _row(
    method: str, fold: str, task: Task, seed: int, tasks: int, trials: int, regret: np.ndarray
) -> dict[str, Any]:
    at = {"method": method, "fold": fold, "task": task.name, "seed": seed, "tasks": tasks, "trials": trials}
    return at | dict(zip(_COLUMNS, regret.tolist(), strict=True))


def tables(found: pd.DataFrame) -> list[str]:
    """The regrets by size of what was drawn, as lines of a Markdown table."""
    found = found.assign(mean=found[_COLUMNS].mean(axis=1))
    others = {
        method: found[found["method"] == method].groupby("task")["mean"].mean().to_dict()
        for method in (NO_PRIOR, RANDOM)
    }
    lines = [
        f"| tasks | trials of each | {' | '.join(_COLUMNS)} | lower than no prior by | "
        "draws ahead | lower than random search by | draws ahead |",
        f"|---|---|{'---|' * (len(_COLUMNS) + 4)}",
    ]
    for method in (RANDOM, NO_PRIOR):
        rows = found[found["method"] == method]
        lines.append(f"| {method} | | {' | '.join(_estimates(rows))} | | | | |")
    for label, rows in found[found["method"] == PRIOR].groupby(["tasks", "trials"]):
        tasks, trials = label if isinstance(label, tuple) else (label, "")
        compared = []
        for of_other in others.values():
            lower = rows["task"].map(of_other) - rows["mean"]
            by_draw = lower.groupby([rows["fold"], rows["seed"]]).mean()
            gained = estimate(cluster_means(lower, rows["fold"]))
            compared += [_shown(gained), f"{int((by_draw > 0).sum())} of {len(by_draw)}"]
        lines.append(f"| {tasks} | {trials} | {' | '.join([*_estimates(rows), *compared])} |")
    return lines


def _estimates(rows: pd.DataFrame) -> list[str]:
    return [_shown(estimate(cluster_means(rows[name], rows["fold"]))) for name in _COLUMNS]


def _shown(found: Estimate) -> str:
    return f"{found.mean:.3f} [{found.lower:.3f}, {found.upper:.3f}]"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.prior_worth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    measured = commands.add_parser("measure", help="train priors on few tasks and trials, and tune with them")
    measured.add_argument("--data", type=Path, required=True, help="the data folder")
    measured.add_argument("--dataset", required=True, help="such as pd1/mini:1.0.0")
    measured.add_argument("--tasks", type=int, nargs="+", default=TASKS)
    measured.add_argument("--trials", type=int, nargs="+", default=TRIALS)
    measured.add_argument("--seeds", type=int, default=SEEDS)
    printed = commands.add_parser("tables", help="what `measure` left in a folder")
    for command in (measured, printed):
        command.add_argument("--out", type=Path, required=True, help="folder of the results")
    options = parser.parse_args()
    if options.command == "measure":
        data, _ = usable_tasks(load_tasks(options.dataset, options.data))
        warping = output_warping(warping_of(options.dataset, options.data))
        found = measure(data, warping, options.tasks, options.trials, options.seeds)
        options.out.mkdir(parents=True, exist_ok=True)
        found.to_csv(options.out / f"{options.dataset.replace('/', '-').replace(':', '-')}.csv", index=False)
    paths = sorted(options.out.glob("*.csv"))
    if not paths:
        raise InvalidInputError(f"no result in {options.out}", fix="run `measure` first")
    for path in paths:
        print("\n".join([path.stem, "", *tables(pd.read_csv(path)), ""]))


def load_tasks(dataset: str, data_dir: Path) -> TuningData:
    """A version as `hyperbo prior train` reads it."""
    from pd1_builder import load

    return load(dataset, PREPARATION, data_dir=data_dir)


if __name__ == "__main__":
    main()
