"""What knowing integers and choices is worth: real trainings of six hyperparameters on eight datasets.

    python -m benchmarks.mixed_space collect runs/mixed.db --trials 100
    python -m benchmarks.mixed_space measure runs/mixed.db --out runs/mixed

`collect` tunes scikit-learn's network at random, one Optuna study for each dataset, and goes on where it was.
`measure` trains priors with each dataset left out and tunes its recorded trials: with all parameters as they
are, and as a user had to before, with integers as reals and the choices unknown.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import optuna

from pipelines.collect.datasets import load_task_dataset

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
        print(f"{name}: {len(study.get_trials(deepcopy=False))} trials, best {study.best_value:.4f}", flush=True)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    each = commands.add_parser("collect", help=collect.__doc__)
    each.add_argument("database", type=Path)
    each.add_argument("--trials", type=int, default=100)
    given = parser.parse_args()
    collect(given.database, given.trials)


if __name__ == "__main__":
    main()
