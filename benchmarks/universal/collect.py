"""Collect small tuning histories with scikit-learn: other models, other spaces, real trainings.

    python -m benchmarks.universal.collect OUT.json.gz [FAMILY ...]

A family is a model with its space; its tasks are the data sets that scikit-learn brings with it, and variants
of them. Row 0 of a task is scikit-learn's default configuration; the others are drawn at random from the
space. The objective is the error on the half of the data that was not trained on, 1 where training diverged.
Equal seeds give equal histories on one version of scikit-learn.
"""

from __future__ import annotations

import gzip
import json
import platform
import sys
import warnings
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC

POINTS = 128
Values = Mapping[str, Any]


def real(name: str, lower: float, upper: float, scaling: str = "linear", **more: Any) -> dict[str, Any]:
    """A number of a space, as a space file has it."""
    return {"name": name, "type": "real", "lower": lower, "upper": upper, "scaling": scaling, **more}


def integer(name: str, lower: int, upper: int, scaling: str = "linear", **more: Any) -> dict[str, Any]:
    """A whole number of a space."""
    return {**real(name, lower, upper, scaling, **more), "type": "integer"}


def choice(name: str, *levels: str, **more: Any) -> dict[str, Any]:
    """A choice without an order."""
    return {"name": name, "type": "choice", "levels": list(levels), **more}


def boolean(name: str, **more: Any) -> dict[str, Any]:
    """True or False."""
    return {"name": name, "type": "boolean", **more}


def where(parameter: str, *values: Any) -> dict[str, Any]:
    """The condition that a parameter of another one is active."""
    return {"condition": {"parameter": parameter, "values": list(values)}}


SPACES: dict[str, list[dict[str, Any]]] = {
    "hgb": [
        real("learning_rate", 0.005, 1.0, "log"),
        integer("max_iter", 4, 64, "log"),
        integer("max_leaf_nodes", 2, 64, "log"),
        integer("min_samples_leaf", 1, 64, "log"),
        real("l2_regularization", 1e-6, 100.0, "log"),
        real("max_features", 0.1, 1.0),
    ],
    "forest": [
        integer("n_estimators", 2, 64, "log"),
        integer("max_depth", 1, 16),
        integer("min_samples_split", 2, 32, "log"),
        integer("min_samples_leaf", 1, 32, "log"),
        real("max_features", 0.05, 1.0),
        choice("criterion", "gini", "entropy"),
        boolean("bootstrap"),
        real("max_samples", 0.2, 1.0, **where("bootstrap", True)),
    ],
    "svc": [
        real("C", 1e-3, 1e3, "log"),
        choice("kernel", "linear", "rbf", "poly", "sigmoid"),
        real("gamma", 1e-5, 10.0, "log", **where("kernel", "rbf", "poly", "sigmoid")),
        integer("degree", 2, 5, **where("kernel", "poly")),
        real("coef0", 0.0, 1.0, **where("kernel", "poly", "sigmoid")),
        boolean("shrinking"),
    ],
    "mlp": [
        real("learning_rate_init", 1e-5, 1.0, "log"),
        real("alpha", 1e-7, 10.0, "log"),
        integer("width", 4, 128, "log"),
        integer("depth", 1, 3),
        choice("activation", "relu", "tanh", "logistic"),
        integer("batch_size", 8, 128, "log"),
        choice("solver", "adam", "sgd"),
        real("momentum", 0.0, 0.99, "log1m", **where("solver", "sgd")),
    ],
    "sgd": [
        choice("loss", "hinge", "log_loss", "modified_huber"),
        choice("penalty", "l2", "l1", "elasticnet"),
        real("alpha", 1e-7, 1.0, "log"),
        real("l1_ratio", 0.0, 1.0, **where("penalty", "elasticnet")),
        choice("learning_rate", "constant", "optimal", "invscaling", "adaptive"),
        real("eta0", 1e-4, 10.0, "log", **where("learning_rate", "constant", "invscaling", "adaptive")),
        real("power_t", 0.1, 1.0, **where("learning_rate", "invscaling")),
        boolean("average"),
    ],
    "knn": [
        integer("n_neighbors", 1, 64, "log"),
        choice("weights", "uniform", "distance"),
        choice("metric", "minkowski", "cosine", "canberra"),
        real("p", 1.0, 4.0, **where("metric", "minkowski")),
        choice("scaler", "none", "standard", "minmax"),
        boolean("reduce"),
        real("components", 0.05, 1.0, "log", **where("reduce", True)),
    ],
}
# Those of scikit-learn; a value outside of the space is the bound that is nearest.
DEFAULTS: dict[str, dict[str, Any]] = {
    "hgb": {
        "learning_rate": 0.1,
        "max_iter": 64,
        "max_leaf_nodes": 31,
        "min_samples_leaf": 20,
        "l2_regularization": 1e-6,
        "max_features": 1.0,
    },
    "forest": {
        "n_estimators": 64,
        "max_depth": 16,
        "min_samples_split": 2,
        "min_samples_leaf": 1,
        "max_features": 0.2,
        "criterion": "gini",
        "bootstrap": True,
        "max_samples": 1.0,
    },
    "svc": {"C": 1.0, "kernel": "rbf", "gamma": 0.03, "shrinking": True},
    "mlp": {
        "learning_rate_init": 1e-3,
        "alpha": 1e-4,
        "width": 100,
        "depth": 1,
        "activation": "relu",
        "batch_size": 128,
        "solver": "adam",
    },
    "sgd": {
        "loss": "hinge",
        "penalty": "l2",
        "alpha": 1e-4,
        "learning_rate": "optimal",
        "average": False,
    },
    "knn": {
        "n_neighbors": 5,
        "weights": "uniform",
        "metric": "minkowski",
        "p": 2.0,
        "scaler": "none",
        "reduce": False,
    },
}


def drawn(space: list[dict[str, Any]], random: np.random.Generator) -> dict[str, Any]:
    """A random configuration; parents come before the parameters that depend on them."""
    values: dict[str, Any] = {}
    for each in space:
        condition, at = each.get("condition"), random.uniform()
        if condition and values.get(condition["parameter"]) not in condition["values"]:
            continue
        levels = {"choice": each.get("levels"), "boolean": [False, True]}.get(each["type"])
        if levels:
            values[each["name"]] = levels[int(at * len(levels))]
            continue
        widen = 0.5 if each["type"] == "integer" else 0.0
        ends = np.array([each["lower"] - widen, each["upper"] + widen])
        if each["scaling"] == "log":
            raw = np.exp(np.interp(at, [0, 1], np.log(ends)))
        elif each["scaling"] == "log1m":
            raw = 1.0 - np.exp(np.interp(at, [0, 1], np.log1p(-ends)))
        else:
            raw = np.interp(at, [0, 1], ends)
        raw = float(np.clip(raw, each["lower"], each["upper"]))
        values[each["name"]] = round(raw) if widen else float(f"{raw:.6g}")
    return values


def model_of(family: str, values: Values, features: int) -> Any:
    """The model of a configuration."""
    given = dict(values)
    match family:
        case "hgb":
            return HistGradientBoostingClassifier(**given, early_stopping=False, random_state=0)
        case "forest":
            return RandomForestClassifier(**given, random_state=0)
        case "svc":
            return make_pipeline(StandardScaler(), SVC(**given, max_iter=20_000, random_state=0))
        case "mlp":
            layers = (given.pop("width"),) * given.pop("depth")
            mlp = MLPClassifier(layers, **given, max_iter=12, random_state=0)
            return make_pipeline(StandardScaler(), mlp)
        case "sgd":
            sgd = SGDClassifier(**{"eta0": 0.01, **given}, max_iter=30, tol=None, random_state=0)
            return make_pipeline(StandardScaler(), sgd)
        case _:
            scaler = {"none": FunctionTransformer(), "standard": StandardScaler(), "minmax": MinMaxScaler()}
            share = given.pop("components", None)
            parts = [scaler[given.pop("scaler")]]
            if given.pop("reduce"):
                parts.append(PCA(max(1, round(share * features)), random_state=0))
            return make_pipeline(*parts, KNeighborsClassifier(**given))


def _digits(
    keep: Callable[[np.ndarray], np.ndarray], label: Callable[[np.ndarray], np.ndarray], noise: float
):
    x, y = load_digits(return_X_y=True)
    rows = np.flatnonzero(keep(y))[:1000]
    return x[rows] + noise * np.random.default_rng(0).normal(size=x[rows].shape), label(y[rows])


def _flipped(x: np.ndarray, y: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    flip = np.random.default_rng(0).uniform(size=len(y)) < share
    return x, np.where(flip, 1 - y, y)


def _wine() -> tuple[np.ndarray, np.ndarray]:
    x, y = load_wine(return_X_y=True)
    noise = np.random.default_rng(0).normal(size=(len(x), 40)) * x.std(axis=0).mean()
    return np.concatenate([x, noise], axis=1), y


def _diabetes() -> tuple[np.ndarray, np.ndarray]:
    x, y = load_diabetes(return_X_y=True)
    return x, (y > np.median(y)).astype(int)


TASKS: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "digits": lambda: _digits(lambda y: y >= 0, lambda y: y, 0.0),
    "digits-parity": lambda: _digits(lambda y: y >= 0, lambda y: y % 2, 0.0),
    "digits-3-8-9-noisy": lambda: _digits(lambda y: np.isin(y, [3, 8, 9]), lambda y: y, 6.0),
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "breast_cancer-flipped": lambda: _flipped(*load_breast_cancer(return_X_y=True), 0.15),
    "wine-wide": _wine,
    "diabetes-high": _diabetes,
}


def history(family: str, task: str) -> dict[str, Any]:
    """The configurations of one task, their errors and seconds."""
    x, y = TASKS[task]()
    halves = train_test_split(x, y, test_size=0.5, random_state=0, stratify=y)
    random = np.random.default_rng([zlib.crc32(family.encode()), zlib.crc32(task.encode())])
    configurations = [DEFAULTS[family], *(drawn(SPACES[family], random) for _ in range(POINTS))]
    errors = []
    for values in configurations:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                model = model_of(family, values, x.shape[1]).fit(halves[0], halves[2])
                error = float(np.mean(model.predict(halves[1]) != halves[3]))
            except ValueError:  # the weights of a network are no numbers any more
                error = 1.0
            errors.append(round(error, 6))
    return {"dataset": task.partition("-")[0], "values": configurations, "error": errors}


def main(out: Path, families: list[str]) -> None:
    """Collect the histories of some families, and write them as one file."""
    found: dict[str, Any] = {"scikit-learn": sklearn.__version__, "python": platform.python_version()}
    found["families"] = {}
    for family in families or list(SPACES):
        tasks = {}
        for task in TASKS:
            tasks[task] = history(family, task)
            errors = np.array(tasks[task]["error"])
            print(
                f"{family:8} {task:24} default {errors[0]:.3f}, "
                f"best {errors.min():.3f}, median {np.median(errors):.3f}, worst {errors.max():.3f}",
                flush=True,
            )
        found["families"][family] = {"space": SPACES[family], "default": DEFAULTS[family], "tasks": tasks}
    out.write_bytes(gzip.compress(json.dumps(found, separators=(",", ":")).encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
