"""Arms by the names of methods: at the paper's settings, or with fewer steps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from flows.experiment import Arm, Experiment
from flows.methods import method_class
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import HEKL, HNLL, METHODS, STBO, Method, Rand
from hyperbo.pretrain import NLLTraining

# Section "Results on the HPO-B Benchmark"; on PD1 the hidden layers are those of `Architecture`.
_HPOB_HIDDEN = (128, 128)
_STEPS_PER_CALL = 500
_FEWER_POINTS = re.compile(r"(?P<method>.+)-(?P<points>[1-9][0-9]*)")


def nll_training(steps: int) -> NLLTraining:
    """Training by NLL at the paper's settings but for the number of steps: a multiple of 500, or fewer."""
    return NLLTraining(steps, steps_per_call=max(1, min(steps, _STEPS_PER_CALL)))


def configured(name: str, dataset: str, steps: int | None = None, folder: Path | None = None) -> Method:
    """A method by its name, configured as the paper does for a dataset.

    Args:
      name: as in `flows.methods.method_class`.
      dataset: for HPO-B the hidden layers are larger.
      steps: of Adam for methods that pre-train by NLL; None: the paper's.
      folder: where the module of a method of one's own may be, beside the working directory.

    Raises:
      InvalidInputError: the method is unknown, cannot be made without settings, or the steps cannot be.
      NotAvailableError: a method of one's own cannot be imported.
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
    """One arm per name; `<method>-<n>` sees at most n points of every training task, as `H-NLL-100`.

    Args:
      names: of methods, not repeated.
      dataset: what they are configured for.
      steps: as in `configured`.

    Raises:
      InvalidInputError: there is no name, or one repeats; or as `configured`.
      NotAvailableError: as `configured`.
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
    steps: int = 3000,
) -> Experiment:
    """The main job on PD1 mini: the paper's four, H-NLL with fewer steps; minutes on two cores.

    The paper trains H-NLL for 50,000 steps and evaluates 100 iterations.

    Args:
      runs: folder of finished runs.
      data: folder of dataset versions; None for `data` in the folder of runs.
      raw: folder of raw files that PD1 mini is built from; None for those shipped.
      seeds: seeds.
      iterations: observations per run.
      steps: Adam steps of H-NLL.
    """
    arms = {
        "H-NLL": Arm(HNLL(training=nll_training(steps))),
        "H-EKL": Arm(HEKL()),
        "STBO": Arm(STBO()),
        "Rand": Arm(Rand()),
    }
    return Experiment(arms, runs, data, raw=raw, preparation="paper", seeds=seeds, iterations=iterations)
