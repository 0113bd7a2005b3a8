"""Arms by the names of methods: at the paper's settings, or with fewer steps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from flows.experiments.experiment import Arm, Experiment
from flows.experiments.methods import method_class
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import HEKL, HNLL, METHODS, STBO, Method, Rand
from hyperbo.pretrain import NLLTraining

# Section 7.6 "Results on the HPO-B Benchmark"; on PD1 the hidden layers are those of `Architecture`.
_HPOB_HIDDEN = (128, 128)
_STEPS_PER_CALL = 500
_FEWER_POINTS = re.compile(r"(?P<method>.+)-(?P<points>[1-9][0-9]*)")


def nll_training(steps: int) -> NLLTraining:
    """Training by NLL at the paper's settings, with another number of steps.

    Raises:
      InvalidInputError: the steps are more than 500 and no multiple of 500.
    """
    if steps > _STEPS_PER_CALL and steps % _STEPS_PER_CALL:
        raise InvalidInputError(
            f"steps = {steps}", fix=f"give a multiple of {_STEPS_PER_CALL}, or at most {_STEPS_PER_CALL}"
        )
    return NLLTraining(steps, steps_per_call=max(1, min(steps, _STEPS_PER_CALL)))


def configured(name: str, dataset: str, steps: int | None = None, folder: Path | None = None) -> Method:
    """A method by its name, configured as the paper does for a dataset.

    Args:
      name: a name that `flows.experiments.methods.method_class` knows.
      dataset: the dataset; for HPO-B the hidden layers are larger.
      steps: steps of Adam, for methods that pre-train by NLL; None: the paper's.
      folder: a further folder that may hold the module of the user's own method.

    Raises:
      InvalidInputError: the method is unknown or has settings without a default, or the number of steps is
        neither small nor a multiple of 500.
      NotAvailableError: the user's own method cannot be imported.
    """
    known = method_class(name, folder)
    try:
        method: Any = known()
    except TypeError as error:
        raise InvalidInputError(
            f"method {name!r} has settings without a default: {error}",
            fix="give its fields defaults, or configure it in an experiment file",
        ) from error
    settings = {each.name for each in fields(method)}
    if dataset.startswith("hpob/") and isinstance(getattr(method, "architecture", None), Architecture):
        method = replace(method, architecture=replace(method.architecture, hidden=_HPOB_HIDDEN))
    if steps is not None and "training" in settings and isinstance(method.training, NLLTraining):
        method = replace(method, training=nll_training(steps))
    return method


def arms_by_name(names: Iterable[str], dataset: str, steps: int | None = None) -> dict[str, Arm]:
    """One arm per name. `<method>-<n>`, such as `H-NLL-100`, sees at most n points of every training task.

    Args:
      names: names of methods, each once.
      dataset: the dataset that they are configured for.
      steps: steps of Adam, for methods that pre-train by NLL; None: the paper's.

    Raises:
      InvalidInputError: there is no name, one repeats, or a method cannot be configured.
      NotAvailableError: the user's own method cannot be imported.
    """
    names = tuple(names)
    if not names or len(set(names)) != len(names):
        told = ", ".join(names) or "none"
        raise InvalidInputError(
            f"methods: {told}", where="experiment", fix="name at least one, and none twice"
        )
    arms = {}
    for name in names:
        fewer = None if name in METHODS else _FEWER_POINTS.fullmatch(name)
        method, points = (fewer["method"], int(fewer["points"])) if fewer else (name, None)
        arms[name] = Arm(configured(method, dataset, steps), points_per_task=points)
    return arms


def demonstration(
    runs: Path = Path("runs"),
    data: Path | None = None,
    *,
    raw: Path | None = None,
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
    iterations: int = 50,
    repeats: bool = False,
    steps: int = 3000,
) -> Experiment:
    """The main job on PD1 mini: four methods of the paper, in minutes on two cores.

    H-NLL is trained with fewer steps than in the paper, which has 50,000 and evaluates 100 iterations.

    Args:
      runs: folder of finished runs.
      data: folder of dataset versions; None for `data` in the folder of runs.
      raw: folder of raw files that PD1 mini is built from; None for those in the package.
      seeds: seeds of what is learned, and of the runs.
      iterations: observations per run.
      repeats: whether a run may observe a trial again before it has observed all.
      steps: Adam steps of H-NLL.
    """
    arms = {
        "H-NLL": Arm(HNLL(training=nll_training(steps))),
        "H-EKL": Arm(HEKL()),
        "STBO": Arm(STBO()),
        "Rand": Arm(Rand()),
    }
    return Experiment(
        arms,
        runs,
        data,
        raw=raw,
        preparation="paper",
        seeds=seeds,
        iterations=iterations,
        repeats=repeats,
    )
