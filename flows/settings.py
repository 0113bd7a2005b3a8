"""Settings of the main job: one frozen dataclass that the command line and deployments fill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import HEKL, HNLL, PRETRAINED, SINGLE_TASK, STBO, Rand
from hyperbo.pretrain import EKLTraining, NLLTraining

MethodConfiguration = HNLL | HEKL | STBO | Rand

_STEPS_PER_CALL = 500


@dataclass(frozen=True)
class Settings:
    """What the main job is done on, with which methods, and where its outcome goes.

    The defaults are the demonstration's: minutes on two cores. The paper trains H-NLL for 50,000 steps and
    evaluates 100 iterations.

    Attributes:
      runs: folder of finished runs.
      data: folder of dataset versions; None for `data` in the folder of runs.
      dataset: `<name>/<config>:<version>`.
      raw: folder of raw files the version is built from; None for those shipped.
      preparation: named reading of the version.
      methods: names of the compared methods; the report is about the first.
      seeds: seeds of priors and of the runs of Bayesian optimization.
      iterations: observations per run of Bayesian optimization.
      hidden: sizes of the hidden layers of H-NLL, H-EKL and STBO.
      nll_steps: Adam steps of H-NLL; a multiple of 500, or less than 500.
      nll_points: points of every task per step.
      nll_learning_rate: of Adam.
      ekl_iterations: L-BFGS iterations of H-EKL.
      stbo_iterations: L-BFGS iterations of every refit of STBO.
    """

    runs: Path = Path("runs")
    data: Path | None = None
    dataset: str = "pd1/mini:1.0.0"
    raw: Path | None = None
    preparation: str = "paper"
    methods: tuple[str, ...] = ("H-NLL", "H-EKL", "STBO", "Rand")
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    iterations: int = 50
    hidden: tuple[int, ...] = (32, 32)
    nll_steps: int = 3000
    nll_points: int = 50
    nll_learning_rate: float = 1e-3
    ekl_iterations: int = 100
    stbo_iterations: int = 100

    def __post_init__(self) -> None:
        if ":" not in self.dataset:
            raise InvalidInputError(
                f"dataset {self.dataset!r} names no version", fix="write <name>/<config>:<version>"
            )
        for name in ("methods", "seeds"):
            values = getattr(self, name)
            if not values or len(set(values)) != len(values):
                raise InvalidInputError(f"{name} = {values} is empty or repeats", where="settings")
        unknown = [name for name in self.methods if name not in PRETRAINED | SINGLE_TASK]
        if unknown:
            raise InvalidInputError(
                f"unknown method {unknown[0]!r}",
                where="settings",
                fix=f"use {', '.join(PRETRAINED | SINGLE_TASK)}",
            )
        if min(self.seeds) < 0 or self.iterations < 1:
            raise InvalidInputError(
                f"seeds {self.seeds}, iterations {self.iterations}",
                where="settings",
                fix="use seeds of at least 0 and at least one iteration",
            )
        configurations(self)  # their own checks

    @property
    def data_dir(self) -> Path:
        """Folder of dataset versions."""
        return self.data or self.runs / "data"


def configurations(settings: Settings) -> Mapping[str, MethodConfiguration]:
    """The configuration of every compared method, in their order.

    >>> configurations(Settings(methods=("STBO",), hidden=(8,)))["STBO"].architecture.hidden
    (8,)
    """
    architecture = Architecture(hidden=settings.hidden)
    known = {
        "H-NLL": HNLL(
            architecture,
            NLLTraining(
                settings.nll_steps,
                settings.nll_points,
                settings.nll_learning_rate,
                steps_per_call=max(1, min(settings.nll_steps, _STEPS_PER_CALL)),
            ),
        ),
        "H-EKL": HEKL(architecture, EKLTraining(settings.ekl_iterations)),
        "STBO": STBO(architecture, settings.stbo_iterations),
        "Rand": Rand(),
    }
    return {name: known[name] for name in settings.methods}
