"""Arms by the names of methods: at the defaults or at the paper's settings, or with fewer steps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import HEKL, HNLL, METHODS, STBO, BestAverage, Method, Rand
from hyperbo.methods.paper import SettingsName, paper_settings
from hyperbo.pretrain import NLLTraining
from hyperbo_flows.experiments.experiment import Arm, Experiment
from hyperbo_flows.experiments.methods import method_class
from hyperbo_flows.process.progress import say

# Section 7.6 "Results on the HPO-B Benchmark"; on PD1 the hidden layers are those of `Architecture`.
_HPOB_HIDDEN = (128, 128)
# Enough for the loss of H-NLL on PD1 mini (docs/decisions/training.md).
DEMONSTRATION_STEPS = 2000
_FEWER_POINTS = re.compile(r"(?P<method>.+)-(?P<points>[1-9][0-9]*)")


def at_most_steps(training: NLLTraining, steps: int) -> NLLTraining:
    """Training by NLL with another number of steps, at most.

    Raises:
      InvalidInputError: the steps are more than those of a call of the loop, and no multiple of them.
    """
    per_call = training.steps_per_call
    if steps > per_call and steps % per_call:
        raise InvalidInputError(
            f"steps = {steps}", fix=f"give a multiple of {per_call}, or at most {per_call}"
        )
    return replace(training, steps=steps, steps_per_call=min(steps, per_call))


def configured(
    name: str,
    dataset: str,
    steps: int | None = None,
    folder: Path | None = None,
    settings: SettingsName = "default",
) -> Method:
    """A method by its name, configured for a dataset.

    Args:
      name: a name that `hyperbo_flows.experiments.methods.method_class` knows.
      dataset: the dataset; for HPO-B the hidden layers are larger.
      steps: steps of Adam, at most, for methods that pre-train by NLL; None: those of the settings.
      folder: a further folder that may hold the module of the user's own method.
      settings: `paper` for those of the paper.

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
    if settings == "paper":
        method = paper_settings(method)
    if dataset.startswith("hpob/") and isinstance(getattr(method, "architecture", None), Architecture):
        method = replace(method, architecture=replace(method.architecture, hidden=_HPOB_HIDDEN))
    if steps is not None and isinstance(getattr(method, "training", None), NLLTraining):
        method = replace(method, training=at_most_steps(method.training, steps))
    return method


def arms_by_name(
    names: Iterable[str], dataset: str, steps: int | None = None, settings: SettingsName = "default"
) -> dict[str, Arm]:
    """One arm per name. `<method>-<n>`, such as `H-NLL-100`, sees at most n points of every training task.

    Args:
      names: names of methods, each once.
      dataset: the dataset that they are configured for.
      steps: as in `configured`.
      settings: as in `configured`.

    Raises:
      InvalidInputError: there is no name, one repeats, a method cannot be configured, or `steps` are given
        and no method takes them.
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
        arms[name] = Arm(configured(method, dataset, steps, settings=settings), points_per_task=points)
    if steps is not None:
        _tell_what_steps_limit(arms, steps)
    return arms


def _tell_what_steps_limit(arms: Mapping[str, Arm], steps: int) -> None:
    """Print which methods the steps do not limit; refuse steps that limit none."""
    trainings = {name: getattr(arm.method, "training", None) for name, arm in arms.items()}
    limited = [name for name, training in trainings.items() if isinstance(training, NLLTraining)]
    others = [name for name, training in trainings.items() if training is not None and name not in limited]
    if not limited:
        raise InvalidInputError(
            f"steps = {steps} limits nothing: {', '.join(arms)}: not trained in steps of NLL",
            where="experiment",
            fix="leave --steps out; in an experiment file, `training` of an arm has its other settings",
        )
    if others:
        say(f"--steps limits {', '.join(limited)}; not {', '.join(others)}, trained in another way")


def demonstration(
    runs: Path = Path("runs"),
    data: Path | None = None,
    *,
    raw: Path | None = None,
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
    iterations: int = 50,
    repeats: bool = False,
    steps: int = DEMONSTRATION_STEPS,
) -> Experiment:
    """The main job on PD1 mini: methods with a prior beside simple ones, in minutes on two cores.

    The paper trains H-NLL with 50,000 steps and evaluates 100 iterations.

    Args:
      runs: folder of finished runs.
      data: the data folder; None for `pd1_builder.version.catalog.default_data_dir`.
      raw: folder of raw files that PD1 mini is built from; None for those in the package.
      seeds: seeds of what is learned, and of the runs.
      iterations: observations per run.
      repeats: whether a run may observe a trial again before it has observed all.
      steps: Adam steps of H-NLL, at most.
    """
    arms = {
        "H-NLL": Arm(HNLL(training=at_most_steps(NLLTraining(), steps))),
        "H-EKL": Arm(HEKL()),
        "STBO": Arm(STBO()),
        "Best-average": Arm(BestAverage()),
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
