"""A task of a preset that is tuned online: its trials are trained when they are proposed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

from hyperbo.bayesopt.journal import RunName
from hyperbo.bayesopt.online import TrialResults
from hyperbo.data.search_space import PD1_SEARCH_SPACE, SearchSpace
from hyperbo.data.warping import OutputWarping, output_warping
from hyperbo.errors import InvalidInputError
from hyperbo.storage.validation import suggestion
from hyperbo_pipelines.collect.plan import dataset_of, trainer_of
from hyperbo_pipelines.collect.preset import Preset
from hyperbo_pipelines.collect.rows import trial_rows

# The objective of the dataset versions that are built from a collection.
METRIC = "best_valid/error_rate"


class PresetTask:
    """The validation error rate of one task, by training, anywhere in the search space.

    A trial that diverges is infeasible. Data, network, initial weights and order of the examples are those of
    the collected trials: a collected point has the same result, up to the last bit.

    Args:
      preset: the collection.
      study: which of its tasks, by its `study`.
      lanes: number of trials that are trained at once; one program is compiled for this number.
      origin: where the trials come from, such as `online-5f3a`; a part of their `trial_dir`.

    Attributes:
      dataset_name: name of its task dataset, which is held out for it.

    Raises:
      InvalidInputError: the preset has no such task, or the task does not fit its task dataset.
      NotAvailableError: the library with the task dataset is not installed.
    """

    def __init__(self, preset: Preset, study: str, lanes: int, origin: str) -> None:
        studies = [task.study for task in preset.tasks]
        if study not in studies:
            raise InvalidInputError(
                f"no task {study!r}", where=f"preset {preset.name!r}", fix=suggestion(study, studies)
            )
        self._preset, self._task = preset, preset.tasks[studies.index(study)]
        self._lanes, self._origin = lanes, origin
        self._dataset = dataset_of(preset, self._task)
        self.dataset_name = self._dataset.name
        self._trainer = trainer_of(preset, self._task, self._dataset, lanes)

    @property
    def space(self) -> SearchSpace:
        """The search space of PD1."""
        return PD1_SEARCH_SPACE

    @property
    def warping(self) -> OutputWarping:
        """The error rate r becomes -ln(r + 1e-10), Section 7.1 "PD1"."""
        return output_warping("negative_log")

    def run_trials(
        self, points: Float64[np.ndarray, "n 4"], runs: Sequence[RunName], iteration: int
    ) -> TrialResults:
        """Train a trial at each point of raw hyperparameters, for the run of each, at an iteration 1, 2, ...

        Returns:
          Validation error rates, and rows in the layout of the release's files, with a column `origin` that
          names the run.
        """
        rows: list[dict[str, Any]] = []
        for first in range(0, len(points), self._lanes):
            part, of_runs = points[first : first + self._lanes], runs[first : first + self._lanes]
            curves = self._trainer.train(part)
            origins = [f"{self._origin}/{run.method}/seed{run.seed}" for run in of_runs]
            places = [f"{origin}/{iteration:05d}" for origin in origins]
            made = trial_rows(self._preset, self._task, self._dataset, places, part, curves)
            rows += [row | {"origin": origin} for row, origin in zip(made, origins, strict=True)]
        values = [row[METRIC] if row["status"] == "done" else np.nan for row in rows]
        return TrialResults(np.array(values, np.float64), rows)
