"""What knowing integers and choices is worth: real trainings of six hyperparameters on eight datasets.

    python -m benchmarks.mixed_space collect runs/mixed.db --trials 100
    python -m benchmarks.mixed_space measure runs/mixed.db --data runs/data

`collect` tunes scikit-learn's network at random, one Optuna study for each dataset, and goes on where it was.
`measure` trains priors with each dataset left out, as `hyperbo prior train` does, and tunes its recorded
trials: with all parameters as they are, and as it had to be done before, with integers as reals and choices
unknown. Both choose among the same trials. Docs: docs/decisions/mixed-spaces.md.
"""

from __future__ import annotations

import argparse
import os
import warnings
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import optuna
import pandas as pd
from hyperbo_flows.experiments.choose_training import choose_method
from hyperbo_flows.experiments.worth import left_out, regrets_of, tuner_rows
from hyperbo_pipelines.collect.datasets import load_task_dataset

import pd1_builder
from benchmarks.universal.histories import collected
from hyperbo.bayesopt.offline import Run, simulate
from hyperbo.data import Parameter, SearchSpace, TuningData, output_warping
from hyperbo.evaluation.measures.clusters import estimate
from hyperbo.evaluation.measures.worth import BUDGETS, random_regret, regret_after
from hyperbo.gp.numerics import double_precision
from hyperbo.methods.universal.columns import columns_of
from hyperbo.methods.universal.fit import fit_hyperprior
from hyperbo.methods.universal.hyperprior import HyperPrior
from hyperbo.methods.universal.policy import UniversalPolicy
from hyperbo.pretrain import Job
from hyperbo.tuning.proposals import PRIOR_WEIGHT
from hyperbo.tuning.recorded import recorded_task
from pd1_builder.release.histories import add_sources

# Of the prior in the mixture before any trial: as in the tuner, and next to nothing.
WEIGHTS = {"prior": PRIOR_WEIGHT, "no prior": 1e-6}

DATASETS = (
    *("digits", "digits_4x4", "sample_patches", "textures"),
    *("breast_cancer", "diabetes", "image_segments", "phishing"),
)
EPOCHS = 12


def collect(database: Path, trials: int) -> None:
    """Run the trials that the database lacks."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for number, name in enumerate(DATASETS):
        study = optuna.create_study(
            storage=f"sqlite:///{database}",
            study_name=name,
            sampler=optuna.samplers.RandomSampler(seed=number),
            direction="minimize",
            load_if_exists=True,
        )
        ended = sum(trial.state.is_finished() for trial in study.get_trials(deepcopy=False))
        # Each trial has its own seed: a collection that was stopped goes on with other draws.
        study.sampler = optuna.samplers.RandomSampler(seed=1000 * number + ended)
        problem = load_task_dataset(name)
        study.optimize(lambda trial, problem=problem: train(trial, problem), n_trials=max(trials - ended, 0))
        print(
            f"{name}: {len(study.get_trials(deepcopy=False))} trials, best {study.best_value:.4f}", flush=True
        )


def train(trial, problem) -> float:
    """Train a network, and return its validation error; NaN where it diverged."""
    from sklearn.neural_network import MLPClassifier

    rate = trial.suggest_float("learning_rate", 1e-5, 1.0, log=True)
    l2 = trial.suggest_float("l2", 1e-6, 10.0, log=True)
    depth = trial.suggest_int("depth", 1, 4)
    width = trial.suggest_int("width", 4, 256, log=True)
    activation = trial.suggest_categorical("activation", ["relu", "tanh", "logistic"])
    optimizer = trial.suggest_categorical("optimizer", ["adam", "sgd"])
    network = MLPClassifier(
        (width,) * depth,
        activation=activation,
        solver=optimizer,
        alpha=l2,
        learning_rate_init=rate,
        batch_size=32,
        max_iter=EPOCHS,
        random_state=0,
    )
    inputs = [split.inputs.reshape(len(split), -1) for split in (problem.train, problem.valid)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            network.fit(inputs[0], problem.train.labels)
        except ValueError:  # What scikit-learn raises where a weight is not finite.
            return float("nan")
        return 1.0 - network.score(inputs[1], problem.valid.labels)


def measure(database: Path, data_dir: Path, seeds: int) -> None:
    """Print regrets after each budget, with 95 % intervals over datasets."""
    add_sources("mixed", [f"sqlite:///{database.resolve()}"], data_dir=data_dir)
    data = pd1_builder.load("trials/mixed", "online", data_dir=data_dir, skip_empty_tasks=True)
    learned = fit_hyperprior({name: each for name, each in collected().items() if name != "mlp"})
    regrets = {
        name: _regrets(each, seeds) | {"universal": _universal(each, learned)}
        for name, each in (("as they are", data), ("choices unknown", _numbers_only(data)))
    }
    methods = (*WEIGHTS, "universal")
    rows = [
        [f"{space}, {weight}", *map(_shown, by_weight[weight].T)]
        for space, by_weight in regrets.items()
        for weight in methods
    ]
    for weight in methods:
        gained = regrets["choices unknown"][weight] - regrets["as they are"][weight]
        rows.append([f"knowing is worth, {weight}", *map(_shown, gained.T)])
    tests = [random_regret(regrets_of(task, WARPING)) for task in data.tasks]
    rows.append(["random search", *map(_shown, np.stack(tests).T)])
    print(pd.DataFrame(rows, columns=["after", *map(str, BUDGETS)]).to_string(index=False))


WARPING = output_warping("negative")


def _regrets(data: TuningData, seeds: int) -> dict[str, np.ndarray]:
    """By weight of the prior: regrets of each dataset after each budget, the mean over seeds."""
    folds = left_out(data, len(data.tasks), seed=0).folds
    found: dict[str, list[np.ndarray]] = {weight: [] for weight in WEIGHTS}
    for seed in range(seeds):
        method = choose_method(folds[0].training).method
        priors = [trained.gp for trained in method.pretrain([Job(fold.training, seed) for fold in folds])]
        runs = [(gp, task) for gp, fold in zip(priors, folds, strict=True) for task in fold.tests]
        for weight, value in WEIGHTS.items():
            rows = tuner_rows(runs, WARPING, value, seed)
            tasks = [task for _, task in runs]
            found[weight].append(
                np.stack([regret_after(regrets_of(t, WARPING), r) for t, r in zip(tasks, rows, strict=True)])
            )
    return {weight: np.mean(each, axis=0) for weight, each in found.items()}


@double_precision
def _universal(data: TuningData, learned: HyperPrior) -> np.ndarray:
    """Regrets by a universal prior that has seen other models than networks; nothing is drawn."""
    policy = UniversalPolicy(learned.components(columns_of(data.search_space)))
    runs = [Run(policy, recorded_task(task, WARPING)[0], 0) for task in data.tasks]
    choices = simulate(runs, max(BUDGETS)).require_usable().choices
    return np.stack(
        [
            regret_after(regrets_of(task, WARPING), rows)
            for task, rows in zip(data.tasks, choices, strict=True)
        ]
    )


def _numbers_only(data: TuningData) -> TuningData:
    """The same trials in a space of their numbers, all taken for reals."""
    space = data.search_space
    numbers = [each for each in space.parameters if isinstance(each, Parameter) and each.condition is None]
    columns = [space.columns.index(each.name) for each in numbers]
    return replace(
        data,
        search_space=SearchSpace(tuple(replace(each, integer=False) for each in numbers)),
        tasks=tuple(replace(task, x=task.x[:, columns]) for task in data.tasks),
        blocks=(),
    )


def _shown(values: np.ndarray) -> str:
    found = estimate(values)
    return f"{found.mean:.3f} [{found.lower:.3f}, {found.upper:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    each = commands.add_parser("collect", help=collect.__doc__)
    each.add_argument("database", type=Path)
    each.add_argument("--trials", type=int, default=100)
    each = commands.add_parser("measure", help=measure.__doc__)
    each.add_argument("database", type=Path)
    each.add_argument("--data", type=Path, required=True)
    each.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    if given.command == "collect":
        collect(given.database, given.trials)
    else:
        measure(given.database, given.data, given.seeds)


if __name__ == "__main__":
    main()
