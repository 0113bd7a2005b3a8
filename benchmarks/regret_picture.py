"""The picture of the README: what a prior does for regret.

    hyperbo evaluate --method H-NLL --method Best-average --method STBO --method Rand \
        --dataset pd1/mini:1.0.0 --iterations 50 --data FOLDER --runs RUNS
    python -m benchmarks.regret_picture RUNS/evaluation/ID --data FOLDER --out docs/images/regret.svg

Takes the recorded runs of an evaluation and adds Optuna's TPE, on the same recorded trials with the same
seeds, each trial tried once. A regret of 0.1 is an error rate 10 % above that of the best recorded trial.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from hyperbo_flows.experiments import evaluation_folder
from hyperbo_flows.experiments.make_prior import warping_of
from jaxtyping import Float64
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from optuna.samplers import TPESampler

import pd1_builder
from hyperbo.data.tuning_data import Task
from hyperbo.data.warping import output_warping
from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.figures.style import canvas, svg
from hyperbo.evaluation.measures.regret import simple_regrets
from hyperbo.evaluation.measures.spread import percentile_band
from hyperbo.evaluation.records.metadata import EvaluationMetadata, method_of
from hyperbo.tuning.optuna.recorded import sampler_rows

TPE = "TPE"
# What each method is to a reader who knows none of them, with its colour.
LINES = {
    "H-NLL": ("with a prior from other tasks", "#0072b2"),
    "Best-average": ("order of the other tasks' average", "#d55e00"),
    "STBO": ("Gaussian process, no prior", "#009e73"),
    TPE: ("Optuna's TPE", "#b05a8f"),
    "Rand": ("random search", "#80858c"),
}
_LEVELS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
# Decades between the names of lines.
_APART = 0.13


def tpe_regrets(
    folder: Path, data_dir: Path | None
) -> tuple[EvaluationMetadata, dict[str, Float64[np.ndarray, "tasks seeds iterations"]]]:
    """The regrets of an evaluation by method, and beside them those of TPE on the same recorded trials.

    Raises:
      InvalidInputError: the evaluation has tried a trial that TPE cannot choose, or lacks runs.
    """
    found = evaluation_folder.read(folder)
    metadata, records = found.metadata, found.records
    array = simple_regrets(records, metadata)
    values = array.require_complete()
    regrets = {method_of(metadata, label): values[row] for row, label in enumerate(array.methods)}
    data = pd1_builder.load(metadata["dataset"], metadata["preparation"], data_dir=data_dir)
    warping = output_warping(warping_of(metadata["dataset"], data_dir))
    of_task = {task.name: _with_value(task) for task in data.tasks}
    curves = []
    for name in metadata["tasks"]:
        task = of_task[name]
        _check_candidates(task, records[records["task"] == name])
        rows = np.stack(
            [
                sampler_rows(data.search_space, task, warping, metadata["iterations"], TPESampler(seed=seed))
                for seed in metadata["seeds"]
            ]
        )
        curves.append(task.y.max() - np.maximum.accumulate(task.y[rows], axis=1))
        print(f"TPE on {name}: mean regret {curves[-1][:, -1].mean():.4f}", flush=True)
    return metadata, regrets | {TPE: np.stack(curves)}


def _with_value(task: Task) -> Task:
    """The trials of a task that have a value: the candidates of an evaluation."""
    kept = np.flatnonzero(np.isfinite(task.objective))
    ids = tuple(task.trial_ids[row] for row in kept)
    return Task(task.name, task.dataset, task.x[kept], task.y[kept], task.objective[kept], ids)


def _check_candidates(task: Task, records: pd.DataFrame) -> None:
    if set(records["trial_id"]) - set(task.trial_ids) or not np.isclose(records["y_max"], task.y.max()).all():
        raise InvalidInputError("the evaluation has other candidates", where=task.name)


def picture(
    metadata: EvaluationMetadata, regrets: dict[str, Float64[np.ndarray, "tasks seeds iterations"]]
) -> str:
    """Draw the mean regret over tasks by trial: median over seeds, and 20th to 80th percentile."""
    shown = [method for method in LINES if method in regrets]
    trials = np.arange(1, metadata["iterations"] + 1)
    bands = {method: percentile_band(regrets[method].mean(axis=0), axis=0) for method in shown}
    with canvas(680, 350) as figure:
        axes = figure.add_subplot()
        for method in shown:
            band, colour = bands[method], LINES[method][1]
            axes.fill_between(trials, band.lower, band.upper, color=colour, alpha=0.16, linewidth=0)
            axes.plot(trials, band.median, color=colour, linewidth=3.0 if method == "H-NLL" else 1.8)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(FixedLocator(_LEVELS))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda level, _: f"{level:g}"))
        axes.set_xlim(1, trials[-1])
        axes.set_xticks([1, *range(10, trials[-1] + 1, 10)])
        axes.set_xlabel("trials")
        axes.set_ylabel("mean regret (0.1: error 10 % above the best)")
        axes.patch.set_visible(False)
        ends = sorted(shown, key=lambda method: bands[method].median[-1])
        places = _spread_out([float(np.log10(bands[method].median[-1])) for method in ends])
        for method, place in zip(ends, places, strict=True):
            name, colour = LINES[method]
            axes.annotate(
                name,
                (trials[-1], 10.0**place),
                (6, 0),
                textcoords="offset points",
                va="center",
                color=colour,
                annotation_clip=False,
            )
        description = (
            f"Mean regret over {len(metadata['tasks'])} tasks of {metadata['dataset']} by number of trials, "
            f"median and 20th to 80th percentile over {len(metadata['seeds'])} seeds: "
            + ", ".join(f"{LINES[each][0]} ends at {bands[each].median[-1]:.2g}" for each in ends)
        )
        drawn = svg(figure, "regret", description)
    # The picture of a page that may be dark has a ground of its own.
    head, _, body = drawn.partition(">")
    return f'{head}>\n<rect width="100%" height="100%" fill="#ffffff"/>{body}\n'


def _spread_out(places: Sequence[float]) -> list[float]:
    """Ascending places, moved up so far that names do not overlap."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + _APART) if moved else place)
    return moved


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the picture of an evaluation."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("evaluation", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/images/regret.svg"))
    chosen = parser.parse_args(arguments)
    metadata, regrets = tpe_regrets(chosen.evaluation, chosen.data)
    for method, values in regrets.items():
        levels = np.median(values.mean(axis=0), axis=0)
        print(
            f"{method}: " + ", ".join(f"{levels[t - 1]:.4f} after {t}" for t in (1, 5, 10, 20, len(levels)))
        )
    chosen.out.write_text(picture(metadata, regrets), encoding="utf-8")
    print(f"{chosen.out}: {chosen.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
