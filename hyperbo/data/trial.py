"""Trial: one training run at one hyperparameter setting, and what must hold for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hyperbo.data.parameter import Value
from hyperbo.data.search_space import SearchSpace
from hyperbo.errors import InvalidInputError

Status = Literal["done", "diverged", "infeasible"]
STATUSES: tuple[Status, ...] = ("done", "diverged", "infeasible")


@dataclass(frozen=True)
class Trial:
    """One training run. Raw values are kept as recorded; nothing here is warped or rounded.

    Attributes:
      task: name of the task; in PD1 `<task dataset>-<model>-<batch size>`.
      task_dataset: what the task's model was trained on; tasks that share it are related.
      trial_id: unique within a dataset.
      split: in PD1 `matched` (the input was run on every task of its phase) or `unmatched`.
      phase: collection phase, 0 or 1 in PD1; 0 where there is but one.
      origin: how the trial came about, such as `release`, `collected` or `online`.
      source: file and line the trial was read from.
      status: `done`, `diverged` (training cost became NaN) or `infeasible`.
      hyperparameters: raw values by name, of the parameters that are active.
      input_id: `SearchSpace.input_id` of the raw values.
      metrics: final and best metrics by name; NaN where the run has none.
      curves: metrics along training by name, all of one length.
      model: model trained; empty where it is not recorded.
      batch_size: minibatch size of the training run; 0 where it is not recorded.
    """

    task: str
    task_dataset: str
    trial_id: str
    split: str
    phase: int
    origin: str
    source: str
    status: Status
    hyperparameters: Mapping[str, Value]
    input_id: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    model: str = ""
    batch_size: int = 0

    @property
    def diverged(self) -> bool:
        """Whether training diverged; derived from `status`."""
        return self.status == "diverged"


def validate(trial: Trial, space: SearchSpace) -> None:
    """Check a trial against its search space; a value a rounding outside of its range is in order.

    Raises:
      InvalidInputError: names the trial's source and the field that is wrong.
    """
    where = trial.source
    for name in ("task", "task_dataset", "trial_id"):
        if not getattr(trial, name):
            raise InvalidInputError(f"{name} is empty", where=where)
    if trial.status not in STATUSES:
        raise InvalidInputError(
            f"status is {trial.status!r}", where=where, fix=f"use one of {', '.join(STATUSES)}"
        )
    try:
        codes = space.codes([trial.hyperparameters])
    except InvalidInputError as error:
        raise InvalidInputError(error.what, where=where, fix=error.fix) from error
    inactive = len(trial.hyperparameters) - int(space.active(codes).sum())
    if inactive:
        raise InvalidInputError(f"{inactive} hyperparameters are inactive and have values", where=where)
    if trial.input_id != space.input_id(trial.hyperparameters):
        raise InvalidInputError("input_id does not belong to the hyperparameters", where=where)
    lengths = {name: len(curve) for name, curve in trial.curves.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidInputError(f"curves differ in length: {lengths}", where=where)
