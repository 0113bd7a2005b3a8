"""The tables of `benchmarks.tuning` in Markdown, made from the journals of a folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from hyperbo_flows.process.progress import say
from jaxtyping import Float64

from benchmarks.tuning.peers import METHODS, WITH_PRIOR
from hyperbo.bayesopt.journal import TRIALS_NAME, OnlineTrial, RunName
from hyperbo.bayesopt.online import online_records
from hyperbo.data.warping import output_warping
from hyperbo.evaluation.figures.online import best_by_seed
from hyperbo.evaluation.measures.spread import percentile_band

BUDGETS = (5, 10, 20, 50)
_ALL_BUDGETS = (1, 3, *BUDGETS)

# By method and task: the best objective so far of each seed, after each trial.
Best = dict[str, dict[str, Float64[np.ndarray, "seeds trials"]]]


def print_tables(
    folder: Path, methods: Sequence[str], seeds: int, trials: int, retrained: Path | None
) -> None:
    """Print the results in the journals of a folder; comparisons are over the tasks that all have finished.

    Args:
      folder: holds a folder for each method.
      methods: the methods; those without a journal are left out.
      seeds: number of runs of each method and task.
      trials: number of trials of each run.
      retrained: records of `hyperbo online`, whose priors are re-trained before each proposal.
    """
    records = records_of(folder, methods, seeds, trials)
    best = best_of(records, seeds, trials)
    tasks = sorted(set.intersection(*(set(of_method) for of_method in best.values()))) if best else []
    if not tasks:
        say(f"{folder}: there is no task of which all methods have finished {seeds} runs of {trials} trials")
        return
    say(f"{seeds} seeds: median [20th, 80th percentile] of the best so far\n")
    budgets = [budget for budget in BUDGETS if budget <= trials]
    for budget in budgets:
        _print_best(best, tasks, budget)
    _print_ranks(best, tasks, [budget for budget in _ALL_BUDGETS if budget <= trials])
    if "Rand" in best:
        _print_speed_up(best, tasks, trials)
    _print_infeasible(records, tasks)
    if retrained is not None and retrained.is_file():
        _print_retrained(best, tasks, trials, pd.read_parquet(retrained))


def records_of(folder: Path, methods: Sequence[str], seeds: int, trials: int) -> pd.DataFrame:
    """Records of the first trials of all runs with the first seeds (`online_records`)."""
    found: list[OnlineTrial] = []
    for method in methods:
        path = folder / method / TRIALS_NAME
        lines = path.read_text().splitlines(keepends=True) if path.is_file() else []
        # Another process may be writing the last line.
        found += [_trial(line) for line in lines if line.endswith("\n")]
    warpings = {trial.run.task: output_warping("negative_log") for trial in found}
    records = online_records(found, warpings)
    return records[(records["seed"] < seeds) & (records["iteration"] <= trials)]


def _trial(line: str) -> OnlineTrial:
    fields = json.loads(line)
    return OnlineTrial(**fields | {"run": RunName(**fields["run"])})


def best_of(records: pd.DataFrame, seeds: int, trials: int) -> Best:
    """The best objective so far of all runs, on the tasks that a method has finished."""
    best: Best = {}
    for (method, task), chosen in records.groupby(["method", "task"]):
        if len(chosen) == seeds * trials:
            best.setdefault(str(method), {})[str(task)] = best_by_seed(
                records, str(method), str(task), trials
            )
    return {method: best[method] for method in METHODS if method in best}


def _print_best(best: Best, tasks: Sequence[str], budget: int) -> None:
    """Print all finished tasks; ranks are over the tasks that all methods have finished."""
    rows = []
    for task in sorted({task for of_method in best.values() for task in of_method}):
        row = [task.rpartition(",")[2]]
        for of_method in best.values():
            if task in of_method:
                band = percentile_band(of_method[task][:, budget - 1], axis=0)
                row.append(f"{band.median:.3f} [{band.lower:.3f}, {band.upper:.3f}]")
            else:
                row.append("")
        rows.append(row)
    ranks = pd.DataFrame(_medians(best, tasks, budget)).rank(axis=1).mean(axis=0)
    rows.append([f"*mean rank, {len(tasks)} tasks*", *(f"{rank:.2f}" for rank in ranks)])
    _print_markdown([f"after {budget} trials", *best], rows)


def _print_ranks(best: Best, tasks: Sequence[str], budgets: Sequence[int]) -> None:
    columns = []
    for budget in budgets:
        columns.append(pd.DataFrame(_medians(best, tasks, budget)).rank(axis=1).mean(axis=0))
    singles = []
    for budget in budgets:
        of_runs = [[of_method[task][:, budget - 1] for task in tasks] for of_method in best.values()]
        singles.append(pd.DataFrame(np.array(of_runs).reshape(len(best), -1)).rank(axis=0).mean(axis=1))
    for title, ranks in (
        ("mean rank of medians after", columns),
        ("mean rank of single runs after", singles),
    ):
        rows = [[method, *(f"{column[i]:.2f}" for column in ranks)] for i, method in enumerate(best)]
        _print_markdown([title, *map(str, budgets)], rows)


def _print_speed_up(best: Best, tasks: Sequence[str], trials: int) -> None:
    """Print the number of trials after which a method's median reaches the final one of random search."""
    rows = []
    for task in tasks:
        target = np.median(best["Rand"][task][:, trials - 1])
        row = [task.rpartition(",")[2]]
        for of_method in best.values():
            reached = np.median(of_method[task][:, :trials], axis=0) <= target
            row.append(str(int(np.argmax(reached)) + 1) if reached.any() else f"> {trials}")
        rows.append(row)
    _print_markdown([f"trials to Rand's median after {trials}", *best], rows)


def _print_infeasible(records: pd.DataFrame, tasks: Sequence[str]) -> None:
    counted = records[records["task"].isin(tasks)].groupby("method")["infeasible"].agg(["sum", "size"])
    say(
        ", ".join(f"{method} {row['sum']} of {row['size']}" for method, row in counted.iterrows())
        + " infeasible\n"
    )


def _print_retrained(best: Best, tasks: Sequence[str], trials: int, records: pd.DataFrame) -> None:
    """Print results with a frozen prior beside those with a prior re-trained before each proposal."""
    budgets = [budget for budget in _ALL_BUDGETS if budget <= trials]
    summary = []
    for method in (each for each in WITH_PRIOR if each in best):
        frozen = np.stack([best[method][task] for task in tasks])
        again = np.stack([best_by_seed(records, method, task, trials)[: frozen.shape[1]] for task in tasks])
        medians = np.median(frozen, axis=1), np.median(again, axis=1)
        rows = [
            [
                task,
                *(f"{medians[0][i, budget - 1]:.3f} / {medians[1][i, budget - 1]:.3f}" for budget in budgets),
            ]
            for i, task in enumerate(tasks)
        ]
        _print_markdown([f"{method}, frozen / re-trained, after", *map(str, budgets)], rows)
        for budget in budgets:
            now = [values[..., budget - 1] for values in (*medians, frozen, again)]
            ratio = np.exp(np.mean(np.log(now[0] / now[1])))
            summary.append(
                [method, str(budget), _counts(now[0], now[1]), _counts(now[2], now[3]), f"{ratio:.3f}"]
            )
    head = ["frozen against re-trained", "trials", "tasks: lower / same / higher", "runs", "ratio of medians"]
    _print_markdown(head, summary)


def _counts(first: Float64[np.ndarray, "*n"], second: Float64[np.ndarray, "*n"]) -> str:
    return f"{np.sum(first < second)} / {np.sum(first == second)} / {np.sum(first > second)}"


def _medians(best: Best, tasks: Sequence[str], budget: int) -> Float64[np.ndarray, "tasks methods"]:
    return np.array(
        [[np.median(of_method[task][:, budget - 1]) for of_method in best.values()] for task in tasks]
    )


def _print_markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    say("| " + " | ".join(head) + " |")
    say("|" + "---|" * len(head))
    for row in rows:
        say("| " + " | ".join(row) + " |")
    say("")
