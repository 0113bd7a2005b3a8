"""A tuning task of a preset as a live objective: its trials are trained when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

from hyperbo.errors import InvalidInputError
from hyperbo.online import Evaluation, RunName
from hyperbo.search_space import PD1_SEARCH_SPACE, SearchSpace
from hyperbo.warping import OutputWarping, output_warping
from pipelines.collect.preset import Preset
from pipelines.collect.records import trial_rows
from pipelines.collect.tasks import dataset_of, trainer_of

# What the dataset versions made of a collection take for their objective.
METRIC = "best_valid/error_rate"


class LiveObjective:
    """The validation error rate of one task, of training runs over the whole hyperrectangle.

    A trial that diverges is infeasible. Data, network, initial weights and order of the examples are those of
    the collected trials: a point that was collected has the same result, up to the last bit.

    Args:
      preset: the collection.
      study: which of its tasks, by its `study`.
      lanes: how many trials are trained at once; one program is compiled, for as many.
      origin: what the trials come from, such as `online-5f3a`: a part of their `trial_dir`.

    Attributes:
      dataset_name: of its task dataset, what is held out for it.

    Raises:
      InvalidInputError: the preset has no such task, or it does not fit its task dataset.
      NotAvailableError: the library that brings the task dataset is not installed.
    """

    def __init__(self, preset: Preset, study: str, lanes: int, origin: str) -> None:
        studies = [task.study for task in preset.tasks]
        if study not in studies:
            raise InvalidInputError(
                f"no task {study!r}", where=f"preset {preset.name!r}", fix=f"use one of {', '.join(studies)}"
            )
        self._preset, self._task = preset, preset.tasks[studies.index(study)]
        self._lanes, self._origin = lanes, origin
        self._dataset = dataset_of(preset, self._task)
        self.dataset_name = self._dataset.name
        self._trainer = trainer_of(preset, self._task, self._dataset, lanes)

    @property
    def space(self) -> SearchSpace:
        """That of PD1."""
        return PD1_SEARCH_SPACE

    @property
    def warping(self) -> OutputWarping:
        """The error rate r becomes -ln(r + 1e-10), section "PD1"."""
        return output_warping("negative_log")

    def evaluate(
        self, points: Float64[np.ndarray, "n 4"], runs: Sequence[RunName], iteration: int
    ) -> Evaluation:
        """Train a trial at each point.

        Args:
          points: raw hyperparameters.
          runs: whose trials they are.
          iteration: 1, 2, ...

        Returns:
          Validation error rates, and rows in the layout of the release's files, with a column `origin` that
          names the run.
        """
        rows: list[dict[str, Any]] = []
        for first in range(0, len(points), self._lanes):
            part, of_runs = points[first : first + self._lanes], runs[first : first + self._lanes]
            # One compiled program serves any number of trials: it is filled up, and the filling thrown away.
            filling = np.repeat(part[:1], self._lanes - len(part), axis=0)
            curves = self._trainer.train(np.concatenate([part, filling]))
            origins = [f"{self._origin}/{run.method}/seed{run.seed}" for run in of_runs]
            places = [f"{origin}/{iteration:05d}" for origin in origins]
            made = trial_rows(self._preset, self._task, self._dataset, places, part, curves)
            rows += [row | {"origin": origin} for row, origin in zip(made, origins, strict=True)]
        values = [row[METRIC] if row["status"] == "done" else np.nan for row in rows]
        return Evaluation(np.array(values, np.float64), rows)
